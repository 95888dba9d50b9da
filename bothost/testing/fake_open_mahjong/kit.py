"""The conformance kit's settings for open_mahjong."""

from bothost.lobbies.base import Account
from bothost.lobbies.open_mahjong import OpenMahjong
from bothost.messages import Wish
from bothost.testing.check_lobby import UNOBSERVED, LobbyKit
from bothost.testing.fake_open_mahjong.server import FakeOpenMahjong

PASSWORD = "a-password-of-the-kit"
NAMES = ("ada", "bob", "cyd", "dan")


def accounts(lobby: FakeOpenMahjong) -> list[Account]:
    """Four accounts: the first opens a room, the others find it."""
    for name in NAMES:
        lobby.add(name, PASSWORD)
    return [Account(name=name, url=lobby.url, password=PASSWORD) for name in NAMES]


KIT = LobbyKit(
    adapter=OpenMahjong,
    lobby=FakeOpenMahjong,
    accounts=accounts,
    wish=Wish("mahjong"),
    options={"ready_after_s": 0.02, "settle_s": 0.2, "look_s": 0.2, "chat_url": "/chat"},
    proven_by=dict.fromkeys(UNOBSERVED, "tests/lobbies/open_mahjong/test_adapter.py::test_every_capability_is_proven"),
)
