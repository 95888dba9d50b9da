"""The conformance kit's settings for mailgyc/doudizhu."""

from bothost.lobbies.base import Account
from bothost.lobbies.mailgyc import MailgycLobby
from bothost.messages import Wish
from bothost.testing.check_lobby import UNOBSERVED, LobbyKit
from bothost.testing.fake_mailgyc.server import MailgycFake


def accounts(lobby: MailgycFake) -> list[Account]:
    """Three names at a level without robots."""
    return [Account(name=name, url=lobby.url) for name in ("ada", "bob", "cyd")]


KIT = LobbyKit(
    adapter=MailgycLobby,
    lobby=MailgycFake,
    accounts=accounts,
    wish=Wish("doudizhu", {}, {"level": 2}),
    options={"ready_after_s": 0.02, "pause_s": 0.05},
    proven_by=dict.fromkeys(UNOBSERVED, "tests/lobbies/mailgyc/test_adapter.py::test_every_capability_is_proven"),
)
