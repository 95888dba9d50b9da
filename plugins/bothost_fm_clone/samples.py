"""Turns logged moves into samples: those with a choice, and their hands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bothost import PlayerMove
from bothost.training.factorization import TOGETHER, IntArray, Samples, SparseRows
from bothost_fm_clone.encode import Encoding, supports


class _Row(NamedTuple):
    """A decision before it is encoded together with others: what ``Encoding`` returns, and fields of ``Decisions``."""

    features: IntArray
    legal: IntArray
    own: list[IntArray]
    label: int
    hand: int
    part: float
    held_out: bool
    player: str


@dataclass(frozen=True)
class Decisions:
    """Decisions among at least two classes, in the order in which they were made."""

    samples: Samples
    """With base features and features of the legal classes' afterstates."""
    hands: npt.NDArray[np.int64]
    """int64, shape (samples,): number of the hand, ascending from 0."""
    parts: npt.NDArray[np.float64]
    """float64, shape (samples,): a hash of the hand, uniform in [0, 1), to split hands."""
    held_out: npt.NDArray[np.bool_]
    """shape (samples,): whether the hand is in the split ``test``, which must not be used for training."""
    players: npt.NDArray[np.object_]
    """str, shape (samples,): the player."""

    @classmethod
    def joined(cls, parts: Sequence[Decisions]) -> Decisions:
        """All decisions of one or more parts."""
        return cls(
            Samples.joined([part.samples for part in parts]),
            np.concatenate([part.hands for part in parts]),
            np.concatenate([part.parts for part in parts]),
            np.concatenate([part.held_out for part in parts]),
            np.concatenate([part.players for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.samples)

    def where(self, mask: npt.NDArray[np.bool_]) -> Decisions:
        """The decisions that a mask selects."""
        rows = np.flatnonzero(mask)
        return Decisions(
            self.samples.take(rows), self.hands[rows], self.parts[rows], self.held_out[rows], self.players[rows]
        )

    @property
    def number_of_hands(self) -> int:
        return len(np.unique(self.hands))

    def first_hands(self, count: int) -> Decisions:
        """The decisions of the first ``count`` hands."""
        known = np.unique(self.hands)
        return self if len(known) <= count else self.where(self.hands < known[count])


def decisions(moves: Iterable[PlayerMove], encoding: Encoding) -> Decisions:
    """Encode moves. Forced moves, bids, and games that cannot be encoded are left out."""
    rows = _rows(moves, encoding)
    parts = []
    while together := list(islice(rows, TOGETHER)):
        parts.append(_encoded(together, encoding))
    return Decisions.joined(parts or [_encoded([], encoding)])


def _rows(moves: Iterable[PlayerMove], encoding: Encoding) -> Iterator[_Row]:
    last, number, part = "", -1, 0.0
    for move in moves:
        if len(move.legal) < 2 or not supports(move.game):
            continue
        choices = encoding.choices(move.view, move.legal)
        chosen = int(encoding.class_of[move.action])
        if len(choices) < 2 or chosen < 0:
            continue
        if move.game_id != last:
            last, number, part = move.game_id, number + 1, part_of(move.game_id)
        view = encoding.encode(move.view), choices, encoding.own(move.view, choices)
        yield _Row(*view, chosen, number, part, move.split == "test", move.player)


def _encoded(rows: Sequence[_Row], encoding: Encoding) -> Decisions:
    features, legal, own, labels, hands, parts, held_out, players = zip(*rows, strict=True) if rows else [()] * 8
    seen, classes = SparseRows.of(features), SparseRows.of(legal)
    return Decisions(
        Samples(seen, classes, np.array(labels, np.int32), encoding.candidates(seen, classes, own)),
        np.array(hands, np.int64),
        np.array(parts, np.float64),
        np.array(held_out, np.bool_),
        np.array(players, np.object_),
    )


def part_of(game_id: str) -> float:
    """A number in [0, 1) that depends on the hand's id only."""
    return int.from_bytes(hashlib.sha256(game_id.encode()).digest()[:6]) / 2**48
