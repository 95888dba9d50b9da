"""Combinations of features: conjunctions of two features, each of which may be a combination itself.

They form a directed acyclic graph. A combination has a higher number than its two features, so the numbers are a
topological order, and one pass in this order evaluates all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bothost.training.factorization import IntArray, SparseRows

CHUNK = 8192
"""Samples that are evaluated together."""


@dataclass(frozen=True)
class Combinations:
    """Feature ``base + n`` is the conjunction of the two features ``pairs[n]``."""

    base: int
    """Number of base features."""
    pairs: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    """int32, shape (combinations, 2), each row ascending and below its own number."""

    def __post_init__(self) -> None:
        """Raises ValueError if the pairs are not such a graph."""
        if self.base < 1 or self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
            raise ValueError("combinations must be pairs of features")
        first, second = self.pairs[:, 0], self.pairs[:, 1]
        own = self.base + np.arange(len(self.pairs))
        if (first < 0).any() or (first >= second).any() or (second >= own).any():
            raise ValueError("a combination must have two features with lower numbers, in ascending order")

    def __len__(self) -> int:
        """Number of all features, including combinations."""
        return self.base + len(self.pairs)

    def with_pairs(self, pairs: Sequence[tuple[int, int]]) -> Combinations:
        """These combinations, and more."""
        return Combinations(self.base, np.concatenate([self.pairs, np.array(pairs, np.int32).reshape(-1, 2)]))

    def evaluate(self, features: IntArray) -> IntArray:
        """All features that are set if these base features are, ascending."""
        known = [False] * len(self)
        for index in features.tolist():
            known[index] = True
        more = []
        for number, (first, second) in enumerate(self._listed, self.base):
            if known[first] and known[second]:
                known[number] = True
                more.append(number)
        return np.concatenate([features, np.array(more, np.int32)])

    def extend(self, rows: SparseRows) -> SparseRows:
        """``evaluate`` for many rows of base features."""
        if not len(self.pairs) or not len(rows):
            return rows
        parts = []
        for start in range(0, len(rows), CHUNK):
            chunk = rows.take(np.arange(start, min(start + CHUNK, len(rows))))
            known = np.zeros((len(self), len(chunk)), np.bool_)
            known[chunk.items, chunk.row_of] = True
            for number, (first, second) in enumerate(self._listed, self.base):
                np.logical_and(known[first], known[second], out=known[number])
            row, item = np.nonzero(known.T)
            parts.append((np.bincount(row, minlength=len(chunk)), item.astype(np.int32)))
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(np.concatenate([lengths for lengths, _ in parts]), out=offsets[1:])
        return SparseRows(offsets, np.concatenate([items for _, items in parts]))

    @cached_property
    def _listed(self) -> list[tuple[int, int]]:
        return [(int(first), int(second)) for first, second in self.pairs]

    @cached_property
    def made_of(self) -> tuple[frozenset[int], ...]:
        """For each feature, the base features that must all be set."""
        made = [frozenset([index]) for index in range(self.base)]
        for first, second in self._listed:
            made.append(made[first] | made[second])
        return tuple(made)

    def names(self, index: int, base: Sequence[str]) -> list[str]:
        """Names of a feature's base features."""
        return [base[part] for part in sorted(base_features(index, self.pairs, self.base))]


def base_features(feature: int, pairs: IntArray, base: int) -> frozenset[int]:
    """The base features, those below ``base``, of which a feature is made. Pair n makes feature ``base + n``."""
    seen: set[int] = set()
    open_ = [feature]
    while open_:
        if (part := open_.pop()) in seen:  # each once: the paths through a graph may be beyond counting
            continue
        seen.add(part)
        if part >= base:
            open_ += pairs[part - base].tolist()
    return frozenset(part for part in seen if part < base)
