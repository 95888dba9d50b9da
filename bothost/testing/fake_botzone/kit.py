"""The conformance kit's settings for Botzone's local AI."""

from bothost.lobbies.base import Account
from bothost.lobbies.botzone import Botzone
from bothost.messages import Wish
from bothost.testing.check_lobby import UNOBSERVED, LobbyKit
from bothost.testing.fake_botzone.server import FakeBotzone


def accounts(lobby: FakeBotzone) -> list[Account]:
    """One user, who plays against the lobby's bots."""
    return [Account(name="ada", url="https://botzone.example", token=lobby.add("ada"))]


KIT = LobbyKit(
    adapter=Botzone,
    lobby=FakeBotzone,
    accounts=accounts,
    wish=Wish("doudizhu", {}, {"opponents": ["bot-1", "bot-2"]}),
    options={"hello_s": 0.05, "retry_s": 0.05, "start_every_s": 0.01},
    proven_by=dict.fromkeys(UNOBSERVED, "tests/lobbies/botzone/test_adapter.py::test_every_capability_is_proven"),
)
