"""Learns a player from the player's own hands, without a crowd.

Few hands say little, but single pairs of features explain much of them: the partner leads, and a move beats it. So
features grow one at a time, as in boosting (``pairs``). Several fits each leave out a part of the hands. They end where
the loss on left-out hands is least, and the clone is their mean.

With more decisions a factorization machine adds to that, and its scores are added to those of the pairs. Left-out hands
say with which shares. With many decisions the machine predicts alone.
"""

from __future__ import annotations

import itertools

import numpy as np

from bothost_fm_clone.crowd import SharedOptions, crowd_of
from bothost_fm_clone.encode import Encoding
from bothost_fm_clone.fit import score
from bothost_fm_clone.mixed import best_shares, mixed
from bothost_fm_clone.pairs import Pairs, left_out
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.sight import sight

MACHINES = (
    SharedOptions(quadratic=0, rectified=0, machines=1, passes=10, rate=0.1, decay=3e-3, combinations=0),
    SharedOptions(quadratic=8, rectified=16, machines=1, passes=8, rate=0.03, decay=1e-2, combinations=0),
    SharedOptions(quadratic=16, rectified=32, machines=1, passes=8, rate=0.02, decay=1e-2, combinations=0),
)
"""Machines that are tried. The one that predicts left-out hands best is taken."""
FEW, MANY, MOST = 2000, 4000, 12_000
"""Machines are tried from ``FEW`` decisions on. From ``MANY`` on only two of the fits are made, as each takes half a
minute. From ``MOST`` on there are none."""
SHARES = tuple(itertools.product((0.6, 0.7, 0.8, 0.9, 1.0, 1.1), (0.0, 0.1, 0.2, 0.3, 0.4)))
"""The shares of the pairs' and of the machine's scores that are tried."""


def player_alone(own: Encoding, learnt: Decisions, seed: int) -> tuple[SharedClone, dict[str, float | str]]:
    """The clone of these decisions' player, and how it was made, with its log-loss on left-out hands.

    Raises ValueError for decisions of fewer than two hands.
    """
    parts, seen = left_out(learnt, seed), sight(own.game).of(learnt)
    if len(learnt) < FEW:
        pairs = Pairs(seen, parts, own)
        return pairs.clone(), {"method": "pairs", "log_loss": round(pairs.loss, 4)}
    rest, out = learnt.where(~parts[0]), learnt.where(parts[0])
    tried = [_machine(own, rest, options, seed) for options in MACHINES]
    losses = [score(machine.probabilities_of(out.samples), out.samples).log_loss for machine in tried]
    best = int(np.argmin(losses))
    machine = _machine(own, learnt, MACHINES[best], seed)
    told = f"{machine.quadratic} factors"
    if len(learnt) >= MOST:
        return machine, {"method": told, "log_loss": round(losses[best], 4)}
    pairs = Pairs(seen, parts if len(learnt) < MANY else parts[:2], own)
    shares, loss = best_shares([pairs.clone(fold=0)], [tried[best]], [seen.where(parts[0]).samples], SHARES)
    return mixed(pairs.clone(), machine, shares), {"method": f"pairs and {told}", "log_loss": round(loss, 4)}


def _machine(own: Encoding, some: Decisions, options: SharedOptions, seed: int) -> SharedClone:
    blank = SharedClone.blank(own, options.quadratic, options.rectified, seed)
    return crowd_of(blank, some, options, seed, fresh=True)
