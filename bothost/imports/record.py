"""One recorded hand, whatever file it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from bothost.messages import PlayerInfo

Json = dict[str, Any]
Action = tuple[int, str | int]
"""A seat, and the notation or the id of its action."""


class BadRecord(ValueError):
    """A record that cannot become a hand, and why."""


class HandRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known to play a hand again."""

    game: str
    rules: Json = {}
    deal: Json | None = None
    """As ``State.deal``. None: ``seed``."""
    seed: int | None = None
    """For ``Game.new_state``; None: the game has one deal only."""
    actions: tuple[Action, ...]
    players: tuple[PlayerInfo, ...] = ()
    """Those who are named."""
    scores: tuple[float, ...] | None = None
    """What the record says; the rebuilt hand must agree."""
    exact: bool = True
    """Whether the scores must be ours; otherwise the same seats must have won."""
    started_us: int | None = None
    source: str = ""
    """The record's own id."""
    away: tuple[int, ...] = ()

    def digest(self) -> str:
        """What identifies the record: the same for equal records."""
        text = msgspec.json.encode(self, order="deterministic")
        return hashlib.blake2b(text, digest_size=16).hexdigest()


class Found(msgspec.Struct, frozen=True):
    """A record at its place in a file."""

    line: int
    """Where it begins, counted from 1."""
    record: HandRecord | None
    why: str = ""
    """What is wrong with it, where there is no record."""


Records = Iterator[Found]
