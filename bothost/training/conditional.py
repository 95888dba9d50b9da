"""A factorization machine that scores each candidate action by features of the position and of the candidate.

``y = sum of w_j + sum of <v_i, v_j> + sum of c_h · max(0, d_h + sum of u_ih)``. j runs over the set features of the
candidate, i over those of the position and the candidate. Pairs of two position features are left out, because they add
the same to every candidate. ``quadratic`` factors are Rendle's (ICDM 2010): half the square of a sum over the features.
``rectified`` factors apply ReLU to that sum instead, and can express more than pairs. A known player is one more
feature of the position, so a player costs one row of factors.

The native code runs on one thread and releases the GIL. Equal seeds and orders give equal parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.native import _native
from bothost.training.factorization import FloatArray, IntArray, OffsetArray, PairLosses, Samples, SparseRows

Arrays = tuple[OffsetArray, IntArray]

UNKNOWN = -1
"""Index of a player without a row."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a machine."""

    positions: int
    """Number of features of a position."""
    choices: int
    """Number of features of a candidate."""
    classes: int
    """Number of classes of candidates."""
    players: int = 0
    quadratic: int = 32
    rectified: int = 64
    embedded: int | None = None
    """Features of candidates from this one on have a weight only, no factors. None: all have both."""

    @property
    def width(self) -> int:
        """Number of factors per feature."""
        return self.quadratic + self.rectified

    @property
    def rows(self) -> int:
        """Number of rows of factors."""
        return self.positions + self.choices + self.players


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
        """Return the exact losses without each pair of features that some candidate has.

        Features are numbered positions first, then candidates'; ``second`` is of candidates. ``losses`` holds one
        array: the smallest of three ablated models: without <i, j>; also without w_j; also without w_i. A feature of
        the position has no weight, so there are two then.
        """
        parts = (*_rows(samples), _players(samples, players), samples.labels)
        base, first, second, smallest = self._native.pair_losses(*parts)
        return PairLosses(base, first, second, (smallest,))

    def anchor(self) -> None:
        """Set the current parameters as the anchor of decay, and reset AdaGrad's accumulators."""
        self._native.anchor()

    def parameters(self) -> dict[str, FloatArray]:
        """Copies, float32, flat: weights (choices), factors (positions + choices + players, width), bias and readout
        (rectified)."""
        return self._native.parameters()

    def load(self, parameters: dict[str, FloatArray]) -> None:
        """Load parameters. Raises ValueError for a wrong name or size."""
        for name, values in parameters.items():
            self._native.load(name, np.ascontiguousarray(values, np.float32).reshape(-1))


def extended(samples: Samples, pairs: IntArray, positions: int, choices: int) -> SparseRows:
    """The features of candidates, with conjunctions.

    ``pairs``, int32 (n, 2): conjunction n gets number ``choices + n`` among the candidates' features. Its parts come
    before it, in ascending order, numbered as in ``pair_losses``. The second is of candidates. Raises ValueError
    for others.
    """
    flat = np.ascontiguousarray(pairs, np.int32).reshape(-1)
    return SparseRows(*_native.extend_choices(positions, choices, flat, *_rows(samples)))


def _rows(samples: Samples) -> tuple[Arrays, Arrays, Arrays]:
    own = samples.alternatives
    if own is None:
        own = SparseRows(np.zeros(len(samples.legal.items) + 1, np.int64), np.zeros(0, np.int32))
    return samples.features.arrays, samples.legal.arrays, own.arrays


def _players(samples: Samples, players: IntArray | None) -> IntArray:
    return np.full(len(samples), UNKNOWN, np.int32) if players is None else players.astype(np.int32, copy=False)
