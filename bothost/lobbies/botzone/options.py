"""Options and timers of botzone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bothost.lobbies.base import PositiveSeconds, Seconds

HELLO, AGAIN, TAKEN, GATHER, START = "hello", "again", "taken", "gather", "start"
"""Timers, in order: an open poll counts as logged in; poll again; an open poll has delivered its answers; poll without
waiting for the host's decisions; the next match may be ordered."""
STALL = "stall:"
"""Prefix of a match's timer."""


class BotzoneOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of botzone."""

    time_limit_s: PositiveSeconds = 10.0
    """Time per move. We order matches with it, and assume it for matches that people make."""
    hello_s: Seconds = 3.0
    """If the first poll stays open for this long, we are logged in."""
    poll_s: PositiveSeconds = 120.0
    """The longest time that a poll may stay open."""
    retry_s: PositiveSeconds = 5.0
    """Delay after a poll that failed."""
    start_every_s: Seconds = 5.0
    """Minimum time between two matches that we order."""
    stall_s: PositiveSeconds = 1800.0
    """Leave a match after this long without a message."""


class BotzoneAttributes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``attributes`` of a wish at Botzone."""

    opponents: list[str] = []
    """Ids of bots, one for each other seat. Without: wait for a match that another player starts."""
    slot: Annotated[int, Meta(ge=0, le=3)] = 0
    """Our place among the players. Default: one after another."""
    botzone: Literal["FightTheLandlord", "FightTheLandlord2", "Chinese-Standard-Mahjong", "Reversi"] | None = None
    """Botzone's name of the game, where ours leaves it open."""
    initdata: Any = None
    """What the game's judge is given."""
