"""Learns a player from the player's own hands, without a crowd.

Few hands say little, but single pairs of features explain much of them: the partner leads, and a move beats it. So
features grow one at a time, as in boosting. Each step moves the weight of one feature of candidates, or of one pair
of features, by a part of a Newton step. It takes the one that lowers the loss most. Several fits each leave out a part
of the hands. They end where the loss on left-out hands is least, and the clone is their mean.

With more decisions a factorization machine adds to that, and its scores are added to those of the pairs. Left-out hands
say with which shares. With many decisions the machine predicts alone.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch

from bothost.training.factorization import FloatArray, Samples, SparseRows
from bothost_fm_clone.encode import Encoding
from bothost_fm_clone.fit import score, softmax
from bothost_fm_clone.learn import SharedOptions, crowd_of
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.sight import Sight, sight

MACHINES = (
    SharedOptions(quadratic=0, rectified=0, passes=10, rate=0.1, decay=3e-3, combinations=0),
    SharedOptions(quadratic=8, rectified=16, passes=8, rate=0.03, decay=1e-2, combinations=0),
    SharedOptions(quadratic=16, rectified=32, passes=8, rate=0.02, decay=1e-2, combinations=0),
)
"""Machines that are tried. The one that predicts left-out hands best is taken."""
FOLDS = 5
PENALTY = 20.0
"""L2 of a step. It is weighed against a second derivative, at most a quarter for each candidate with the feature."""
RATE = 0.5
"""Part of a Newton step. Full steps predict worse."""
STEPS, PATIENCE = 6000, 120
"""Most steps of a fit, and steps without a gain on left-out hands after which it ends."""
SCREENED, EVERY = 1000, 100
"""So many features and pairs are considered at each step. They are chosen anew after so many steps."""
FEW, MANY, MOST = 1000, 4000, 12_000
"""Machines are tried from ``FEW`` decisions on. From ``MANY`` on only two of the fits are made, as each takes half a
minute. From ``MOST`` on there are none."""
SHARES = tuple(itertools.product((0.6, 0.7, 0.8, 0.9, 1.0, 1.1), (0.0, 0.1, 0.2, 0.3, 0.4)))
"""The shares of the pairs' and of the machine's scores that are tried."""
Feature = tuple[int, ...]
"""One feature of candidates, or an ascending pair whose second is one. Positions' features are numbered first."""
Step = tuple[Feature, float]


def player_alone(own: Encoding, learnt: Decisions, seed: int) -> tuple[SharedClone, dict[str, float | str]]:
    """The clone of these decisions' player, and how it was made, with its log-loss on left-out hands.

    Raises ValueError for decisions of fewer than two hands.
    """
    parts = _parts(learnt, seed)
    if len(learnt) < FEW:
        pairs = _Pairs(learnt, parts, own)
        return pairs.clone(), {"method": "pairs", "log_loss": round(pairs.loss, 4)}
    rest, out = learnt.where(~parts[0]), learnt.where(parts[0])
    tried = [_machine(own, rest, options, seed) for options in MACHINES]
    losses = [score(machine.probabilities_of(out.samples), out.samples).log_loss for machine in tried]
    best = int(np.argmin(losses))
    machine = _machine(own, learnt, MACHINES[best], seed)
    told = f"{machine.quadratic} factors"
    if len(learnt) >= MOST:
        return machine, {"method": told, "log_loss": round(losses[best], 4)}
    pairs = _Pairs(learnt, parts if len(learnt) < MANY else parts[:2], own)
    shares, loss = _shares(pairs.clone(fold=0), tried[best], out.samples)
    return joined(pairs.clone(), machine, shares), {"method": f"pairs and {told}", "log_loss": round(loss, 4)}


def _parts(learnt: Decisions, seed: int) -> list[npt.NDArray[np.bool_]]:
    """Masks of the left-out decisions of each fold: whole hands, evenly many."""
    hands, numbers = np.unique(learnt.hands, return_inverse=True)
    folds = min(FOLDS, len(hands))
    if folds < 2:
        raise ValueError("a clone without a crowd needs two hands with a choice, at least")
    order = np.random.default_rng(seed).permutation(len(hands))
    return [order[numbers] % folds == fold for fold in range(folds)]


def _machine(own: Encoding, some: Decisions, options: SharedOptions, seed: int) -> SharedClone:
    blank = SharedClone.blank(own, options.quadratic, options.rectified, seed)
    return crowd_of(blank, some, options, seed, fresh=True)


def _shares(pairs: SharedClone, machine: SharedClone, out: Samples) -> tuple[tuple[float, float], float]:
    """The shares with which these clones predict the samples best together, and their log-loss then."""
    lengths = np.diff(out.legal.offsets)
    scores = [np.log(np.maximum(clone.probabilities_of(out), 1e-12)) for clone in (pairs, machine)]

    def loss(shares: tuple[float, float]) -> float:
        return score(softmax(shares[0] * scores[0] + shares[1] * scores[1], lengths), out).log_loss

    best = min(SHARES, key=loss)
    return best, loss(best)


def joined(pairs: SharedClone, machine: SharedClone, shares: tuple[float, float]) -> SharedClone:
    """A clone whose scores are those of both, each by its share."""
    shape, mine, theirs = machine.shape, pairs.parameters, machine.parameters
    features = shape.positions + shape.choices
    factors = theirs["factors"].reshape(features + shape.players, shape.width).copy()
    factors[:, : machine.quadratic] *= math.sqrt(shares[1])  # scores have products of two
    weights = shares[0] * mine["weights"]
    weights[: shape.choices] += shares[1] * theirs["weights"]
    made = {
        "weights": weights,
        "factors": np.insert(factors, [features] * len(pairs.pairs), 0.0, axis=0).ravel(),
        "readout": shares[1] * theirs["readout"],
    }
    return replace(machine, pairs=pairs.pairs, parameters={**theirs, **made})


class _Pairs:
    """Fits that each leave out a part of the hands, grown together until the loss on left-out hands is least."""

    def __init__(self, learnt: Decisions, parts: Sequence[npt.NDArray[np.bool_]], own: Encoding) -> None:
        """``parts``: for each fit the mask of the decisions that it leaves out."""
        self._own = own
        self._rows = rows = _Candidates.of(sight(own.game), learnt.samples)
        out = np.stack(parts)[:, rows.decision]
        self._learnt, self._judged = (~out).astype(np.float32), out & rows.chosen
        self._scores = np.zeros(out.shape)
        self._odds = softmax(self._scores, rows.lengths)
        self._steps: list[list[Step]] = [[] for _ in parts]
        losses: list[float] = []
        self._best = 0
        while len(losses) < min(STEPS, self._best + 1 + PATIENCE):
            if len(losses) % EVERY == 0:
                self._consider([rows.best(*slopes) for slopes in zip(*self._derivatives(), strict=True)])
            losses.append(self._step())
            self._best = int(np.argmin(losses))
        self.loss = losses[self._best]
        """The mean log-loss on left-out hands."""

    def clone(self, *, fold: int | None = None) -> SharedClone:
        """A clone that scores by the mean of the fits, or by one of them."""
        fits = self._steps if fold is None else [self._steps[fold]]
        weights: dict[Feature, float] = defaultdict(float)
        for steps in fits:
            for feature, change in steps[: self._best + 1]:
                weights[feature] += change / len(fits)
        return _clone(self._own, weights)

    def _derivatives(self) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives of each fit's loss by the candidates' scores, shape (fits, candidates)."""
        slopes = self._learnt * (self._odds - self._rows.chosen).astype(np.float32)
        return slopes, self._learnt * (self._odds * (1.0 - self._odds)).astype(np.float32)

    def _consider(self, wanted: Sequence[Sequence[Feature]]) -> None:
        """Consider these features, each fit its own: the hands that a fit leaves out have no say in them."""
        self._features = sorted(set(itertools.chain(*wanted)))
        self._having = self._rows.having(self._features)
        self._considered = np.array([[feature in mine for feature in self._features] for mine in map(set, wanted)])
        offsets, items = (torch.from_numpy(each.astype(np.int32)) for each in self._having.arrays)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse")  # torch calls the format a beta
            shape = len(self._features), len(self._rows.decision)
            self._matrix = torch.sparse_csr_tensor(offsets, items, torch.ones(len(items)), size=shape)

    def _step(self) -> float:
        """Move one weight of each fit. Returns the mean log-loss on the left-out decisions."""
        both = torch.from_numpy(np.concatenate(self._derivatives()).T.copy())
        slopes, bends = np.split((self._matrix @ both).numpy().T, 2)
        for fit, best in enumerate(np.argmax(self._considered * _gains(slopes, bends), axis=1)):
            change = float(-RATE * slopes[fit, best] / (bends[fit, best] + PENALTY))
            self._scores[fit, self._having[best]] += change
            self._steps[fit].append((self._features[best], change))
        self._odds = softmax(self._scores, self._rows.lengths)
        return float(-np.log(np.maximum(self._odds[self._judged], 1e-12)).mean())


def _clone(own: Encoding, weights: Mapping[Feature, float]) -> SharedClone:
    """A clone that scores by these weights alone."""
    known = sight(own.game)
    pairs = sorted(feature for feature in weights if len(feature) == 2)
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
    """float32, shape (candidates, features of candidates): 1 where set."""
    lengths: npt.NDArray[np.int64]
    """Shape (decisions,): the number of candidates of each."""
    decision: npt.NDArray[np.int64]
    """Shape (candidates,): the decision of each."""
    chosen: npt.NDArray[np.bool_]
    """Shape (candidates,)."""

    @classmethod
    def of(cls, known: Sight, samples: Samples) -> Self:
        seen = known.seen(samples)
        assert seen.alternatives is not None
        return cls(
            seen.features.dense(len(known.positions)),
            seen.alternatives.dense(len(known.choices)),
            np.diff(seen.legal.offsets),
            seen.legal.row_of,
            seen.chosen,
        )

    def having(self, features: Sequence[Feature]) -> SparseRows:
        """For each feature the candidates that have it."""
        first = self.positions.shape[1]
        singles = [np.flatnonzero(column) for column in self.choices.T]
        found = []
        for feature in features:
            uses = singles[feature[-1] - first]
            for part in feature[:-1]:
                there = self.choices[uses, part - first] if part >= first else self.positions[self.decision[uses], part]
                uses = uses[there > 0]
            found.append(uses)
        return SparseRows.of(found)

    def best(self, gradients: FloatArray, curvatures: FloatArray) -> list[Feature]:
        """The ``SCREENED`` features and pairs that lower the loss most, from derivatives by the candidates' scores."""
        first = self.positions.shape[1]
        here, there = (np.flatnonzero(rows.any(axis=0)) for rows in (self.positions, self.choices))
        positions, choices = self.positions[:, here], self.choices[:, there]
        begins = np.cumsum(self.lengths) - self.lengths
        sums = [weights[:, None] * choices for weights in (gradients, curvatures)]
        single = _gains(*(each.sum(axis=0, keepdims=True) for each in sums))
        with_position = _gains(*(positions.T @ np.add.reduceat(each, begins, axis=0) for each in sums))
        with_other = _gains(*(np.triu(choices.T @ each, 1) for each in sums))
        gains = np.concatenate([single, with_position, with_other])
        count = min(SCREENED, gains.size)
        best = np.sort(np.argpartition(-gains, count - 1, axis=None)[:count])
        rows, columns = np.unravel_index(best, gains.shape)
        parts = np.concatenate([[-1], here, first + there])[rows]
        return [
            (second,) if part < 0 else (part, second)
            for part, second in zip(parts.tolist(), (first + there)[columns].tolist(), strict=True)
        ]


def _gains(gradients: FloatArray, curvatures: FloatArray) -> FloatArray:
    """Twice what a Newton step of each feature lowers the loss."""
    found: FloatArray = np.square(gradients) / (curvatures + PENALTY)
    return found
