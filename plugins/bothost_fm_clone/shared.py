"""A clone with one machine for all moves: its file, its scores, and its reasons.

The inputs of its factorization machine are features of the position and the candidate (``sight``), and grown
combinations of them. So it generalizes between similar moves. A player is one more feature, with a row of factors.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from bothost.training.conditional import ConditionalMachine, Shape, extended
from bothost.training.factorization import FloatArray, IntArray, OffsetArray, Samples, SparseRows
from bothost_fm_clone.combinations import base_features
from bothost_fm_clone.directions import Directions
from bothost_fm_clone.encode import Encoding, encoding
from bothost_fm_clone.fit import softmax
from bothost_fm_clone.model import in_order, opened
from bothost_fm_clone.sight import REVISION, Sight, sight
from bothost_fm_clone.symmetries import Symmetry, renamed, shuffled, symmetries

VERSION = 2
"""Encoder version of these models."""
MOST_PAIRS = 100_000
"""Combinations that a file may have."""
EXPLAINED, PAIRED = 8, 4
"""Number of candidates, and of their features, for the reasons of a choice; and number of features for pairs."""


@dataclass(frozen=True)
class SharedClone:
    """Predicts by a softmax over the candidates' scores."""

    encoding: Encoding
    pairs: IntArray
    """int32, shape (combinations, 2), for ``bothost.training.conditional.extended``."""
    parameters: dict[str, FloatArray]
    """Parameters of a machine with one player, whose row is the clone's; zeros for a crowd."""
    quadratic: int
    rectified: int
    directions: Directions | None = None
    """In which players differ. Only crowds have them."""
    symmetric: bool = True
    """Whether scores are means over the game's symmetries. Models of earlier versions are not symmetric."""
    revision: int = REVISION
    """Of the features (see ``sight``)."""
    version: ClassVar[int] = VERSION
    """Of the encoder."""
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    @classmethod
    def blank(cls, own: Encoding, quadratic: int, rectified: int, seed: int, revision: int = REVISION) -> SharedClone:
        """An untrained clone."""
        made = cls(own, np.zeros((0, 2), np.int32), {}, quadratic, rectified, revision=revision)
        return replace(made, parameters=ConditionalMachine(made.shape, seed=seed).parameters())

    @property
    def sight(self) -> Sight:
        return sight(self.encoding.game, self.revision)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Those over which its scores are means."""
        known = symmetries(self.encoding.game)
        return known if self.symmetric else known[:1]

    @property
    def shape(self) -> Shape:
        """Of the machine, with one player. Combinations have no factors."""
        known, classes = self.sight, len(self.encoding.classes)
        positions, choices = len(known.positions), len(known.choices)
        more = len(self.pairs)
        return Shape(positions, choices + more, classes, 1, self.quadratic, self.rectified, embedded=choices)

    @property
    def _of_combinations(self) -> slice:
        """Where the factors of combinations lie among the parameters' factors."""
        shape = self.shape
        end = shape.width * (shape.positions + shape.choices)
        return slice(end - shape.width * len(self.pairs), end)

    def seen(self, samples: Samples, rng: np.random.Generator | None = None) -> Samples:
        """Samples with all features of the machine, from samples of base features.

        ``rng``: draws a symmetry for each of them.
        """
        parts = (self.sight.seen(part) for part in samples.parts())
        drawn = parts if rng is None else (shuffled(part, self.symmetries, rng) for part in parts)
        return Samples.joined([self.combined(part) for part in drawn])

    def combined(self, seen: Samples) -> Samples:
        """Samples with all features of the machine, from those of ``sight``."""
        known = self.sight
        return replace(seen, alternatives=extended(seen, self.pairs, len(known.positions), len(known.choices)))

    def _renamed(self, seen: Samples) -> tuple[Samples, OffsetArray]:
        """Samples of the sight's features with all of the machine, under each symmetry, and where their legal classes
        are then."""
        made, places = renamed(seen, self.symmetries)
        return self.combined(made), places

    def machine(self) -> ConditionalMachine:
        """A new machine with these parameters."""
        made = ConditionalMachine(self.shape)
        made.load(self.parameters)
        return made

    @cached_property
    def _machine(self) -> ConditionalMachine:
        return self.machine()

    def odds(self, one: Samples) -> FloatArray:
        """The probability of each legal class of a single sample, float32."""
        return self.probabilities_of(one)

    def probabilities_of(self, samples: Samples) -> FloatArray:
        """The probabilities of many samples of base features, float32, laid out as ``samples.legal.items``."""
        return np.concatenate([self.probabilities_of_seen(self.sight.seen(part)) for part in samples.parts()])

    def probabilities_of_seen(self, seen: Samples) -> FloatArray:
        """The same of samples with the features of ``sight``: all orientations at once, as for one position calls take
        longer than computing."""
        if len(self.symmetries) == 1:
            return self._odds_of(self.combined(seen))
        turned, places = self._renamed(seen)
        odds = self._odds_of(turned).reshape(len(places), -1)
        logs = np.take_along_axis(np.log(np.maximum(odds, 1e-12)), places, axis=1)
        return softmax(logs.mean(axis=0), np.diff(seen.legal.offsets)).astype(np.float32)

    def _odds_of(self, seen: Samples) -> FloatArray:
        with self._lock:
            return self._machine.probabilities(seen, np.zeros(len(seen), np.int32))

    def reasons(self, one: Samples, chosen: int, count: int = 5) -> list[dict[str, object]]:
        """The features with the largest effect for or against a class, in words.

        The weight of a feature is the change of the choice's lead over the other candidates (weighted by their
        probabilities) if the feature is removed. A feature of the position and one of the candidate can form a pair.
        Its weight is the change if both are removed, less the changes for each alone.
        """
        at = int(np.searchsorted(one.legal[0], chosen))
        seen, places = self._renamed(self.sight.seen(one))
        odds = self._odds_of(seen).reshape(len(places), -1)
        weights: dict[tuple[str, ...], float] = defaultdict(float)
        for n, symmetry in enumerate(self.symmetries):
            reasons = _Reasons(self, seen.take(np.array([n])), odds[n], int(places[n][at]), symmetry)
            for words, weight in reasons.weightiest():
                weights[words] += weight / len(places)
        best = sorted(weights.items(), key=lambda each: -abs(each[1]))[:count]
        told = [{"features": list(words), "weight": round(weight, 3)} for words, weight in best]
        return [reason for reason in told if reason["weight"]]

    @cached_property
    def rounded(self) -> SharedClone:
        """The same clone with parameters rounded to 16 bits, as in a file."""
        parameters = {name: values.astype(np.float16).astype(np.float32) for name, values in self.parameters.items()}
        return replace(self, parameters=parameters)

    def save(self, path: Path) -> None:
        """Write the file. It leaves out the factors of combinations, which are 0."""
        tensors: dict[str, npt.NDArray[Any]] = {"pairs": self.pairs}
        for name, values in self.parameters.items():
            tensors[name] = values.astype(np.float16)
        tensors["factors"] = np.delete(tensors["factors"], self._of_combinations)
        if self.directions is not None:
            tensors |= {"directions": self.directions.codes, "scales": self.directions.scales}
        tensors["sizes"] = np.array([self.quadratic, self.rectified], np.int32)
        metadata = {"game": self.encoding.game, "encoder_version": str(VERSION)}
        metadata |= {"features": str(self.revision)} | ({"symmetric": "yes"} if self.symmetric else {})
        path.write_bytes(in_order(safetensors.numpy.save(tensors, metadata)))


def load(path: Path, game: str) -> SharedClone:
    """Load a clone. Raises ModelError if the file is not a clone, or of another game or encoder version."""
    own = encoding(game)
    with opened(path, (game, VERSION)) as file:
        tensors = {name: file.get_tensor(name) for name in ("pairs", "sizes", "weights", "factors", "bias", "readout")}
        more = {name: file.get_tensor(name) for name in ("directions", "scales") if name in file.keys()}  # noqa: SIM118
        told = file.metadata() or {}
        # Earlier releases named the revision by whether it has values.
        revision = int(told.get("features", "valued" in told))
        made = _checked(own, tensors, revision)
        return replace(_with_directions(made, more), symmetric="symmetric" in told)


def _checked(own: Encoding, tensors: dict[str, npt.NDArray[Any]], revision: int) -> SharedClone:
    pairs, sizes = tensors.pop("pairs"), tensors.pop("sizes")
    if (
        pairs.dtype != np.int32
        or pairs.ndim != 2
        or pairs.shape[1] != 2
        or sizes.dtype != np.int32
        or sizes.shape != (2,)
    ):
        raise ValueError("its tensors have the wrong types")
    if not 0 <= revision <= REVISION:
        raise ValueError("it was made by a newer release")
    if len(pairs) > MOST_PAIRS or sizes.min() < 0 or sizes.max() > 1024:
        raise ValueError("its sizes are out of range")
    if any(
        values.dtype != np.float16 or values.ndim != 1 or not np.isfinite(values).all() for values in tensors.values()
    ):
        raise ValueError("its parameters are not all rows of finite numbers of 16 bits")
    parameters = {name: values.astype(np.float32) for name, values in tensors.items()}
    made = SharedClone(own, pairs, parameters, int(sizes[0]), int(sizes[1]), revision=revision)
    known = made.sight
    gone, factors = made._of_combinations, parameters["factors"]
    if len(factors) == made.shape.rows * made.shape.width - (gone.stop - gone.start):  # else by an earlier release
        parameters["factors"] = np.insert(factors, [gone.start] * (gone.stop - gone.start), 0.0)
    none = Samples(SparseRows.of([]), SparseRows.of([]), np.zeros(0, np.int32), SparseRows.of([]))
    extended(none, pairs, len(known.positions), len(known.choices))  # raises ValueError if the pairs are invalid
    made.machine()  # raises ValueError if the sizes are wrong
    return made


def _with_directions(clone: SharedClone, tensors: dict[str, npt.NDArray[Any]]) -> SharedClone:
    if not tensors:
        return clone
    codes, scales = tensors["directions"], tensors["scales"]
    size = sum(map(len, clone.parameters.values()))
    if codes.dtype != np.int8 or codes.ndim != 2 or codes.shape[1] != size or len(codes) > 1024:
        raise ValueError("its directions are not those of its parameters")
    if scales.dtype != np.float32 or scales.shape != codes.shape[:1] or not np.isfinite(scales).all():
        raise ValueError("the scales of its directions are not finite numbers of 32 bits")
    return replace(clone, directions=Directions(codes, scales))


class _Reasons:
    """Computes the scores of one decision's candidates with some features removed."""

    def __init__(self, clone: SharedClone, seen: Samples, odds: FloatArray, at: int, symmetry: Symmetry) -> None:
        """``seen``: the decision, with all features. ``at``: place of the choice. ``symmetry``: of the names."""
        likely = np.argsort(-odds, kind="stable")[:EXPLAINED]
        rows = np.unique(np.append(likely, at))
        self._clone, self._symmetry = clone, symmetry
        self._at = int(np.searchsorted(rows, at))
        assert seen.alternatives is not None
        own = seen.alternatives.take(rows)
        parameters, shape = clone.parameters, clone.shape
        features = shape.positions + shape.choices + shape.players
        factors = parameters["factors"].reshape(features, shape.width).astype(np.float64)
        positions = shape.positions
        self._position = seen.features[0]
        self._features, places = np.unique(own.items, return_inverse=True)
        self._has = np.zeros((len(rows), len(self._features)), np.bool_)
        self._has[own.row_of, places] = True
        self._rows = factors[positions + self._features]
        self._own = self._has @ self._rows
        self._position_rows = factors[self._position]
        self._sum = self._position_rows.sum(axis=0) + factors[-1]
        self._weights = parameters["weights"][self._features].astype(np.float64)
        self._bias, self._readout = parameters["bias"], parameters["readout"]
        # Weights of the lead: 1 for the choice, minus the relative probability for each other candidate.
        scores = self._scores(self._sum[None], [])[0, 0]
        others = np.exp(scores - np.delete(scores, self._at).max())
        others[self._at] = 0.0
        self._pull = -others / others.sum()
        self._pull[self._at] = 1.0

    def _scores(self, sums: npt.NDArray[np.float64], gone: Sequence[int]) -> npt.NDArray[np.float64]:
        """The candidates' scores with each of these sums of position factors, first with all features, then without
        each of those; shape (sums, 1 + gone, candidates)."""
        k = self._clone.quadratic
        had = np.vstack([np.zeros((1, len(self._has)), np.bool_), self._has[:, gone].T])
        rows = np.vstack([np.zeros((1, self._rows.shape[1])), self._rows[gone]])
        own = self._own - had[:, :, None] * rows[:, None, :]
        weights = self._has @ self._weights - had * np.append(0.0, self._weights[gone])[:, None]
        squares = (self._has @ (self._rows[:, :k] ** 2).sum(axis=1)) - had * (rows[:, :k] ** 2).sum(axis=1)[:, None]
        alone = weights + ((own[:, :, :k] ** 2).sum(axis=2) - squares) / 2
        products = np.moveaxis(own[:, :, :k] @ sums[:, :k].T, -1, 0)
        rectified = np.maximum(0.0, self._bias + sums[:, None, None, k:] + own[:, :, k:])
        found: npt.NDArray[np.float64] = alone + products + rectified @ self._readout
        return found

    def weightiest(self) -> list[tuple[tuple[str, ...], float]]:
        """The features, in words, and their weights. Only those with a large first-order effect are considered."""
        of_position, of_candidates = self._slopes()
        first = np.argsort(-np.abs(of_position), kind="stable")[:PAIRED]
        second = np.argsort(-np.abs(of_candidates), kind="stable")[:EXPLAINED].tolist()
        sums = np.vstack([self._sum, self._sum - self._position_rows[first]])
        leads = self._scores(sums, second) @ self._pull
        # The effects of removing a feature of the position (row), one of the candidates (column), or both.
        effects = (leads[0, 0] - leads).tolist()
        found = list(zip(map(self._named, second), effects[0][1:], strict=True))
        for row, i in enumerate(first.tolist(), 1):
            name = self._words(int(self._position[i]))
            for column, n in enumerate(second[:PAIRED], 1):
                # The effect of both less the effect of each.
                effect = effects[row][0] + effects[0][column] - effects[row][column]
                found.append(((*name, *self._named(n)), effect))
        return found

    def _slopes(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The first-order effect of each feature of the position and of the candidates on the lead."""
        k = self._clone.quadratic
        own, pull = self._own, self._pull
        active = (self._bias + self._sum[k:] + own[:, k:] > 0) * self._readout
        by_sum = pull @ np.concatenate([own[:, :k], active], axis=1)
        by_own = np.concatenate([self._sum[:k] + own[:, :k], active], axis=1)
        each = self._rows @ by_own.T + self._weights[:, None]
        return self._position_rows @ by_sum, ((each * self._has.T) @ pull)

    def _named(self, n: int) -> tuple[str, ...]:
        """The words of a candidates' feature, with "not" if the choice lacks it."""
        # Features of positions have the lowest numbers.
        words = self._words(len(self._clone.sight.positions) + int(self._features[n]))
        return words if self._has[self._at, n] else ("not: " + ", ".join(words),)

    def _words(self, feature: int) -> tuple[str, ...]:
        """The words of a feature, or of those that it combines, with the names that the sample had first."""
        known = self._clone.sight
        names = (*known.positions, *known.choices)
        parts = base_features(feature, self._clone.pairs, len(names))
        return tuple(names[part] for part in sorted(self._symmetry.back[list(parts)].tolist()))
