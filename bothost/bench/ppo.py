"""``bothost bench ppo``: the speed of self-play and its updates, and of sb3-contrib's MaskablePPO in the same run.

Both train a network 384 → 256 → 256 → 58 + 1 on the pairing game, on one thread, in turns. They have equally many
environments, decisions per environment, samples per gradient step and epochs. Ours also computes the opponent's
decisions; MaskablePPO plays both seats. Time is the process's CPU time, so that other load does not count.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from statistics import median
from typing import Annotated, Any

import msgspec
import torch
import typer
from torch import Tensor, nn

from bothost.native import _native
from bothost.rules import game
from bothost.training import ppo
from bothost.training.ppo import PpoOptions
from bothost.training.rollout import RolloutTask, SelfPlay

ACTIONS = 58
ABSENT = "absent"


class Net(nn.Module):
    """The network of phase-ppo."""

    def __init__(self) -> None:
        super().__init__()
        layers = (nn.Linear(384, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, ACTIONS + 1))
        self.layers = nn.Sequential(*layers)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        out = self.layers(observations)
        return out[:, :ACTIONS], out[:, ACTIONS]

    def linear_layers(self) -> list[nn.Linear]:
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]


def command(
    environments: Annotated[int, typer.Option(help="Hands played at once.", min=1)] = 512,
    horizon: Annotated[int, typer.Option(help="Decisions per environment and update.", min=1)] = 128,
    minibatch: Annotated[int, typer.Option(help="Samples per gradient step.", min=1)] = 1024,
    epochs: Annotated[int, typer.Option(help="Passes over each batch.", min=1)] = 3,
    repeats: Annotated[int, typer.Option(help="Measurements of each kind; the median counts.", min=1)] = 3,
) -> dict[str, Any]:
    """Measure. Samples are decisions that are played and then trained on; steps are decisions of either side."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    options = PpoOptions(minibatch=minibatch, epochs=epochs, target_kl=None)
    fp32 = Trial(environments, horizon, options)
    bf16 = Trial(environments, horizon, msgspec.structs.replace(options, bf16=True)) if has_bf16() else None
    peer = _peer(environments, horizon, minibatch, epochs)
    peer_rates: list[float] = []
    for turn in range(repeats + 1):  # the first warms up
        for trial in (fp32, bf16):
            if trial is not None:
                trial.run(keep=turn > 0)
        if peer is not None:
            began = time.process_time()
            peer()
            rate = environments * horizon / (time.process_time() - began)
            peer_rates += [rate] if turn > 0 else []
    theirs = median(peer_rates) if peer_rates else None
    return {
        "samples_per_s_core": fp32.samples_per_s,
        "samples_per_s_core_bf16": bf16.samples_per_s if bf16 else ABSENT,
        "maskable_ppo_samples_per_s_core": theirs or ABSENT,
        "ratio_fp32": fp32.samples_per_s / theirs if theirs else ABSENT,
        "ratio_bf16": bf16.samples_per_s / theirs if bf16 and theirs else ABSENT,
        "rollout_steps_per_s_core": fp32.steps_per_s,
        "rollout_steps_per_s_core_bf16": bf16.steps_per_s if bf16 else ABSENT,
        "environments": environments,
        "horizon": horizon,
        "minibatch": minibatch,
        "epochs": epochs,
    }


class Trial:
    """Rollouts and updates in one precision."""

    def __init__(self, environments: int, horizon: int, options: PpoOptions) -> None:
        self.options = options
        self.play = SelfPlay(
            RolloutTask(game("pairing"), "features", turns=381, reward_scale=0.1), environments, horizon
        )
        self.model, self.opponent = Net(), Net()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)
        self._samples: list[float] = []
        self._steps: list[float] = []

    def run(self, keep: bool) -> None:
        """One rollout and one update. ``keep``: count it."""
        start = time.process_time()
        with ppo.precision(self.options.bf16):
            rollout = self.play.collect(self.model, self.opponent, seed=1)
        played = time.process_time()
        batch = rollout.batch(self.options)
        ppo.update(self.model, self.optimizer, batch, self.options, torch.Generator().manual_seed(1))
        if keep:
            self._steps.append(rollout.steps / (played - start))
            self._samples.append(batch.samples / (time.process_time() - start))

    @property
    def samples_per_s(self) -> float:
        return median(self._samples)

    @property
    def steps_per_s(self) -> float:
        return median(self._steps)


def has_bf16() -> bool:
    """Whether the CPU multiplies in bfloat16."""
    return "avx512_bf16" in _native.network_kernels()


def _peer(environments: int, horizon: int, minibatch: int, epochs: int) -> Callable[[], object] | None:
    if importlib.util.find_spec("sb3_contrib") is None:
        return None
    from bothost.bench.ppo_peer import maskable_ppo

    return maskable_ppo(environments, horizon, minibatch, epochs)
