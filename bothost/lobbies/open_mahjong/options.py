"""Options and timers of open_mahjong."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bothost import messages as m
from bothost.lobbies.base import PositiveSeconds, Seconds
from bothost.lobbies.open_mahjong import protocol as wire

GAME = "mahjong"

HELLO, SETTLE = "hello", "settle"
"""Timers of the login: the lobby must have answered; the lobby must have offered the return to a game."""
BEGIN, WAIT, LOOK = "begin", "wait", "look"
"""Timers of a room: say ready or start; no game started; look at the list of rooms."""
ECHO, NEXT, RESYNC = "echo", "next", "resync"
"""Timers of a game: the lobby must have echoed our move; say ready for the next hand; reconnect for a snapshot."""
CHAT = "chat"
"""Timer: connect to the chat server again."""
TIMERS = (HELLO, SETTLE, BEGIN, WAIT, LOOK, ECHO, NEXT, RESYNC)


class OpenMahjongOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of open_mahjong."""

    username: str = ""
    """Default: the account's name. The lobby registers unknown names, at most three a day for an IP address."""
    chat_url: str = ""
    """Address of the chat server, such as ``ws://lobby.example:8083/chat``, or a path on the lobby's host, ``/chat``.
    Default: no chat."""
    tourist: bool = False
    """Log in as a guest, without a password. A guest who loses the connection cannot return to the game."""
    release_version: int = wire.RELEASE_VERSION
    """Version of the lobby's own client. The lobby refuses other versions than its own."""
    room_name: str = "bots"
    """Name of rooms that we open."""
    create: bool = True
    """Whether to open a room if no other fits."""
    robots: Annotated[int, Meta(ge=0, le=3)] = 0
    """Number of the server's robots in a room that we open."""
    game_round: Annotated[int, Meta(ge=1, le=4)] = 1
    """Length of a match in a room that we open: rounds of four hands."""
    round_timer: Annotated[int, Meta(ge=0, le=600)] = 20
    """Time bank in such a room, in seconds."""
    step_timer: Annotated[int, Meta(ge=1, le=600)] = 5
    """Time for each move in such a room, in addition to the bank, in seconds."""
    ready_after_s: Seconds = 1.0
    """Delay before we say ready, after taking a seat and after a hand."""
    wait_s: Seconds = 600.0
    """Leave a room in which no game starts for this long. 0: never."""
    look_s: Seconds = 10.0
    """In a room that we opened, look this often whether it changed, and alone, for players in other rooms. 0: never."""
    settle_s: Seconds = 2.0
    """How long after a login the lobby may take to offer the return to a game."""
    answer_timeout_s: PositiveSeconds = 10.0
    """How long logging in and returning may each take."""
    echo_s: PositiveSeconds = 3.0
    """How long to wait for the echo of our move. The lobby ignores a move that it refuses."""


class OpenMahjongAttributes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``attributes`` of a wish at open_mahjong."""

    room: int | str = ""
    """Number of the room."""
    room_name: str | int = ""
    """Name of the room."""
    password: str | int = ""
    """Password of the room."""
    robots: Annotated[int, Meta(ge=0, le=3)] = 0
    """Default: the option ``robots``."""
    game_round: Annotated[int, Meta(ge=1, le=4)] = 1
    """Default: the option ``game_round``."""
    create: bool = True
    """Default: the option ``create``."""
    queue: str = ""
    """Type of the match queue, in the lobby's words."""


def rules_of(minimum: int) -> m.Json:
    """Canonical rules of a room where a win needs at least ``minimum`` points."""
    rules: m.Json = {"preset": "open-mahjong"}
    return rules if minimum == 8 else {**rules, "minimum": minimum}
