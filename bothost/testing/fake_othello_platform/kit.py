"""The conformance kit's settings for othello_platform."""

from bothost.lobbies.base import Account
from bothost.lobbies.othello_platform import OthelloPlatform
from bothost.messages import Wish
from bothost.testing.check_lobby import UNOBSERVED, LobbyKit
from bothost.testing.fake_othello_platform.server import FakeOthelloPlatform

PASSWORD = "a-password-of-the-kit"


def accounts(lobby: FakeOthelloPlatform) -> list[Account]:
    """Two accounts that the match queue pairs."""
    for name in ("ada", "bob"):
        lobby.add(name, PASSWORD)
    return [Account(name=name, url=lobby.url, password=PASSWORD) for name in ("ada", "bob")]


KIT = LobbyKit(
    adapter=OthelloPlatform,
    lobby=FakeOthelloPlatform,
    accounts=accounts,
    wish=Wish("othello"),
    proven_by=dict.fromkeys(
        UNOBSERVED, "tests/lobbies/othello_platform/test_adapter.py::test_every_capability_is_proven"
    ),
)
