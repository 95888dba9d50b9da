"""The directions in which players differ, and where a new player lies on them.

The crowd's machine is fitted to each player of the crowd. The principal components of the differences to the crowd
are the directions, each with the length of its standard deviation. A player then is a few coordinates with a standard
normal prior. Their most probable values are found by Newton's method, on scores that are linear in the coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.training.conditional import ConditionalMachine
from bothost.training.factorization import FloatArray, Samples

Parameters = Mapping[str, FloatArray]
Matrix = npt.NDArray[np.float64]
STEP = 0.05
"""Of the finite differences, in standard deviations."""
MOST_STEPS, ENOUGH = 10, 1e-4
"""Newton's method ends after this many steps, or when a step gains less (nats)."""
PER_DIRECTION = 4
"""Players of the crowd for each direction. With fewer, a direction would be one player."""


@dataclass(frozen=True)
class Directions:
    """Directions in the space of all parameters, in numbers of 8 bits."""

    codes: npt.NDArray[np.int8]
    """int8, shape (directions, parameters). A parameter is ``scale * sign(code) * code ** 2``: small ones matter."""
    scales: FloatArray
    """float32, shape (directions,)."""

    @classmethod
    def of(cls, differences: npt.NDArray[np.float32], most: int) -> Directions | None:
        """The principal components of players' differences, float32 (players, parameters). None: too few players."""
        count = min(most, len(differences) // PER_DIRECTION)
        if not count:
            return None
        centred = differences - differences.mean(axis=0)
        _, vectors = np.linalg.eigh((centred @ centred.T).astype(np.float64))
        # An eigenvector times the differences has the length of the singular value, the root of a sum over players.
        found = vectors[:, : -count - 1 : -1].T @ centred / np.sqrt(len(differences))
        scales = np.maximum(np.abs(found).max(axis=1), 1e-12) / 127**2
        codes = np.rint(np.sign(found) * np.sqrt(np.abs(found) / scales[:, None]))
        return cls(codes.astype(np.int8), scales.astype(np.float32))

    def __len__(self) -> int:
        return len(self.codes)

    def at(self, begin: Parameters, coordinates: npt.NDArray[np.floating]) -> dict[str, FloatArray]:
        """Parameters that lie at these coordinates from ``begin``."""
        weights = (coordinates * self.scales).astype(np.float32)
        change = np.zeros(self.codes.shape[1], np.float32)
        for code, weight in zip(self.codes, weights, strict=True):
            if weight:
                own = code.astype(np.float32)
                change += weight * own * np.abs(own)
        return unflat(flat(begin) + change, begin)


def flat(parameters: Parameters) -> FloatArray:
    """All parameters in the order of their names."""
    return np.concatenate([parameters[name] for name in sorted(parameters)])


def unflat(values: FloatArray, like: Parameters) -> dict[str, FloatArray]:
    """What ``flat`` made, with the sizes of ``like``."""
    names = sorted(like)
    return dict(zip(names, np.split(values, np.cumsum([len(like[name]) for name in names])[:-1]), strict=True))


@dataclass(frozen=True)
class Tangent:
    """The scores of decisions' candidates around the crowd's parameters, linear in the coordinates."""

    scores: Matrix
    """float64, shape (candidates,), up to a constant for each decision."""
    slopes: Matrix
    """float64, shape (candidates, directions)."""

    @classmethod
    def of(cls, machine: ConditionalMachine, directions: Directions, seen: Samples) -> Tangent:
        """By finite differences. The machine has the crowd's parameters afterwards, as before."""
        begin = machine.parameters()
        scores = _log_odds(machine, seen)
        slopes = np.empty((len(scores), len(directions)))
        for number, step in enumerate(np.eye(len(directions)) * STEP):
            machine.load(directions.at(begin, step))
            slopes[:, number] = (_log_odds(machine, seen) - scores) / STEP
        machine.load(begin)
        return cls(scores, slopes)

    def most_probable(self, seen: Samples, rows: npt.NDArray[np.integer]) -> Matrix:
        """The coordinates with the highest posterior density, from these decisions of the samples."""
        among, lengths = seen.legal.places(rows), np.diff(seen.legal.offsets)[rows]
        return _Posterior(self.scores[among], self.slopes[among], lengths, seen.chosen[among]).maximum()


@dataclass(frozen=True)
class _Posterior:
    """Of the coordinates: the cross-entropy of the choices plus half the square of the coordinates."""

    scores: Matrix
    slopes: Matrix
    lengths: npt.NDArray[np.integer]
    """Number of candidates of each decision."""
    chosen: npt.NDArray[np.bool_]
    """Which candidates were chosen."""

    @property
    def begin(self) -> npt.NDArray[np.integer]:
        found: npt.NDArray[np.integer] = np.cumsum(self.lengths) - self.lengths
        return found

    def maximum(self) -> Matrix:
        """Newton's method with halved steps. The function is convex."""
        at = np.zeros(self.slopes.shape[1])
        loss, odds = self.loss(at)
        for _ in range(MOST_STEPS):
            step = self._step(at, odds)
            less, next_odds = self.loss(at - step)
            while less > loss and np.abs(step).max() > ENOUGH:
                step = step / 2
                less, next_odds = self.loss(at - step)
            gain = loss - less
            if gain < ENOUGH:
                break
            at, odds, loss = at - step, next_odds, less
        return at

    def loss(self, at: Matrix) -> tuple[float, Matrix]:
        """The value at these coordinates, and the probability of each candidate."""
        own = self.scores + self.slopes @ at
        own -= np.repeat(np.maximum.reduceat(own, self.begin), self.lengths)
        odds = np.exp(own)
        total = np.add.reduceat(odds, self.begin)
        loss = (np.log(total) - own[self.chosen]).sum() + at @ at / 2
        return float(loss), odds / np.repeat(total, self.lengths)

    def _step(self, at: Matrix, odds: Matrix) -> Matrix:
        weighted = self.slopes * odds[:, None]
        means = np.add.reduceat(weighted, self.begin, axis=0)
        gradient = means.sum(axis=0) - self.slopes[self.chosen].sum(axis=0) + at
        curvature = weighted.T @ self.slopes - means.T @ means + np.eye(len(at))
        found: Matrix = np.linalg.solve(curvature, gradient)
        return found


def _log_odds(machine: ConditionalMachine, seen: Samples) -> Matrix:
    odds = machine.probabilities(seen, np.zeros(len(seen), np.int32))
    found: Matrix = np.log(np.maximum(odds, 1e-12)).astype(np.float64)
    return found


def differences(begin: Parameters, fitted: Iterable[Parameters]) -> npt.NDArray[np.float32]:
    """float32, shape (players, parameters)."""
    start = flat(begin)
    return np.stack([flat(parameters) - start for parameters in fitted])
