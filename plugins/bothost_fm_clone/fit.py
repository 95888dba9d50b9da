"""Fit the last layer to the crowd, then to the player.

An L2 penalty keeps the player's layer close to the crowd's. It is chosen on held-out hands of the player, and then used
for the fit to all hands. The scale of the crowd's layer is also fitted. Classes of one kind of move (bombs, pairs …)
share a part of their weights.

A crowd must predict players that it does not contain, so its penalty is chosen on held-out players.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.training.factorization import Samples
from bothost.training.logistic import Linear, Penalties, fit, fits
from bothost_fm_clone.samples import Decisions

CROWD_PENALTIES = (10.0, 30.0, 100.0, 300.0)
PLAYER_PENALTIES = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0)
"""Candidate penalties, tried from the largest on while the held-out loss improves. With the largest, a player's layer
is the crowd's except for its scale."""
SHARED, COMMON = 0.3, 0.03
"""Penalties on the weights that a kind of move shares, and on the afterstate weights that all moves share, relative to
the penalty on weights of single classes. They are smaller because fewer hands determine shared weights."""
SCALE = 10.0
"""Penalty on scaling the crowd's layer down. A few hands outweigh it."""
PATIENCE = 2
"""After this many penalties in a row that are worse than the best, no smaller one is tried."""
FOLDS, MANY = 3, 6000
"""With fewer than ``MANY`` decisions, cross-validation uses ``FOLDS`` folds. Otherwise one part is held out."""
TUNED_ON = 4000
"""Most decisions for choosing a penalty. The loss is a sum, so the choice also holds for more decisions."""
APART = 4
"""Of a crowd with at least this many players, every ``APART``-th is held out."""


@dataclass(frozen=True)
class Score:
    """The quality of predicted probabilities."""

    top1: float
    """Share of the decisions that were the most probable class."""
    log_loss: float
    """Mean of -log of the decision's probability, in nats."""
    decisions: int


Odds = npt.NDArray[np.floating]
"""Probabilities of samples, laid out as ``Samples.legal.items``."""


def score(probabilities: Odds, samples: Samples) -> Score:
    """The quality of these probabilities."""
    hits, losses = per_decision(probabilities, samples)
    return Score(float(hits.mean()), float(losses.mean()), len(samples)) if len(samples) else Score(0.0, 0.0, 0)


def per_decision(probabilities: Odds, samples: Samples) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """For each decision, whether it was the most probable class, and its log-loss."""
    legal, values = samples.legal, probabilities.astype(np.float64)
    chosen = samples.chosen
    best = np.maximum.reduceat(values, legal.offsets[:-1]) if len(samples) else np.zeros(0)
    return values[chosen] >= best, -np.log(np.maximum(values[chosen], 1e-12))


def softmax(scores: npt.NDArray[np.floating], lengths: npt.NDArray[np.integer]) -> Odds:
    """The probabilities of candidates with these scores, in groups of these lengths, none of them 0.

    ``scores``: any shape, its last axis the candidates.
    """
    begins = np.cumsum(lengths) - lengths
    odds = np.exp(scores - np.repeat(np.maximum.reduceat(scores, begins, axis=-1), lengths, axis=-1))
    found: Odds = odds / np.repeat(np.add.reduceat(odds, begins, axis=-1), lengths, axis=-1)
    return found


def brier(probabilities: Odds, samples: Samples) -> npt.NDArray[np.float64]:
    """The Brier score of each decision, in [0, 2]."""
    squares = np.square(probabilities.astype(np.float64) - samples.chosen)
    return np.add.reduceat(squares, samples.legal.offsets[:-1]) if len(samples) else np.zeros(0)


def adapt(
    decisions: Decisions, start: Linear, groups: npt.NDArray[np.integer], candidates: Sequence[float]
) -> tuple[Linear, dict[str, float]]:
    """Fit a model close to ``start`` to all features of decisions. Also returns the penalty and its held-out log-loss.

    With many players, some players are held out to choose the penalty, otherwise some hands.
    """
    if not len(decisions):
        return start, {"penalty": float("inf"), "log_loss": 0.0}
    best, loss = _chosen(decisions, start, groups, candidates)
    made = fit(decisions.samples, start, _penalties(best), groups, iterations=60, tolerance=1e-4)
    return made, {"penalty": best, "log_loss": round(loss, 4)}


def _chosen(
    decisions: Decisions, start: Linear, groups: npt.NDArray[np.integer], candidates: Sequence[float]
) -> tuple[float, float]:
    """The penalty with the lowest mean log-loss on held-out decisions, and that loss."""
    ordered = sorted(candidates, reverse=True)
    parts = [(_some(decisions.where(~mask)), _some(decisions.where(mask))) for mask in _left_out(decisions)]
    best, worse = (np.inf, ordered[0]), 0
    if len(ordered) == 1 or not parts:
        return ordered[0], 0.0
    paths = [fits(rest, start, map(_penalties, ordered), groups, iterations=25, tolerance=3e-4) for rest, _ in parts]
    for penalty in ordered:
        losses = np.concatenate([_losses(next(path), out) for path, (_, out) in zip(paths, parts, strict=True)])
        worse = 0 if losses.mean() < best[0] else worse + 1
        best = min(best, (float(losses.mean()), penalty))
        if worse == PATIENCE:
            break
    return best[1], best[0]


def _some(decisions: Decisions) -> Samples:
    """At most ``TUNED_ON`` decisions, evenly spaced."""
    every = max(1, -(-len(decisions) // TUNED_ON))
    return decisions.samples.take(np.arange(0, len(decisions), every))


def _losses(model: Linear, samples: Samples) -> npt.NDArray[np.float64]:
    return per_decision(model.probabilities(samples.features, samples.legal, samples.alternatives), samples)[1]


def _penalties(own: float) -> Penalties:
    return Penalties(own, own * SHARED, SCALE, own * COMMON)


def _left_out(decisions: Decisions) -> list[npt.NDArray[np.bool_]]:
    """Masks of held-out decisions, one for each fold: whole hands, or players."""
    players = np.unique(decisions.players.astype(str))
    if len(players) >= APART:
        return [np.isin(decisions.players.astype(str), players[::APART])]
    return folds_of_hands(decisions)


def folds_of_hands(decisions: Decisions) -> list[npt.NDArray[np.bool_]]:
    """Masks of held-out decisions, one for each fold: whole hands, neither none nor all."""
    if len(decisions) >= MANY:
        masks = [decisions.parts < 0.2]
    else:
        masks = [(decisions.parts * FOLDS).astype(int) == fold for fold in range(FOLDS)]
    return [mask for mask in masks if mask.any() and not mask.all()]
