"""One recorded hand, independent of its file format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from bothost.messages import PlayerInfo
from bothost.rules.game import State

Json = dict[str, Any]
Action = tuple[int, str | int]
"""A seat, and the notation or the id of its action."""


class BadRecord(ValueError):
    """A record that cannot be imported. The message says why."""


def act(state: State, seat: int, word: str, where: str) -> None:
    """Apply a recorded action, in notation. Raises BadRecord. ``where``: its place in the record."""
    if state.terminal or seat not in state.to_act:
        raise BadRecord(f"{where}: seat {seat} is not asked")
    try:
        action = state.game.parse(word)
    except ValueError as error:
        raise BadRecord(f"{where}: {error}") from None
    if action not in state.legal(seat):
        raise BadRecord(f"{where}: {word} is not legal there for seat {seat}")
    state.apply(seat, action)


def claiming(state: State) -> bool:
    """Whether seats of a mahjong hand may claim a tile now."""
    return not state.terminal and state.view(state.to_act[0]).phase in ("claims", "robbing")


class HandRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to replay a hand."""

    game: str
    rules: Json = {}
    deal: Json | None = None
    """In the format of ``State.deal``. None: use ``seed``."""
    seed: int | None = None
    """For ``Game.new_state``; None: the game has only one deal."""
    actions: tuple[Action, ...]
    players: tuple[PlayerInfo, ...] = ()
    """The named players."""
    scores: tuple[float, ...] | None = None
    """Recorded scores. The replayed hand must agree."""
    exact: bool = True
    """Whether the scores must be equal; otherwise the same seats must have won."""
    started_us: int | None = None
    source: str = ""
    """The record's own id."""
    away: tuple[int, ...] = ()

    def digest(self) -> str:
        """Return a hash of the record, which is the hand's name in the log."""
        text = msgspec.json.encode(self, order="deterministic")
        return hashlib.blake2b(text, digest_size=16).hexdigest()


class ReadRecord(msgspec.Struct, frozen=True):
    """A record with its line number."""

    line: int
    """Number of its first line, from 1."""
    record: HandRecord | None
    why: str = ""
    """Why there is no record."""


Records = Iterator[ReadRecord]
