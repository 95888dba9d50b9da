"""What ``bothost bench deepmc`` measures: the speed of self-play and of learning, and what the split network costs in
accuracy beside one network that takes position and move together.

Times are the process's own CPU time, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import msgspec
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bothost.rules import game
from bothost_deep_mc.branches import play_round
from bothost_deep_mc.encode import FEATURES, NOW
from bothost_deep_mc.engine import PRESET
from bothost_deep_mc.learn import Networks
from bothost_deep_mc.model import Sizes
from bothost_deep_mc.options import Options
from bothost_deep_mc.selfplay import Decisions, Round

LARGE = Sizes(trunk=(896, 512), head=(512, 256))
"""About 1.5 million parameters a role."""
ROLE = "landlord"
"""Whose networks are compared."""


def measure(*, hands: int, repeats: int, large: bool, held_out: int, seed: int) -> dict[str, Any]:
    """Figures of the networks of ``LARGE`` or of the default sizes.

    The networks first learn from some hands of the rule player, so that hands are about as long as in training.
    ``held_out``: decisions that the comparison of networks learns from; 0: none is made.
    """
    torch.set_num_threads(1)
    sizes = LARGE if large else Sizes()
    learner = Networks(Options(sizes=sizes, branches=0), seed)
    rng = np.random.default_rng(seed)
    options = learner.options
    taught = _round(learner, hands, seed, imitate=True, keep_expert=True)
    for _ in range(8):
        learner.learn(taught, 5.0, rng)
    speeds = []
    for turn in range(repeats):
        began = time.process_time()
        played = _round(learner, hands, seed + 1 + turn)
        took = time.process_time() - began
        samples = sum(len(part.returns) for part in played.decisions.values())
        began = time.process_time()
        learner.learn(played, 0.0, rng)
        speeds.append((played.hands / took, played.asked / took, samples / (time.process_time() - began)))
    games, decisions, learnt = (median(column) for column in zip(*speeds, strict=True))
    figures = {
        "games_per_s_core": float(f"{games:.4g}"),
        "decisions_per_s_core": float(f"{decisions:.4g}"),
        "train_samples_per_s_core": float(f"{learnt:.4g}"),
        "parameters_per_role": sum(p.numel() for p in learner.model.of(ROLE).parameters()),
        "sizes": msgspec.to_builtins(options.sizes),
    }
    return figures | (compare(sizes, held_out, seed) if held_out else {})


def _round(learner: Networks, hands: int, seed: int, *, imitate: bool = False, keep_expert: bool = False) -> Round:
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


class Monolithic(nn.Module):
    """One network of position and move together, as large as the split one of these sizes: (n, inputs) → (n,)."""

    def __init__(self, inputs: int, parameters: int) -> None:
        super().__init__()
        # Three equal hidden layers: inputs·w + 2w² + w and the biases make up the parameters.
        width = int((-(inputs + 4) + ((inputs + 4) ** 2 + 8 * parameters) ** 0.5) / 4)
        self.layers = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, width)])
        self.value = nn.Linear(width, 1)
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = functional.relu(layer(x))
        values: torch.Tensor = self.value(x).squeeze(1)
        return values


def compare(sizes: Sizes, decisions: int, seed: int) -> dict[str, float]:
    """Mean squared errors of the split and of a monolithic network of as many parameters, on the same held-out
    decisions of the rule player, after one pass over the same others with the same optimizer."""
    learner = Networks(Options(sizes=sizes, branches=0), seed)
    found: list[Decisions] = []
    while sum(len(part.returns) for part in found) < 1.25 * decisions:
        found.append(_round(learner, 1024, seed + 100 + len(found), imitate=True).decisions[ROLE])
    every = Decisions(*(np.concatenate(fields) for fields in zip(*found, strict=True)))
    split = learner.nets[ROLE]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        whole = Monolithic(NOW + FEATURES, sum(p.numel() for p in split.net.parameters()))
    optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-5) for net in (split.net, whole)]

    def inputs(rows: slice) -> tuple[Any, Any, torch.Tensor]:
        part = every.positions[rows].astype(np.float32), every.moves[rows, 0].astype(np.float32)
        return *part, torch.from_numpy(every.returns[rows])

    for begin in range(0, decisions, 512):
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = 1e-3 * (1.0 - begin / decisions)
        positions, moves, returns = inputs(slice(begin, min(begin + 512, decisions)))
        split.load()
        errors = (
            split(positions, moves, np.arange(len(moves) + 1))[0] - returns,
            whole(torch.from_numpy(np.concatenate([positions, moves], axis=1))) - returns,
        )
        for error, optimizer in zip(errors, optimizers, strict=True):
            optimizer.zero_grad()
            error.square().mean().backward()
            optimizer.step()
    split.load()
    positions, moves, returns = inputs(slice(decisions, None))
    with torch.inference_mode():
        apart = torch.from_numpy(split.evaluate(positions, moves, np.arange(len(moves) + 1)))
        together = whole(torch.from_numpy(np.concatenate([positions, moves], axis=1)))
    return {
        "held_out_error": round(float((apart - returns).square().mean()), 4),
        "held_out_error_monolithic": round(float((together - returns).square().mean()), 4),
        "held_out_error_constant": round(float(returns.var()), 4),
        "held_out_decisions": len(returns),
    }
