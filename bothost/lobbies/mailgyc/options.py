"""Options and timers of mailgyc."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bothost.lobbies.base import PositiveSeconds, Seconds

HELLO, REJOIN = "hello", "rejoin"
"""Timers of the session: the lobby must have answered; ask for a room again."""
READY, STALL = "ready", "stall"
"""Timers of a seat: say ready; check the table's progress."""
TIMERS = (HELLO, REJOIN, READY, STALL)


class MailgycOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of mailgyc."""

    level: int = 1
    """The level of a wish without a level. Only at level 1 do the server's robots join a lone player, after 10 s."""
    ready_after_s: Seconds = 1.0
    """Delay before we say ready, after taking a seat and after a hand."""
    stall_s: Seconds = 120.0
    """Leave a table after this long without a move, because the lobby does not enforce its 40 s. 0: never.

    Also after this long between two hands, if a player is gone: the lobby does not fill the seat again."""
    wait_s: Seconds = 600.0
    """Leave a table at which no hand starts for this long. 0: never."""
    answer_timeout_s: PositiveSeconds = 10.0
    """How long logging in, greeting and coming back may each take."""
    pause_s: Seconds = 1.0
    """Delay between the end of one socket and the next login. The lobby must first notice that the old one ended."""


class MailgycAttributes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``attributes`` of a wish at mailgyc."""

    level: int = 1
    """Default: the option ``level``."""
    room: int | Annotated[str, Meta(pattern=r"^-?\d+\Z", description="a number", examples=["17"])] = -1
    """Number of the room; -1: any."""
