"""Learning from logged hands: trajectories that another policy made, corrected by V-trace.

Source: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner Architectures",
arXiv:1802.01561 (2018), section 4.1. The weights stand on the advantages, while the ratio that PPO clips is against the
policy at the beginning of the update: proximal and behaviour policy are two (Hilton, Cobbe, Schulman, "Batch size
invariance for policy optimization", arXiv:2110.00641, 2021).

A bot that always plays its most probable action gives one action per position: of what it never tried the log says
nothing, whatever the weights. So logged hands are mixed with fresh self-play. From the log come positions and outcomes
against the opponents that were really met; from self-play comes what else could have been done.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bothost.strategy import LoggedStep, Trajectory
from bothost.training.ppo import Batch, Bool, Float, PpoOptions, masked_log_probs
from bothost.training.rollout import Task

UNKNOWN = math.inf
"""Log-probability of an action that the strategy did not choose: its weight becomes 0."""
DONE = "hands.json"


def vtrace(
    rewards: Float,
    values: Float,
    dones: Bool,
    log_ratios: Float,
    *,
    gamma: float,
    gae_lambda: float,
    most: float = 1.0,
) -> tuple[Float, Float]:
    """Weighted advantages and value targets of N trajectories of T steps, all arrays (T, N); each ends with a done.

    ``log_ratios``: log π(a)/μ(a), of the policy that learns and the one that acted. With ρ = min(most, π/μ) and
    c = λ·min(1, π/μ): v_t = V_t + ρ_t(r_t + γV_{t+1} − V_t) + γc_t(v_{t+1} − V_{t+1}), and the advantage is
    ρ_t(r_t + γv_{t+1} − V_t). On-policy, the targets are those of generalized advantages.
    """
    ratios = np.exp(np.minimum(log_ratios, 20.0))
    rho, c = np.minimum(most, ratios), gae_lambda * np.minimum(1.0, ratios)
    advantages, targets = np.empty_like(rewards), np.empty_like(rewards)
    next_value = next_target = np.zeros_like(rewards[0])
    for t in range(rewards.shape[0] - 1, -1, -1):
        going = gamma * (1.0 - dones[t].astype(np.float32))
        delta = rho[t] * (rewards[t] + going * next_value - values[t])
        targets[t] = values[t] + delta + going * c[t] * (next_target - next_value)
        advantages[t] = rho[t] * (rewards[t] + going * next_target - values[t])
        next_value, next_target = values[t], targets[t]
    return advantages, targets


def behaviour(step: LoggedStep) -> float:
    """Log-probability with which the action was taken; ``UNKNOWN`` where nobody knows.

    ``stats["temperature"]`` tells that the action was drawn, with probabilities to the power 1 / temperature. Without
    it the most probable action was taken, with certainty.
    """
    if not step.own or step.policy is None or len(step.policy) != len(step.legal):
        return UNKNOWN
    at = int(np.searchsorted(step.legal, step.action))
    if at == len(step.legal) or step.legal[at] != step.action:
        return UNKNOWN
    temperature = step.stats.get("temperature")
    if not isinstance(temperature, int | float) or temperature <= 0.0:
        return 0.0
    odds = np.maximum(step.policy.astype(np.float64), 1e-30) ** (1.0 / float(temperature))
    return float(np.log(max(odds[at] / odds.sum(), 1e-30)))


class LoggedHands:
    """Logged trajectories of a two-seat game, encoded in files that are mapped, not read: memory does not grow."""

    def __init__(self, folder: Path, task: Task) -> None:
        self.task = task
        self.offsets: npt.NDArray[np.int64] = np.array(json.loads((folder / DONE).read_text())["offsets"], np.int64)
        """(hands + 1,): where each trajectory begins."""
        self._observations = np.load(folder / "observations.npy", mmap_mode="r")
        self._masks = np.load(folder / "masks.npy", mmap_mode="r")
        self._rest = np.load(folder / "rest.npy", mmap_mode="r")
        """(S, 3) float32: action, log-probability under the behaviour policy, reward."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def decisions(self) -> int:
        return int(self.offsets[-1])

    @classmethod
    def encoded(cls, folder: Path, task: Task, hands: Iterable[Trajectory]) -> LoggedHands:
        """Encode trajectories into ``folder``, or take what an earlier run left there complete."""
        if not (folder / DONE).exists():
            folder.mkdir(parents=True, exist_ok=True)
            _encode(folder, task, hands)
        return cls(folder, task)

    def batch(self, model: torch.nn.Module, options: PpoOptions, rng: np.random.Generator, samples: int) -> Batch:
        """About so many samples: whole hands, drawn with replacement."""
        lengths = np.diff(self.offsets)
        chosen: list[int] = []
        while sum(lengths[hand] for hand in chosen) < samples:
            chosen.append(int(rng.integers(len(lengths))))
        return self._batch(model, options, np.array(chosen))

    def value_error(self, model: torch.nn.Module) -> float:
        """Mean squared difference of the model's values and the rewards that followed, over all hands."""
        total = 0.0
        for hand in range(len(self)):
            first, end = self.offsets[hand], self.offsets[hand + 1]
            with torch.inference_mode():
                values = model(torch.from_numpy(np.array(self._observations[first:end])))[1].float().numpy()
            following = np.cumsum(self._rest[first:end, 2][::-1])[::-1]
            total += float(np.square(values - following).sum())
        return total / max(1, self.decisions)

    def _batch(self, model: torch.nn.Module, options: PpoOptions, hands: npt.NDArray[np.int64]) -> Batch:
        lengths = self.offsets[hands + 1] - self.offsets[hands]
        rows = np.concatenate([np.arange(self.offsets[h], self.offsets[h + 1]) for h in hands])
        observations, masks = np.array(self._observations[rows]), np.array(self._masks[rows])
        rest = np.array(self._rest[rows])
        actions = rest[:, 0].astype(np.int64)
        with torch.inference_mode():
            logits, values = model(torch.from_numpy(observations))
            log_probs = masked_log_probs(logits.float(), torch.from_numpy(masks))
            chosen = log_probs.gather(1, torch.from_numpy(actions)[:, None]).squeeze(1).numpy()
        # One column per hand, filled up behind its end with steps that change nothing.
        column = np.repeat(np.arange(len(hands)), lengths)
        step = np.concatenate([np.arange(n) for n in lengths])
        shape = int(lengths.max()), len(hands)
        rewards, before = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        ratios, dones = np.zeros(shape, np.float32), np.ones(shape, np.bool_)
        rewards[step, column], before[step, column] = rest[:, 2], values.float().numpy()
        ratios[step, column] = np.where(np.isinf(rest[:, 1]), -np.inf, chosen - rest[:, 1])
        dones[step, column] = step == np.repeat(lengths - 1, lengths)
        advantages, targets = vtrace(rewards, before, dones, ratios, gamma=options.gamma, gae_lambda=options.gae_lambda)
        fields = (observations, masks, actions, chosen, advantages[step, column], targets[step, column])
        return Batch(*(torch.from_numpy(np.array(field)) for field in fields))


def rewards_of(leads: Float, turns: Float, final: float, scale: float) -> Float:
    """Rewards (T,) of one seat's decisions: the change of the lead between two consecutive own turns, on the earlier
    turn's last decision; that of the last turn is against the final lead."""
    rewards = np.zeros(len(leads), np.float32)
    begins = np.flatnonzero(np.diff(turns, prepend=np.nan) != 0)
    after = np.append(leads[begins[1:]], final)
    rewards[np.append(begins[1:], len(leads)) - 1] = scale * (after - leads[begins])
    return rewards


def _encode(folder: Path, task: Task, hands: Iterable[Trajectory]) -> None:
    offsets = [0]
    shapes: Mapping[str, tuple[tuple[int, ...], Any]] = {
        "observations": ((task.observation_size,), np.float32),
        "masks": ((task.game.num_actions,), np.bool_),
        "rest": ((3,), np.float32),
    }
    files = {name: (folder / f"{name}.raw").open("wb") for name in shapes}
    try:
        for hand in hands:
            if len(hand.scores) != 2 or not hand.steps or not _fits(task, hand):
                continue
            for name, rows in zip(shapes, _rows(task, hand), strict=True):
                rows.tofile(files[name])
            offsets.append(offsets[-1] + len(hand.steps))
    finally:
        for file in files.values():
            file.close()
    for name, (shape, dtype) in shapes.items():
        with (folder / f"{name}.raw").open("rb") as raw, (folder / f"{name}.npy").open("wb") as made:
            header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False}
            np.lib.format.write_array_header_2_0(made, {**header, "shape": (offsets[-1], *shape)})
            while block := raw.read(1 << 24):
                made.write(block)
        (folder / f"{name}.raw").unlink()
    (folder / DONE).write_text(json.dumps({"offsets": offsets}))


def _fits(task: Task, hand: Trajectory) -> bool:
    block = hand.game.blocks[task.observation] if hand.game.name == task.game.name else None
    return block is not None and block.version == task.game.blocks[task.observation].version


def _rows(task: Task, hand: Trajectory) -> tuple[Float, Bool, Float]:
    steps = hand.steps
    observations = np.empty((len(steps), task.observation_size), np.float32)
    masks = np.zeros((len(steps), task.game.num_actions), np.bool_)
    scores = np.empty((len(steps), 2), np.float32)
    rest = np.empty((len(steps), 3), np.float32)
    for i, step in enumerate(steps):
        step.view.encode(task.observation, observations[i])
        step.view.encode(task.scores, scores[i])
        masks[i, step.legal] = True
        rest[i, :2] = step.action, behaviour(step)
    mine, other = hand.scores[hand.seat], hand.scores[1 - hand.seat]
    final = mine if mine + other == 0.0 else mine - other  # some lobbies tell leads, others each seat's points
    counts = float(task.final(np.array([final], np.float32))[0])
    rest[:, 2] = rewards_of(scores[:, 0] - scores[:, 1], observations[:, task.turns], counts, task.reward_scale)
    return observations, masks, rest
