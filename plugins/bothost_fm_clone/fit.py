"""The last layer: fitted to the crowd, then to the player, as close to the crowd as the player's games ask for.

How close is an L2 penalty on the difference, chosen on hands of the player that are left out of the fit; then all hands
are fitted with it. Classes of one kind of move (bombs, pairs …) share a part of what is learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.training.factorization import FloatArray, Samples, SparseRows
from bothost.training.logistic import Linear, Penalties, fit
from bothost_fm_clone.samples import Decisions

CROWD_PENALTIES = (3.0, 10.0, 30.0)
PLAYER_PENALTIES = (3.0, 10.0, 30.0, 100.0)
"""What is tried on left-out hands."""
SHARED = 0.1
"""Penalty on what a kind of move shares, as a part of that on what is of each class alone."""
FOLDS, MANY = 3, 6000
"""Fewer decisions than ``MANY`` are left out in turns, in so many folds; of more a fifth is left out once."""


@dataclass(frozen=True)
class Score:
    """How well probabilities foretell decisions."""

    top1: float
    """Share of the decisions that were the most probable class."""
    log_loss: float
    """Mean of -log of the probability of what was done, nats."""
    decisions: int


def score(probabilities: SparseRows, samples: Samples) -> Score:
    """``probabilities`` as the samples' legal classes."""
    hits, losses = per_decision(probabilities, samples)
    return Score(float(hits.mean()), float(losses.mean()), len(samples)) if len(samples) else Score(0.0, 0.0, 0)


def per_decision(probabilities: SparseRows, samples: Samples) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Of each decision whether it was the most probable one, and its log-loss."""
    legal, values = samples.legal, probabilities.items.astype(np.float64)
    row = np.repeat(np.arange(len(samples)), np.diff(legal.offsets))
    chosen = np.flatnonzero(legal.items == samples.labels[row])
    best = np.maximum.reduceat(values, legal.offsets[:-1]) if len(samples) else np.zeros(0)
    return values[chosen] >= best, -np.log(np.maximum(values[chosen], 1e-12))


def adapt(
    decisions: Decisions, start: Linear, groups: npt.NDArray[np.integer], candidates: Sequence[float]
) -> tuple[Linear, dict[str, float]]:
    """The model of these decisions (of all features) close to ``start``, and the penalty with its left-out log-loss."""
    if not len(decisions):
        return start, {"penalty": float("inf"), "log_loss": 0.0}
    losses = {penalty: 0.0 for penalty in candidates}
    counted = 0
    for left_out in _left_out(decisions) if len(candidates) > 1 else ():
        rest, out = decisions.where(~left_out), decisions.where(left_out)
        if not len(rest) or not len(out):
            continue
        counted += len(out)
        begin = start
        for penalty in sorted(candidates, reverse=True):
            begin = fit(rest.samples, start, _penalties(penalty), groups, begin=begin, iterations=25, tolerance=3e-4)
            probabilities = begin.probabilities(out.samples.features, out.samples.legal)
            losses[penalty] += len(out) * score(_laid_out(probabilities, out.samples), out.samples).log_loss
    best = min(candidates, key=lambda penalty: losses[penalty])
    made = fit(decisions.samples, start, _penalties(best), groups, iterations=60, tolerance=1e-4)
    return made, {"penalty": best, "log_loss": round(losses[best] / max(1, counted), 4)}


def _penalties(own: float) -> Penalties:
    return Penalties(own, own * SHARED)


def _laid_out(probabilities: FloatArray, samples: Samples) -> SparseRows:
    return SparseRows(samples.legal.offsets, probabilities)  # type: ignore[arg-type]


def _left_out(decisions: Decisions) -> list[npt.NDArray[np.bool_]]:
    """Decisions to leave out, one time after the other, hands as a whole."""
    if len(decisions) >= MANY:
        return [decisions.parts < 0.2]
    return [(decisions.parts * FOLDS).astype(int) == fold for fold in range(FOLDS)]
