"""Grows a clone of single features and pairs of features, one at a time, from few hands.

Each step moves the weight of one feature of candidates, of one number (``numbers``), or of a pair with one of them, by
a part of a Newton step. It takes the one that lowers the loss most. ``penalties`` says how much each is held back.
"""

from __future__ import annotations

import heapq
import itertools
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch

from bothost.training.factorization import FloatArray, Samples
from bothost_fm_clone.encode import Encoding
from bothost_fm_clone.fit import softmax
from bothost_fm_clone.numbers import numbers
from bothost_fm_clone.penalties import Feature, Penalties
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import MOST_PAIRS, SharedClone
from bothost_fm_clone.sight import sight

FOLDS = 5
"""Most fits of a clone, each of which leaves out one part of the hands."""
RATE = 0.5
"""Part of a Newton step. Full steps predict worse."""
STEPS, PATIENCE = 6000, 60
"""Most steps of a fit, and steps without a gain on left-out hands after which it ends."""
SCREENED, EVERY = 1000, 100
"""So many features and pairs are considered for a while. They are chosen anew after so many steps."""
NEAR, OFTEN = 200, 5
"""So many of those, the best ones, are considered at each step. They are chosen anew after so many steps."""
CONSTANT = -1
"""The part of a number that no feature adds."""
Step = tuple[Feature, float]
Values = tuple[npt.NDArray[np.int64], FloatArray]
"""The candidates that have a feature, and its values there."""


class Pairs:
    """Fits that each leave out a part of the hands, grown together until the loss on left-out hands is least."""

    def __init__(
        self,
        learnt: Decisions,
        parts: Sequence[npt.NDArray[np.bool_]],
        own: Encoding,
        penalties: Penalties | None = None,
        *,
        most: int | None = None,
    ) -> None:
        """``learnt``: with the features of ``sight``. ``parts``: for each fit the mask of the decisions that it leaves
        out. Default penalties: the table's.

        ``most``: steps; default ``STEPS``.
        """
        self._own = own
        self._penalties = Penalties.of(own.game) if penalties is None else penalties
        self._rows = rows = _Candidates.of(own.game, learnt.samples)
        out = np.stack(parts)[:, rows.decision]
        self._learnt, self._judged = (~out).astype(np.float32), out & rows.chosen
        self._scores = np.zeros(out.shape)
        self._odds = softmax(self._scores, rows.lengths)
        self._steps: list[list[Step]] = [[] for _ in parts]
        losses: list[float] = []
        self._best = 0
        while len(losses) < min(most or STEPS, self._best + 1 + PATIENCE):
            if len(losses) % EVERY == 0:
                of_fits = zip(*self._slopes_and_odds(), strict=True)
                self._screen([rows.best(*of_fit, self._penalties) for of_fit in of_fits])
            if len(losses) % OFTEN == 0:
                self._near = self._screened.best(*self._slopes_and_odds())
            losses.append(self._step())
            self._best = int(np.argmin(losses))
        self.loss = losses[self._best]
        """The mean log-loss on left-out hands."""

    def weights(self, *, fold: int | None = None) -> dict[Feature, float]:
        """Means over the fits, or those of one of them."""
        fits = self._steps if fold is None else [self._steps[fold]]
        weights: dict[Feature, float] = defaultdict(float)
        for steps in fits:
            for feature, change in steps[: self._best + 1]:
                weights[feature] += change / len(fits)
        return weights

    def clone(self, *, fold: int | None = None) -> SharedClone:
        """A clone that scores by the mean of the fits, or by one of them."""
        return _clone(self._own, self._rows.without_numbers(self.weights(fold=fold)))

    def _slopes_and_odds(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of each fit's loss by the candidates' scores, and the candidates' probabilities, 0 where they are
        left out; shape (fits, candidates)."""
        return (
            self._learnt * (self._odds - self._rows.chosen).astype(np.float32),
            self._learnt * self._odds.astype(np.float32),
        )

    def _screen(self, wanted: Sequence[Sequence[Feature]]) -> None:
        """Consider these features, each fit its own: the hands that a fit leaves out have no say in them."""
        features = sorted(set(itertools.chain(*wanted)))
        by_fit = np.array([[feature in mine for feature in features] for mine in map(set, wanted)])
        values = [self._rows[feature] for feature in features]
        self._screened = _Considered(self._rows, features, values, self._penalties.each(features), by_fit)

    def _step(self) -> float:
        """Move one weight of each fit. Returns the mean log-loss on the left-out decisions."""
        gains, newton = self._near.steps(*self._slopes_and_odds())
        for fit, best in enumerate(np.argmax(gains, axis=1)):
            change = RATE * float(newton[fit, best])
            rows, values = self._near.values[best]
            self._scores[fit, rows] += change * values
            self._steps[fit].append((self._near.features[best], change))
        self._odds = softmax(self._scores, self._rows.lengths)
        return float(-np.log(np.maximum(self._odds[self._judged], 1e-12)).mean())


def left_out(learnt: Decisions, seed: int) -> list[npt.NDArray[np.bool_]]:
    """Masks of the left-out decisions of each fold: whole hands, evenly many.

    Raises ValueError for decisions of fewer than two hands.
    """
    hands, numbers = np.unique(learnt.hands, return_inverse=True)
    folds = min(FOLDS, len(hands))
    if folds < 2:
        raise ValueError("folds need decisions of two hands, at least")
    order = np.random.default_rng(seed).permutation(len(hands))
    return [order[numbers] % folds == fold for fold in range(folds)]


def _clone(own: Encoding, weights: Mapping[Feature, float]) -> SharedClone:
    """A clone that scores by these weights alone, with at most ``MOST_PAIRS`` pairs. The features are no numbers."""
    known = sight(own.game)
    pairs = [feature for feature in weights if len(feature) == 2]
    # A pair of numbers is a pair of each two of their features, some of which hardly matter.
    pairs = sorted(heapq.nlargest(MOST_PAIRS, pairs, key=lambda pair: abs(weights[pair])))
    single = np.zeros(len(known.choices), np.float32)
    for feature, weight in weights.items():
        if len(feature) == 1:
            single[feature[0] - len(known.positions)] = weight
    blank = SharedClone.blank(own, 0, 0, 0)
    values = np.array([weights[pair] for pair in pairs], np.float32)
    return replace(
        blank,
        pairs=np.array(pairs, np.int32).reshape(-1, 2),
        parameters={**blank.parameters, "weights": np.concatenate([single, values])},
    )


@dataclass(frozen=True)
class _Candidates:
    """All candidates of some decisions, one row each."""

    positions: FloatArray
    """float32, shape (decisions, features of positions): 1 where set."""
    choices: FloatArray
    """float32, shape (candidates, features and numbers of candidates): 1 where a feature is set, and numbers less
    their mean, in standard deviations."""
    parts: FloatArray
    """float32, shape (numbers, features of candidates + 1): what features add to a number, and in the end the
    constant."""
    lengths: npt.NDArray[np.int64]
    """Shape (decisions,): the number of candidates of each."""
    decision: npt.NDArray[np.int64]
    """Shape (candidates,): the decision of each."""
    chosen: npt.NDArray[np.bool_]
    """Shape (candidates,)."""

    @classmethod
    def of(cls, game: str, seen: Samples) -> Self:
        """``seen``: with the features of ``sight``."""
        known = sight(game)
        assert seen.alternatives is not None
        features = seen.alternatives.dense(len(known.choices))
        values = features @ numbers(game)
        mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-6
        return cls(
            seen.features.dense(len(known.positions)),
            np.concatenate([features, (values - mean) / spread], axis=1),
            np.concatenate([numbers(game), -mean[None]]).T / spread[:, None],
            np.diff(seen.legal.offsets),
            seen.legal.row_of,
            seen.chosen,
        )

    def __getitem__(self, feature: Feature) -> Values:
        """The candidates that have a feature, and its values there."""
        first = self.positions.shape[1]
        values = self.choices[:, feature[-1] - first]
        rows = np.flatnonzero(values)
        values = values[rows]
        for part in feature[:-1]:
            there = self.choices[rows, part - first] if part >= first else self.positions[self.decision[rows], part]
            rows, values = rows[there != 0], (values * there)[there != 0]
        return rows, values

    def best(self, slopes: FloatArray, odds: FloatArray, penalties: Penalties) -> list[Feature]:
        """The ``SCREENED`` features and pairs that lower the loss most. What several candidates of a decision have in
        common is left out of the second derivatives of pairs of candidates' features."""
        first = self.positions.shape[1]
        here, there = (np.flatnonzero(rows.any(axis=0)) for rows in (self.positions, self.choices))
        positions, choices = self.positions[:, here], self.choices[:, there]
        squares = np.square(choices)
        begins = np.cumsum(self.lengths) - self.lengths
        by_choice = slopes[:, None] * choices
        by_decision = np.add.reduceat(by_choice, begins, axis=0)
        bends = np.add.reduceat(odds[:, None] * squares, begins, axis=0)
        bends -= np.square(np.add.reduceat(odds[:, None] * choices, begins, axis=0))
        slopes_of = [
            by_decision.sum(axis=0, keepdims=True),
            positions.T @ by_decision,
            np.triu(choices.T @ by_choice, 1),
        ]
        bends_of = [
            bends.sum(axis=0, keepdims=True),
            positions.T @ bends,
            squares.T @ ((odds * (1.0 - odds))[:, None] * squares),
        ]
        parts = np.concatenate([[CONSTANT], here, first + there])
        held = penalties.between(parts, first + there)
        found = _gains(np.concatenate(slopes_of), np.concatenate(bends_of), held)
        count = min(SCREENED, found.size)
        best = np.sort(np.argpartition(-found, count - 1, axis=None)[:count])
        rows, columns = np.unravel_index(best, found.shape)
        return [
            (second,) if part == CONSTANT else (part, second)
            for part, second in zip(parts[rows].tolist(), (first + there)[columns].tolist(), strict=True)
        ]

    def without_numbers(self, weights: Mapping[Feature, float]) -> dict[Feature, float]:
        """Weights of features that score as these weights of features and numbers do."""
        found: dict[Feature, float] = defaultdict(float)
        for feature, weight in weights.items():
            for parts in itertools.product(*map(self._parts, feature)):
                # A constant part leaves the other. Of a position alone it is the same for all candidates.
                there = tuple(sorted({part for part, _ in parts if part != CONSTANT}))
                if there and there[-1] >= self.positions.shape[1]:
                    found[there] += weight * float(np.prod([value for _, value in parts]))
        return found

    def _parts(self, part: int) -> list[tuple[int, float]]:
        """A feature or number as features, and what each adds."""
        first, features = self.positions.shape[1], self.parts.shape[1] - 1
        number = part - first - features
        if number < 0:
            return [(part, 1.0)]
        added = self.parts[number]
        used = np.flatnonzero(added[:-1])
        return [(CONSTANT, float(added[-1])), *zip((first + used).tolist(), added[used].tolist(), strict=True)]


class _Considered:
    """Features that fits consider, and their values at the candidates that have them."""

    def __init__(
        self,
        rows: _Candidates,
        features: Sequence[Feature],
        values: Sequence[Values],
        penalties: FloatArray,
        by_fit: npt.NDArray[np.bool_],
    ) -> None:
        """``by_fit``: shape (fits, features), whether a fit considers a feature."""
        self.features, self.values = features, values
        self._rows, self._penalties, self._by_fit = rows, penalties, by_fit
        items, numbers = (np.concatenate(each) for each in zip(*values, strict=True))
        offsets = np.cumsum([0, *(len(having) for having, _ in values)])
        feature = np.repeat(np.arange(len(features)), np.diff(offsets))
        # Candidates of one decision with one feature are neighbours: a group.
        group = np.flatnonzero(np.diff(feature * len(rows.lengths) + rows.decision[items], prepend=-1))
        self._sums = _matrix(offsets, items, numbers, len(rows.decision))
        self._squares = _matrix(offsets, items, np.square(numbers), len(rows.decision))
        self._grouped = _matrix(np.append(group, len(items)), items, numbers, len(rows.decision))
        self._of_groups = _matrix(
            np.searchsorted(group, offsets), np.arange(len(group)), np.ones(len(group)), len(group)
        )

    def steps(self, slopes: FloatArray, odds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What a Newton step of each feature gains in each fit, 0 if the fit does not consider it, and the step; shape
        (fits, features)."""
        slope, odd = (torch.from_numpy(each.T.copy()) for each in (slopes, odds))
        bends = self._squares @ odd - self._of_groups @ torch.square(self._grouped @ odd)
        first, second = (self._sums @ slope).numpy().T, bends.clamp(min=0.0).numpy().T
        newton: FloatArray = np.divide(-first, second + self._penalties)
        return self._by_fit * _gains(first, second, self._penalties), newton

    def best(self, slopes: FloatArray, odds: FloatArray) -> Self:
        """The ``NEAR`` features that now gain most, each fit its own."""
        gains, _ = self.steps(slopes, odds)
        count = min(NEAR, gains.shape[1])
        by_fit = np.zeros_like(self._by_fit)
        np.put_along_axis(by_fit, np.argpartition(-gains, count - 1, axis=1)[:, :count], True, axis=1)
        some = np.flatnonzero(by_fit.any(axis=0)).tolist()
        features, values = [self.features[n] for n in some], [self.values[n] for n in some]
        return type(self)(self._rows, features, values, self._penalties[some], by_fit[:, some])


def _matrix(
    offsets: npt.NDArray[np.integer], items: npt.NDArray[np.integer], values: npt.NDArray[np.floating], width: int
) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")  # torch calls the format a beta
        return torch.sparse_csr_tensor(
            torch.from_numpy(offsets.astype(np.int32)),
            torch.from_numpy(items.astype(np.int32)),
            torch.from_numpy(values.astype(np.float32)),
            size=(len(offsets) - 1, width),
        )


def _gains(slopes: FloatArray, bends: FloatArray, penalties: FloatArray) -> FloatArray:
    """Twice what a Newton step of each feature lowers the loss."""
    found: FloatArray = np.square(slopes) / (bends + penalties)
    return found
