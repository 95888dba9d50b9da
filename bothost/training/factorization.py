"""Multi-class factorization machines over sparse binary features, with softmax over the legal classes.

With per-class factors each class has its own machine of Rendle (ICDM 2010). Shared factors are one set for all classes,
mixed by a weight per class and factor. Without factors it is multinomial logistic regression. The native code runs on
one thread and releases the GIL. Equal seeds and orders give equal parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bothost.native import _native

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]
Reading = Literal["pair", "nested", "separate"]
TOGETHER = 20_000
"""Samples, or rows, that are processed at a time where that takes several times the memory of the result."""


@dataclass(frozen=True)
class SparseRows:
    """Rows of indices: row s is ``items[offsets[s]:offsets[s + 1]]``, ascending and distinct."""

    offsets: OffsetArray
    """int64, shape (rows + 1,), from 0."""
    items: IntArray
    """int32."""

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | npt.NDArray[np.integer]]) -> SparseRows:
        """Make it from single rows."""
        arrays = [np.asarray(row, np.int32) for row in rows]
        offsets = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum([len(array) for array in arrays], out=offsets[1:])
        return cls(offsets, np.concatenate(arrays) if arrays else np.zeros(0, np.int32))

    @classmethod
    def of_items(cls, count: int, rows: npt.NDArray[np.integer], items: npt.NDArray[np.integer]) -> SparseRows:
        """Make ``count`` rows from items in any order, by the row and the index of each."""
        order = np.lexsort((items, rows))
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
        return cls(offsets, items[order].astype(np.int32))

    @classmethod
    def joined(cls, parts: Sequence[SparseRows]) -> SparseRows:
        """All rows of one or more parts."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(np.append(0, np.cumsum(lengths)), np.concatenate([part.items for part in parts]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> IntArray:
        return self.items[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: npt.NDArray[np.integer]) -> SparseRows:
        """Return these rows, in this order."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        items = np.empty(offsets[-1], np.int32)
        for begin in range(0, len(rows), TOGETHER):
            some = rows[begin : begin + TOGETHER]
            items[offsets[begin] : offsets[begin + len(some)]] = self.items[self.places(some)]
        return SparseRows(offsets, items)

    @property
    def arrays(self) -> tuple[OffsetArray, IntArray]:
        """Offsets and items, as native functions take them."""
        return self.offsets, self.items

    @property
    def row_of(self) -> OffsetArray:
        """int64, shape (items,): the row of each item."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def places(self, rows: npt.NDArray[np.integer]) -> OffsetArray:
        """Return the indices of the items of these rows, row after row."""
        starts, lengths = self.offsets[rows], np.diff(self.offsets)[rows]
        ends = np.cumsum(lengths)
        return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)

    def dense(self, width: int) -> FloatArray:
        """float32, shape (rows, width): 1 where an index is set, 0 elsewhere."""
        return self.flags(width).astype(np.float32)

    def flags(self, width: int) -> npt.NDArray[np.bool_]:
        """bool, shape (rows, width): whether an index is set."""
        out = np.zeros((len(self), width), np.bool_)
        out[self.row_of, self.items] = True
        return out


@dataclass(frozen=True)
class Samples:
    """Decisions: the set features, the legal classes, the chosen class."""

    features: SparseRows
    legal: SparseRows
    labels: IntArray
    """int32, shape (samples,): each one of the sample's legal classes."""
    alternatives: SparseRows | None = None
    """Features of each legal class, one row per item of ``legal``. Linear models may use them; factorization machines
    ignore them."""

    @classmethod
    def joined(cls, parts: Sequence[Samples]) -> Samples:
        """All samples of one or more parts."""
        if len(parts) == 1:
            return parts[0]
        own = [part.alternatives for part in parts if part.alternatives is not None]
        return cls(
            SparseRows.joined([part.features for part in parts]),
            SparseRows.joined([part.legal for part in parts]),
            np.concatenate([part.labels for part in parts]),
            SparseRows.joined(own) if own else None,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def parts(self) -> Iterator[Samples]:
        """The samples in order, in parts of at most ``TOGETHER``; one part if there are no more."""
        if len(self) <= TOGETHER:
            yield self
            return
        for rows in np.array_split(np.arange(len(self)), -(-len(self) // TOGETHER)):
            yield self.take(rows)

    @property
    def chosen(self) -> npt.NDArray[np.bool_]:
        """Shape of ``legal.items``: whether the class is its sample's label."""
        chosen: npt.NDArray[np.bool_] = self.legal.items == self.labels[self.legal.row_of]
        return chosen

    def take(self, rows: npt.NDArray[np.integer]) -> Samples:
        """Return these samples, in this order."""
        own = self.alternatives
        return Samples(
            self.features.take(rows),
            self.legal.take(rows),
            self.labels[rows],
            None if own is None else own.take(self.legal.places(rows)),
        )


@dataclass(frozen=True)
class PairLosses:
    """The loss of a machine without its pair terms. A clone uses it to choose new features."""

    base: float
    """Mean cross-entropy of the machine itself."""
    first: IntArray
    second: IntArray
    """Pairs ``first < second`` that are set together in some sample, ascending."""
    losses: tuple[npt.NDArray[np.float64], ...]
    """Mean cross-entropy of each ablated model over all samples, shape (pairs,): one array, or three."""

    @property
    def smallest(self) -> npt.NDArray[np.float64]:
        """Return the smallest loss of each pair: the least cost of removing it."""
        smallest: npt.NDArray[np.float64] = np.minimum.reduce(self.losses)
        return smallest


class FactorizationMachine:
    """y_r(x) = b_r + sum of w_ir + sum of <i, j>_r over the features i < j that are set."""

    def __init__(
        self,
        features: int,
        classes: int,
        factors: int,
        *,
        shared: bool = False,
        seed: int = 0,
        deviation: float = 0.01,
    ) -> None:
        """Factors start normal with this deviation, everything else at 0. Raises ValueError for sizes out of range."""
        self.features, self.classes, self.factors, self.shared = features, classes, factors, shared
        self._native = _native.FactorizationMachine(features, classes, factors, shared, seed, deviation)

    def train(
        self,
        samples: Samples,
        order: npt.NDArray[np.int64] | None = None,
        *,
        rate: float = 0.1,
        factor_decay: float = 1e-4,
        weight_decay: float = 0.0,
    ) -> float:
        """Make one AdaGrad step per sample, in this order. Returns the mean cross-entropy (nats) before each step.

        Decay (L2) acts on a row of parameters whenever it is used. Raises ValueError for bad indices or labels.
        """
        if order is None:
            order = np.arange(len(samples), dtype=np.int64)
        parts = samples.features.arrays, samples.legal.arrays, samples.labels
        return self._native.train(*parts, order, rate, factor_decay, weight_decay)

    def probabilities(self, features: SparseRows, legal: SparseRows) -> FloatArray:
        """float32, laid out as ``legal.items``: each row sums to 1."""
        return self._native.probabilities(features.arrays, legal.arrays)

    def pair_losses(self, samples: Samples, reading: Reading = "nested") -> PairLosses:
        """Return the exact loss without each pair's terms.

        ``pair``: without <i, j>. ``nested``: without <i, j>; without <i, j> and w_i; without <i, j> and w_j.
        ``separate``: without <i, j>; without w_i; without w_j.
        """
        parts = samples.features.arrays, samples.legal.arrays, samples.labels
        base, first, second, losses = self._native.pair_losses(*parts, reading)
        return PairLosses(base, first, second, tuple(losses))

    def parameters(self) -> dict[str, FloatArray]:
        """Copies, float32: bias (R), weights (T, R), factors (T, R, k) or (T, k), mixing (R, k), flat, each beside its
        AdaGrad accumulators."""
        return self._native.parameters()

    def load(self, parameters: dict[str, FloatArray]) -> None:
        """Load parameters. Raises ValueError for a wrong name or size."""
        for name, values in parameters.items():
            self._native.load(name, np.ascontiguousarray(values, np.float32).reshape(-1))
