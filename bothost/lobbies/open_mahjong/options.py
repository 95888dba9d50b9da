"""What the configuration sets at open_mahjong, and the names of the adapter's timers."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bothost import messages as m
from bothost.lobbies.open_mahjong import protocol as wire

GAME = "mahjong"

HELLO, SETTLE = "hello", "settle"
"""Timers of the login: the lobby must answer; it would have offered the way back into a game by now."""
BEGIN, WAIT, LOOK = "begin", "wait", "look"
"""Timers of a room: say ready or start; no game started; look for a fuller room."""
ECHO, NEXT, RESYNC = "echo", "next", "resync"
"""Timers of a game: our move must be seen; say ready for the next hand; reconnect for a snapshot."""
CHAT = "chat"
"""Timer: connect to the chat server again."""
TIMERS = (HELLO, SETTLE, BEGIN, WAIT, LOOK, ECHO, NEXT, RESYNC)


class OpenMahjongOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of open_mahjong."""

    username: str = ""
    """Default: the account's name. The lobby registers an unknown name, three a day and address."""
    chat_url: str = ""
    """Address of the chat server, such as ``ws://lobby.example:8083/chat``, or a path on the lobby's host, ``/chat``.
    Default: no chat."""
    tourist: bool = False
    """Log in as a guest, without a password. A lost connection then loses the game."""
    release_version: int = wire.RELEASE_VERSION
    room_name: str = "bots"
    """Of rooms that we open."""
    create: bool = True
    """Whether to open a room where none fits."""
    robots: Annotated[int, Meta(ge=0, le=3)] = 0
    """How many of the server's robots fill a room of ours."""
    game_round: Annotated[int, Meta(ge=1, le=4)] = 1
    """Length of a match in a room that we open: rounds of four hands."""
    round_timer: Annotated[int, Meta(ge=0, le=600)] = 20
    """Its bank, in seconds."""
    step_timer: Annotated[int, Meta(ge=1, le=600)] = 5
    """Its seconds for each step, on top of the bank."""
    ready_after_s: float = 1.0
    """Delay before we say ready, after taking a seat and after a hand."""
    wait_s: float = 600.0
    """Leave a room in which no game started for so long. 0: never."""
    look_s: float = 10.0
    """Alone in a room that we opened, look this often for people who wait in another. 0: never."""
    settle_s: float = 2.0
    """How long after a login the lobby may take to offer the way back into a game."""
    answer_timeout_s: float = 10.0
    """How long logging in and coming back may each take."""
    echo_s: float = 3.0
    """The lobby ignores a move that it refuses. Wait this long to see ours made."""


def rules_of(minimum: int) -> m.Json:
    """Canonical rules of a room with this minimum of points."""
    rules: m.Json = {"preset": "open-mahjong"}
    return rules if minimum == 8 else {**rules, "minimum": minimum}
