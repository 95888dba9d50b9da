"""The conformance kit's settings for the built-in adapters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bothost.lobbies.base import Account
from bothost.lobbies.botzone import Botzone
from bothost.lobbies.embedded import EmbeddedLobby
from bothost.lobbies.mailgyc import MailgycLobby
from bothost.lobbies.open_mahjong import OpenMahjong
from bothost.lobbies.othello_platform import OthelloPlatform
from bothost.messages import Wish
from bothost.testing.check_lobby import UNOBSERVED, LobbyKit
from bothost.testing.fake_botzone import FakeBotzone
from bothost.testing.fake_lobby import FakeLobby
from bothost.testing.fake_mailgyc import MailgycFake
from bothost.testing.fake_open_mahjong import FakeOpenMahjong
from bothost.testing.fake_othello_platform import FakeOthelloPlatform

PASSWORD = "a-password-of-the-kit"
TOKENS = {name: f"token-of-{name}-in-the-kit" for name in ("ada", "bob", "cyd")}


def _registered(names: Sequence[str], lobby: FakeOpenMahjong | FakeOthelloPlatform) -> list[Account]:
    for name in names:
        lobby.add(name, PASSWORD)
    return [Account(name=name, url=lobby.url, password=PASSWORD) for name in names]


def _proven(adapter: str) -> dict[str, str]:
    """The tests of what the kit cannot see by playing."""
    return dict.fromkeys(UNOBSERVED, f"tests/lobbies/{adapter}/test_adapter.py::test_every_capability_is_proven")


EMBEDDED = LobbyKit(
    adapter=EmbeddedLobby,
    lobby=partial(FakeLobby, TOKENS, grant_ms=60_000),  # no clock expires during a check
    accounts=lambda lobby: [Account(name=name, url=lobby.url, token=token) for name, token in TOKENS.items()],
    wish=Wish("doudizhu"),
    proven_by=_proven("embedded"),
)
BOTZONE = LobbyKit(
    adapter=Botzone,
    lobby=FakeBotzone,
    accounts=lambda lobby: [Account(name="ada", url="https://botzone.example", token=lobby.add("ada"))],
    wish=Wish("doudizhu", {}, {"opponents": ["bot-1", "bot-2"]}),
    options={"hello_s": 0.05, "retry_s": 0.05, "start_every_s": 0.01},
    proven_by=_proven("botzone"),
)
MAILGYC = LobbyKit(
    adapter=MailgycLobby,
    lobby=MailgycFake,
    accounts=lambda lobby: [Account(name=name, url=lobby.url) for name in ("ada", "bob", "cyd")],
    wish=Wish("doudizhu", {}, {"level": 2}),  # without robots
    options={"ready_after_s": 0.02, "pause_s": 0.05},
    proven_by=_proven("mailgyc"),
)
OPEN_MAHJONG = LobbyKit(
    adapter=OpenMahjong,
    lobby=FakeOpenMahjong,
    accounts=partial(_registered, ("ada", "bob", "cyd", "dan")),  # the first opens a room, the others find it
    wish=Wish("mahjong"),
    options={"ready_after_s": 0.02, "settle_s": 0.2, "look_s": 0.2, "chat_url": "/chat"},
    proven_by=_proven("open_mahjong"),
)
OTHELLO_PLATFORM = LobbyKit(
    adapter=OthelloPlatform,
    lobby=FakeOthelloPlatform,
    accounts=partial(_registered, ("ada", "bob")),  # the match queue pairs them
    wish=Wish("othello"),
    proven_by=_proven("othello_platform"),
)
