"""A factorization machine that all actions share. It scores each candidate by features of the position and its own.

``y = sum of w_j + sum of <v_i, v_j> + sum of c_h · max(0, d_h + sum of u_ih)``. j are set features of the candidate.
i are those of the position and the candidate. A pair needs a feature of the candidate: a pair of features of the
position would add the same to every candidate. ``quadratic`` factors are Rendle's (ICDM 2010). Each is half the square
of a sum over the features. ``rectified`` factors cut the same sum off at 0 instead, and can express more than pairs. A
known player is one more feature of the position, so a player costs one row of factors.

The work is done natively, on one thread, with the GIL released; equal seeds and orders give equal parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.native import _native
from bothost.training.factorization import FloatArray, IntArray, OffsetArray, Samples, SparseRows

UNKNOWN = -1
"""Stands for a player without a row."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a machine."""

    positions: int
    """Features of a position."""
    choices: int
    """Features of a candidate."""
    classes: int
    """Candidates are of these classes."""
    players: int = 0
    quadratic: int = 32
    rectified: int = 64
    embedded: int | None = None
    """Features of candidates from this one on have a weight only, no factors. None: all have both."""

    @property
    def width(self) -> int:
        """Factors of a feature."""
        return self.quadratic + self.rectified


class ConditionalMachine:
    """The machine. ``Samples.alternatives`` are the features of the candidates."""

    def __init__(self, shape: Shape, *, seed: int = 0, deviation: float = 0.05) -> None:
        """Factors begin normal with this deviation, weights and players at 0. Raises ValueError for bad sizes."""
        self.shape = shape
        self._native = _native.ConditionalMachine(
            shape.positions,
            shape.choices,
            shape.players,
            shape.classes,
            shape.quadratic,
            shape.rectified,
            shape.choices if shape.embedded is None else shape.embedded,
            seed,
            deviation,
        )

    def train(
        self,
        samples: Samples,
        order: npt.NDArray[np.int64] | None = None,
        *,
        players: IntArray | None = None,
        rate: float = 0.05,
        decay: float = 0.0,
        batch: int = 8,
        players_only: bool = False,
    ) -> float:
        """AdaGrad steps of ``batch`` samples each. Returns the mean cross-entropy (nats) before each step.

        ``decay`` (L2) pulls a row towards its anchor whenever it is used. ``players_only``: only rows of players move.
        Raises ValueError for bad indices or labels.
        """
        if order is None:
            order = np.arange(len(samples), dtype=np.int64)
        who = _players(samples, players)
        return self._native.train(*_rows(samples), who, samples.labels, order, rate, decay, batch, players_only)

    def probabilities(self, samples: Samples, players: IntArray | None = None) -> FloatArray:
        """float32, laid out as ``samples.legal.items``: each row sums to 1."""
        return self._native.probabilities(*_rows(samples), _players(samples, players))

    def pair_losses(self, samples: Samples, players: IntArray | None = None) -> PairLosses:
        """What pairs of features are worth: see :class:`PairLosses`. Exact."""
        return PairLosses(*self._native.pair_losses(*_rows(samples), _players(samples, players), samples.labels))

    def anchor(self) -> None:
        """Let decay pull towards the parameters as they are now, and begin AdaGrad's accumulators anew."""
        self._native.anchor()

    def parameters(self) -> dict[str, FloatArray]:
        """Copies, float32, flat: weights (choices), factors (positions + choices + players, width), bias and readout
        (rectified)."""
        return self._native.parameters()

    def load(self, parameters: dict[str, FloatArray]) -> None:
        """Load parameters. Raises ValueError for a wrong name or size."""
        for name, values in parameters.items():
            self._native.load(name, np.ascontiguousarray(values, np.float32).reshape(-1))


@dataclass(frozen=True)
class PairLosses:
    """The loss of a machine without the terms of a pair. Features are numbered positions first, then candidates'."""

    base: float
    """Mean cross-entropy of the machine itself."""
    first: IntArray
    second: IntArray
    """Pairs ``first < second`` that some candidate has; ``second`` is a feature of candidates."""
    smallest: npt.NDArray[np.float64]
    """The smallest mean cross-entropy of three ablated models: without <i, j>; also without w_j; also without w_i. A
    feature of the position has no weight, so there are two then."""


def extended(samples: Samples, pairs: IntArray, positions: int, choices: int) -> SparseRows:
    """The features of candidates, with conjunctions.

    ``pairs``, int32 (n, 2): conjunction n gets number ``choices + n`` among the candidates' features. Its parts come
    before it, in ascending order, numbered as in :class:`PairLosses`. The second is of candidates. Raises ValueError
    for others.
    """
    flat = np.ascontiguousarray(pairs, np.int32).reshape(-1)
    return SparseRows(*_native.extend_choices(positions, choices, flat, *_rows(samples)))


def _rows(samples: Samples) -> tuple[OffsetArray, IntArray, OffsetArray, IntArray, OffsetArray, IntArray]:
    features, legal, own = samples.features, samples.legal, _own(samples)
    return features.offsets, features.items, legal.offsets, legal.items, own.offsets, own.items


def _own(samples: Samples) -> SparseRows:
    if samples.alternatives is None:
        return SparseRows(np.zeros(len(samples.legal.items) + 1, np.int64), np.zeros(0, np.int32))
    return samples.alternatives


def _players(samples: Samples, players: IntArray | None) -> IntArray:
    return np.full(len(samples), UNKNOWN, np.int32) if players is None else players.astype(np.int32, copy=False)


__all__ = ["UNKNOWN", "ConditionalMachine", "PairLosses", "Shape", "extended"]
