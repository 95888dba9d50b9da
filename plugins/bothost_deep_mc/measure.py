"""Benchmarks for ``bothost bench deepmc``: the speed of self-play and of learning.

Times are CPU times of the process, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import msgspec
import numpy as np
import torch

from bothost.rules import game
from bothost_deep_mc.branches import play_round
from bothost_deep_mc.engine import PRESET
from bothost_deep_mc.learn import Networks
from bothost_deep_mc.model import Sizes
from bothost_deep_mc.options import Options
from bothost_deep_mc.selfplay import Round

LARGE = Sizes(trunk=(896, 512), head=(512, 256))
"""About 1.5 million parameters a role."""
ROLE = "landlord"
"""The role whose parameters are counted."""


def measure(*, hands: int, repeats: int, large: bool, seed: int) -> dict[str, Any]:
    """Measure networks of the sizes ``LARGE`` or the default sizes.

    The networks first learn from hands of the rule player, so that hands are about as long as in training.
    """
    torch.set_num_threads(1)
    sizes = LARGE if large else Sizes()
    learner = Networks(Options(sizes=sizes, branches=0), seed)
    rng = np.random.default_rng(seed)
    options = learner.options
    taught = play(learner, hands, seed, imitate=True, keep_expert=True)
    for _ in range(8):
        learner.learn(taught.decisions, taught.pairs, 5.0, rng)
    speeds = []
    for turn in range(repeats):
        began = time.process_time()
        played = play(learner, hands, seed + 1 + turn)
        took = time.process_time() - began
        samples = sum(len(part.returns) for part in played.decisions.values())
        began = time.process_time()
        learner.learn(played.decisions, played.pairs, 0.0, rng)
        speeds.append((played.hands / took, played.asked / took, samples / (time.process_time() - began)))
    games, decisions, learnt = (median(column) for column in zip(*speeds, strict=True))
    return {
        "games_per_s_core": float(f"{games:.4g}"),
        "decisions_per_s_core": float(f"{decisions:.4g}"),
        "train_samples_per_s_core": float(f"{learnt:.4g}"),
        "parameters_per_role": sum(p.numel() for p in learner.model.of(ROLE).parameters()),
        "sizes": msgspec.to_builtins(options.sizes),
    }


def play(learner: Networks, hands: int, seed: int, *, imitate: bool = False, keep_expert: bool = False) -> Round:
    """A round of self-play. With ``imitate``, the rule player plays."""
    return play_round(
        game("doudizhu", preset=PRESET),
        learner.nets,
        learner.options.play,
        hands=hands,
        seed=seed,
        seen=learner.options.seen,
        imitate=imitate,
        keep_expert=keep_expert,
    )
