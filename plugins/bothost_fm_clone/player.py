"""Fit a crowd's shared clone to one player.

First the player's coordinates on the crowd's directions are found. They are few numbers. If the crowd has no
directions, the player's own row of factors is learned instead. Then all parameters are trained, with a pull towards
what was found. The learning rate is chosen on held-out hands.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bothost.training.factorization import Samples
from bothost_fm_clone.directions import Tangent
from bothost_fm_clone.fit import folds_of_hands, per_decision
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import SharedClone

ROW_PASSES, ROW_RATE, ROW_DECAY = 10, 0.1, 0.003
"""Settings for learning a player's row."""
PASSES, DECAY = 8, 1e-3
"""Settings for training all parameters on a player."""
BATCH = 8
RATES = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008)
"""Candidate learning rates for that. Held-out hands choose one; 0: only the row."""


def player_of(crowd: SharedClone, learnt: Decisions, seed: int) -> tuple[SharedClone, dict[str, float]]:
    """The clone of the player of these decisions, and ``PlayerFit.rate``."""
    if not len(learnt):
        return replace(crowd, directions=None), {"rate": 0.0}
    player = PlayerFit(crowd, crowd.sight.of(learnt), seed)
    chosen = player.rate()
    return player.clone(chosen["rate"]), chosen


class PlayerFit:
    """Fits the crowd's clone to a player's decisions."""

    def __init__(self, crowd: SharedClone, learnt: Decisions, seed: int) -> None:
        """``learnt``: with the features of the crowd's sight."""
        self._crowd, self._learnt, self._seed = crowd, learnt, seed
        self._seen = crowd.combined(learnt.samples)
        self._tangent: Tangent | None = None
        if crowd.directions is not None:
            self._tangent = Tangent.of(crowd.machine(), crowd.directions, self._seen)

    def clone(self, rate: float, kept: npt.NDArray[np.bool_] | None = None) -> SharedClone:
        """The clone of these decisions, or of those that are kept, at a learning rate."""
        rows = np.arange(len(self._learnt)) if kept is None else np.flatnonzero(kept)
        own = self._seen.take(rows)
        return trained(self._start(own, rows), own, rate, self._seed)

    def rate(self) -> dict[str, float]:
        """The learning rate that is best for left-out hands, and its log-loss on them; 0 if none can be left out.

        Rates are tried from the smallest on until one is worse than the one before.
        """
        folds = [_Fold(self._seen, out) for out in folds_of_hands(self._learnt)]
        starts = [self._start(fold.own, fold.rows) for fold in folds]
        tried: list[float] = []
        for rate in RATES if folds else ():
            clones = [trained(start, fold.own, rate, self._seed) for start, fold in zip(starts, folds, strict=True)]
            tried.append(float(np.concatenate(list(map(_Fold.losses, folds, clones))).mean()))
            if tried[-1] > min(tried):
                break
        if not tried:
            return {"rate": RATES[0]}
        return {"rate": RATES[int(np.argmin(tried))], "log_loss": round(min(tried), 4)}

    def _start(self, own: Samples, rows: npt.NDArray[np.integer]) -> SharedClone:
        """Where training of all parameters starts."""
        crowd = self._crowd
        if self._tangent is None or crowd.directions is None:
            return with_own_row(crowd, own, self._seed)
        coordinates = self._tangent.most_probable(self._seen, rows)
        return replace(crowd, parameters=crowd.directions.at(crowd.parameters, coordinates), directions=None)


class _Fold:
    """Decisions to learn from, and those that are left out."""

    def __init__(self, seen: Samples, out: npt.NDArray[np.bool_]) -> None:
        self.rows = np.flatnonzero(~out)
        self.own, self._out = seen.take(self.rows), seen.take(np.flatnonzero(out))

    def losses(self, clone: SharedClone) -> npt.NDArray[np.float64]:
        """Log-loss of a clone on each left-out decision, without symmetries."""
        odds = clone.machine().probabilities(self._out, np.zeros(len(self._out), np.int32))
        return per_decision(odds, self._out)[1]


def with_own_row(crowd: SharedClone, own: Samples, seed: int) -> SharedClone:
    """The clone with the row of the player of these samples."""
    machine = crowd.machine()
    machine.anchor()
    me = np.zeros(len(own), np.int32)
    for epoch in range(ROW_PASSES):
        order = np.random.default_rng([seed, epoch]).permutation(len(own))
        falling = ROW_RATE * (1 - epoch / ROW_PASSES)
        machine.train(own, order, players=me, rate=falling, decay=ROW_DECAY, batch=BATCH, players_only=True)
    return replace(crowd, parameters=machine.parameters(), directions=None)


def trained(start: SharedClone, own: Samples, rate: float, seed: int) -> SharedClone:
    """The clone with all parameters trained on these samples at this rate; 0: as it is."""
    if not rate:
        return start
    machine = start.machine()
    machine.anchor()
    me = np.zeros(len(own), np.int32)
    for epoch in range(PASSES):
        order = np.random.default_rng([seed, ROW_PASSES + epoch]).permutation(len(own))
        machine.train(own, order, players=me, rate=rate * (1 - epoch / PASSES), decay=DECAY, batch=BATCH)
    return replace(start, parameters=machine.parameters())
