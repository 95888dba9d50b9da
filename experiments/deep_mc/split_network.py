"""``bothost reproduce deep-mc-split-network``: what the split network costs in accuracy.

deep-mc encodes a position once and values each move from that encoding. The rival is one network of as many parameters
that takes position and move together. Both learn the same decisions of the rule player, by the same optimizer.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bothost import ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost_deep_mc.encode import FEATURES, NOW
from bothost_deep_mc.learn import Networks
from bothost_deep_mc.measure import LARGE, ROLE, play
from bothost_deep_mc.model import Sizes
from bothost_deep_mc.options import Options
from bothost_deep_mc.selfplay import Decisions


class SplitNetworkOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the comparison."""

    decisions: int = 100_000
    """Decisions that the networks learn from."""
    full_decisions: int = 1_000_000
    """Decisions of a full comparison."""
    large: bool = False
    """Networks of 1.5 million parameters a role, instead of the default sizes."""

    def __post_init__(self) -> None:
        if min(self.decisions, self.full_decisions) < 1:
            raise ValueError("decisions and full_decisions must be positive")


class SplitNetworkComparison(Reproduction):
    """Held-out errors of the split network, of a monolithic one and of a constant."""

    name = "deep-mc-split-network"
    Options: ClassVar[type[msgspec.Struct]] = SplitNetworkOptions

    options: SplitNetworkOptions

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        torch.set_num_threads(1)
        decisions = self.options.full_decisions if run.full else self.options.decisions
        figures = compare(LARGE if self.options.large else Sizes(), decisions, run.seed)
        errors = {"split": "", "monolithic": "_monolithic", "constant": "_constant"}
        rows = tuple((network, f"{figures['held_out_error' + end]:.4f}") for network, end in errors.items())
        return Reproduced(
            figures=figures | {"decisions": decisions, "large": self.options.large},
            tables=(ResultTable("Mean squared error of the landlord's returns", ("network", "error"), rows),),
            notes=(f"One pass over {decisions:,} decisions; {figures['held_out_decisions']:,} others are held out.",),
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
        found.append(play(learner, 1024, seed + 100 + len(found), imitate=True).decisions[ROLE])
    every = Decisions(*(np.concatenate(fields) for fields in zip(*found, strict=True)))
    split = learner.nets[ROLE]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        whole = Monolithic(NOW + FEATURES, sum(p.numel() for p in split.net.parameters()))
    optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-5) for net in (split.net, whole)]

    def inputs(rows: slice) -> tuple[torch.Tensor, ...]:
        parts = every.positions[rows], every.moves[rows, 0], every.returns[rows]
        return tuple(torch.from_numpy(part).float() for part in parts)

    for begin in range(0, decisions, 512):
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = 1e-3 * (1.0 - begin / decisions)
        positions, moves, returns = inputs(slice(begin, min(begin + 512, decisions)))
        split.load()
        errors = (
            split(positions, moves, torch.arange(len(moves) + 1))[0] - returns,
            whole(torch.cat([positions, moves], dim=1)) - returns,
        )
        for error, optimizer in zip(errors, optimizers, strict=True):
            optimizer.zero_grad()
            error.square().mean().backward()
            optimizer.step()
    split.load()
    positions, moves, returns = inputs(slice(decisions, None))
    with torch.inference_mode():
        apart = torch.from_numpy(split.evaluate(positions.numpy(), moves.numpy(), np.arange(len(moves) + 1)))
        together = whole(torch.cat([positions, moves], dim=1))
    return {
        "held_out_error": round(float((apart - returns).square().mean()), 4),
        "held_out_error_monolithic": round(float((together - returns).square().mean()), 4),
        "held_out_error_constant": round(float(returns.var()), 4),
        "held_out_decisions": len(returns),
    }
