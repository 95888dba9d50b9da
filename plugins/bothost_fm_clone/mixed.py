"""A player's clone that scores by a machine and by the player's own pairs, each with a share.

A crowd's machine knows how players differ, and moves only a little towards one of them. Pairs that grow from the
player's hands alone know nothing of others. They err in different places, so both together predict better once the
player has some hundred decisions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bothost.training.factorization import Samples
from bothost_fm_clone.fit import score, softmax
from bothost_fm_clone.pairs import Pairs, left_out
from bothost_fm_clone.player import PlayerFit, player_of
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import MOST_PAIRS, SharedClone
from bothost_fm_clone.sight import REVISION

LEAST, MOST = 100, 3000
"""Decisions from which on pairs grow beside a crowd's machine, and most that they grow from: more take minutes."""
MANY, FITS, STEPS = 600, 2, 600
"""From ``MANY`` decisions on there are only two fits of the pairs, as each takes seconds. And most steps of a fit."""
Shares = tuple[float, float]
"""Of the scores of the pairs, and of those of the machine."""
TENTHS = [n / 10 for n in range(13)]
SHARES: tuple[Shares, ...] = tuple(itertools.product(TENTHS, TENTHS))


def player_after(crowd: SharedClone, learnt: Decisions, seed: int) -> tuple[SharedClone, dict[str, float]]:
    """The clone of the player of these decisions after a crowd, and how it was made.

    It tells the rate and log-loss of ``PlayerFit.rate``, and the shares of pairs and machine if there are pairs.
    """
    # The pairs see the newest features.
    if len(learnt) < LEAST or crowd.revision != REVISION or learnt.number_of_hands < 2:
        return player_of(crowd, learnt, seed)
    seen = crowd.sight.of(learnt)
    player = PlayerFit(crowd, seen, seed)
    some = seen.where(seen.parts <= np.quantile(seen.parts, min(1.0, MOST / len(seen))))
    told = player.rate()
    clone = player.clone(told["rate"])
    parts = left_out(some, seed)
    if len(some) >= MANY:
        parts = parts[:FITS]
    pairs = Pairs(some, parts, crowd.encoding, most=STEPS)
    machines = [player.clone(told["rate"], ~np.isin(learnt.hands, some.hands[out])) for out in parts]
    fits = [pairs.clone(fold=fold) for fold in range(len(parts))]
    (of_pairs, of_machine), _ = best_shares(fits, machines, [some.where(out).samples for out in parts], SHARES)
    grown = pairs.clone()
    if not of_pairs or len(clone.pairs) + len(grown.pairs) > MOST_PAIRS:
        return clone, told
    # Left-out hands are few, so the shares go half the way from the machine alone to what is best for those.
    shares = of_pairs / 2, (1.0 + of_machine) / 2
    return mixed(grown, clone, shares), told | {"share_of_pairs": shares[0], "share_of_machine": shares[1]}


def best_shares(
    pairs: Sequence[SharedClone], machines: Sequence[SharedClone], outs: Sequence[Samples], tried: Sequence[Shares]
) -> tuple[Shares, float]:
    """The shares with which the two clones of each fold predict its left-out samples best, and their log-loss then.

    ``outs``: with the features that all clones see.
    """
    scores = [np.concatenate(list(map(_log_odds, clones, outs))) for clones in (pairs, machines)]
    samples = Samples.joined(outs)
    lengths = np.diff(samples.legal.offsets)

    def loss(shares: Shares) -> float:
        return score(softmax(shares[0] * scores[0] + shares[1] * scores[1], lengths), samples).log_loss

    best = min(tried, key=loss)
    return best, loss(best)


def _log_odds(clone: SharedClone, seen: Samples) -> npt.NDArray[np.float64]:
    return np.log(np.maximum(clone.probabilities_of_seen(seen), 1e-12), dtype=np.float64)


def mixed(pairs: SharedClone, machine: SharedClone, shares: Shares) -> SharedClone:
    """A clone whose scores are those of pairs, which have no factors, and of a machine, each by its share."""
    shape, mine, theirs = machine.shape, pairs.parameters, machine.parameters
    choices = shape.choices - len(machine.pairs)
    singles, of_pairs = np.split(shares[0] * mine["weights"], [choices])
    weights = shares[1] * theirs["weights"]
    weights[:choices] += singles
    # A clone that was retrained may have some of the pairs.
    places = {pair: choices + n for n, pair in enumerate(map(tuple, machine.pairs.tolist()))}
    there = np.array([places.get(pair, -1) for pair in map(tuple, pairs.pairs.tolist())], np.int64)
    weights[there[there >= 0]] += of_pairs[there >= 0]
    new = there < 0
    factors = theirs["factors"].reshape(shape.rows, shape.width).copy()
    factors[:, : machine.quadratic] *= math.sqrt(shares[1])  # scores have products of two
    made = {
        "weights": np.concatenate([weights, of_pairs[new]]),
        "factors": np.insert(factors, [shape.rows - shape.players] * int(new.sum()), 0.0, axis=0).ravel(),
        "readout": shares[1] * theirs["readout"],
    }
    both = np.concatenate([machine.pairs, pairs.pairs[new]])
    return replace(machine, pairs=both, parameters={**theirs, **made}, directions=None)
