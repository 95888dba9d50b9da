"""Learning from logged hands: trajectories of another policy, corrected by V-trace.

Source: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner Architectures",
arXiv:1802.01561 (2018), section 4.1. The weights stand on the advantages, while the ratio that PPO clips is against the
policy at the beginning of the update: proximal and behaviour policy are two (Hilton, Cobbe, Schulman, "Batch size
invariance for policy optimization", arXiv:2110.00641, 2021).

A bot that always plays its most probable action logs one action per position. The log says nothing about actions that
it never tried. So logged hands are mixed with fresh self-play. The log brings positions and outcomes against real
opponents, and self-play brings the alternatives.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from bothost.errors import UsageError
from bothost.inference import legal_masks
from bothost.rules import ActionArray, FloatArray
from bothost.strategy import LoggedGames, LoggedStep, Trajectory
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import Batch, Bool, ExtraBatch, Float, PpoOptions, masked_log_probs
from bothost.training.rollout import RolloutTask

UNKNOWN = math.inf
"""Log-probability of an action that the strategy did not choose. Its weight becomes 0."""
DONE = "hands.json"
"""Written last: where each hand begins, and the shapes of the other files."""
FILES = ("observations", "masks", "rest")
"""Files of raw arrays, by row. ``rest`` (S, 3) float32 has action, behaviour log-probability and reward."""


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
    """Log-probability of the action under the policy that acted, or ``UNKNOWN``.

    With ``stats["temperature"]`` the action was drawn, with probabilities to the power 1 / temperature. Without it the
    action was certain: the most probable one, or the one that playouts found.
    """
    if not step.own or step.policy is None or len(step.policy) != len(step.legal):
        return UNKNOWN
    at = int(np.searchsorted(step.legal, step.action))
    if at == len(step.legal) or step.legal[at] != step.action:
        return UNKNOWN
    temperature = step.stats.get("temperature")
    if not isinstance(temperature, int | float) or temperature <= 0.0:
        return 0.0
    logs = np.log(np.maximum(step.policy.astype(np.float64), 1e-30)) / float(temperature)
    if not np.isfinite(logs).all():  # a plugin may log anything
        return UNKNOWN
    return float(logs[at] - np.logaddexp.reduce(logs))


class Encoded(NamedTuple):
    """The T decisions of one trajectory, encoded."""

    observations: FloatArray
    """(T, observation_size)."""
    rewards: Float
    """(T,): the reward after each decision."""
    choices: Sequence[ActionArray] | None = None
    """The legal actions among which the policy chose, of each decision. None: all legal ones."""


class HandEncoder(Protocol):
    """Encodes trajectories of a game as observations and rewards."""

    @property
    def observation_size(self) -> int: ...

    @property
    def num_actions(self) -> int: ...

    @property
    def precision(self) -> npt.DTypeLike:
        """Type of the stored observations."""
        ...

    def __call__(self, hand: Trajectory) -> Encoded | None:
        """None if the hand is of another game, other rules or another encoder version."""
        ...


class LoggedHands:
    """Encoded logged trajectories in memory-mapped files, so memory does not grow."""

    def __init__(self, folder: Path) -> None:
        done = json.loads((folder / DONE).read_text())
        self.offsets: npt.NDArray[np.int64] = np.array(done["offsets"], np.int64)
        """(hands + 1,): where each trajectory begins."""
        self.left_out: int = done.get("left_out", 0)
        """Number of trajectories that the encoder does not take."""
        self._observations, self._masks, self._rest = (
            _mapped(folder / file, kind, (self.decisions, width)) for file, kind, width in _columns(done)
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def decisions(self) -> int:
        return int(self.offsets[-1])

    @classmethod
    def encoded(cls, folder: Path, encoder: HandEncoder, hands: Iterable[Trajectory]) -> LoggedHands:
        """Encode trajectories into ``folder``, or open what an earlier run completed there with this encoding."""
        if not _completed(folder, encoder):
            folder.mkdir(parents=True, exist_ok=True)
            _encode(folder, encoder, hands)
        return cls(folder)

    @classmethod
    def of_splits(cls, folder: Path, encoder: HandEncoder, games: LoggedGames) -> tuple[LoggedHands, LoggedHands]:
        """The hands to learn from and those to measure by: splits "train" and "val" of a dataset, each encoded in a
        folder of its own. Raises UsageError where there is nothing to learn from."""
        train, val = (cls.encoded(folder / split, encoder, games.trajectories(split)) for split in ("train", "val"))
        if not len(train):
            what = "scored hand by the rules of this training" if train.left_out else "scored hand of this game"
            raise UsageError(f"the dataset has no {what}", advice="play more, or ask for other hands")
        return train, val

    def batch(self, model: torch.nn.Module, options: PpoOptions, rng: np.random.Generator, samples: int) -> Batch:
        """About ``samples`` decisions of whole hands, at least one, drawn with replacement."""
        lengths = np.diff(self.offsets)
        chosen: list[int] = []
        drawn = 0
        while drawn < max(1, samples):
            chosen.append(int(rng.integers(len(lengths))))
            drawn += int(lengths[chosen[-1]])
        return self.batch_of(model, options, np.array(chosen))

    def extra_batch(self, share: float) -> ExtraBatch | None:
        """Samples beside each rollout: ``share`` times as many. None if the share is 0."""
        if not share:
            return None
        return lambda model, options, rng, samples: self.batch(model, options, rng, round(share * samples))

    def value_error(self, model: torch.nn.Module, gamma: float = 1.0) -> float:
        """Mean squared difference between the model's values and the discounted returns, over all hands."""
        total = 0.0
        for hand in range(len(self)):
            first, end = self.offsets[hand], self.offsets[hand + 1]
            with torch.inference_mode():
                values = model(torch.from_numpy(self._observed(slice(first, end))))[1].float().numpy()
            following = 0.0
            for value, reward in zip(values[::-1], self._rest[first:end, 2][::-1], strict=True):
                following = float(reward) + gamma * following
                total += (float(value) - following) ** 2
        return total / max(1, self.decisions)

    def evaluation(self, pool: ModelPool, model: torch.nn.Module, gamma: float = 1.0) -> dict[str, dict[str, float]]:
        """The value errors of the pool's first and last versions. ``model`` is a model to load them into.

        ``gamma``: the discount of the training.
        """
        errors = []
        for version in (pool.versions[0], pool.versions[-1]):
            pool.load(version, model)
            errors.append(round(self.value_error(model, gamma), 6))
        return {"value_error_on_val": {"before": errors[0], "after": errors[1]}}

    def _observed(self, rows: slice | npt.NDArray[np.int64]) -> Float:
        return np.array(self._observations[rows], np.float32)

    def batch_of(self, model: torch.nn.Module, options: PpoOptions, hands: npt.NDArray[np.int64]) -> Batch:
        """All decisions of the hands with these numbers."""
        lengths = self.offsets[hands + 1] - self.offsets[hands]
        rows = np.concatenate([np.arange(self.offsets[h], self.offsets[h + 1]) for h in hands])
        observations, masks = self._observed(rows), np.array(self._masks[rows])
        rest = np.array(self._rest[rows])
        actions = rest[:, 0].astype(np.int64)
        with torch.inference_mode():
            logits, values = model(torch.from_numpy(observations))
            log_probs = masked_log_probs(logits.float(), torch.from_numpy(masks))
            chosen = log_probs.gather(1, torch.from_numpy(actions)[:, None]).squeeze(1).numpy()
        # One column per hand. Steps after its end change nothing.
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
    """Rewards (T,) of one seat's decisions.

    The last decision of a turn gets the change of the lead until the next own turn, or until the end of the hand.
    """
    rewards = np.zeros(len(leads), np.float32)
    begins = np.flatnonzero(np.diff(turns, prepend=np.nan) != 0)
    after = np.append(leads[begins[1:]], final)
    rewards[np.append(begins[1:], len(leads)) - 1] = scale * (after - leads[begins])
    return rewards


class LeadEncoder:
    """Encodes two-seat games with changes of the score lead as rewards, as in ``rollout.Rollout``."""

    precision = np.float32

    def __init__(self, task: RolloutTask) -> None:
        self.task = task
        self.observation_size = task.observation_size
        self.num_actions = task.game.num_actions

    def __call__(self, hand: Trajectory) -> Encoded | None:
        task = self.task
        if (hand.game.name, hand.game.rules) != (task.game.name, task.game.rules) or len(hand.scores) != 2:
            return None
        if hand.game.blocks[task.observation].version != task.game.blocks[task.observation].version:
            return None
        observations = np.empty((len(hand.steps), task.observation_size), np.float32)
        scores = np.empty((len(hand.steps), 2), np.float32)
        for i, step in enumerate(hand.steps):
            step.view.encode(task.observation, observations[i])
            step.view.encode(task.scores, scores[i])
        mine, other = hand.scores[hand.seat], hand.scores[1 - hand.seat]
        final = mine if mine + other == 0.0 else mine - other  # some lobbies send leads, others points of each seat
        counts = float(task.final(np.array([final], np.float32))[0])
        leads = task.lead_weight * (scores[:, 0] - scores[:, 1])
        return Encoded(observations, rewards_of(leads, observations[:, task.turns], counts, task.reward_scale))


def _mapped(file: Path, dtype: npt.DTypeLike, shape: tuple[int, int]) -> npt.NDArray[Any]:
    return np.memmap(file, dtype, "r", shape=shape) if shape[0] else np.empty(shape, dtype)


def _completed(folder: Path, encoder: HandEncoder) -> bool:
    """Whether the folder has whole files of this encoding."""
    try:
        done = json.loads((folder / DONE).read_text())
        rows, same = int(done["offsets"][-1]), all(done[name] == value for name, value in _layout(encoder).items())
        sizes = [(folder / file).stat().st_size - rows * width * kind.itemsize for file, kind, width in _columns(done)]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return same and not any(sizes)


def _columns(done: Mapping[str, Any]) -> list[tuple[str, np.dtype[Any], int]]:
    """(file, type, numbers in a row) of the files that ``DONE`` describes."""
    (size, precision), actions = done["observations"], done["num_actions"]
    columns = ((size, precision), (actions, np.bool_), (3, np.float32))
    return [(f"{name}.raw", np.dtype(kind), width) for name, (width, kind) in zip(FILES, columns, strict=True)]


def _layout(encoder: HandEncoder) -> dict[str, Any]:
    """What ``DONE`` says of the files beside ``offsets``: size and type of the stored observations, and the actions."""
    observations = [encoder.observation_size, np.dtype(encoder.precision).name]
    return {"observations": observations, "num_actions": encoder.num_actions}


def _encode(folder: Path, encoder: HandEncoder, hands: Iterable[Trajectory]) -> None:
    """Write the arrays of each hand to the files of the folder, and last ``DONE``, which is whole or not there."""
    (folder / DONE).unlink(missing_ok=True)
    offsets, left_out = [0], 0
    with ExitStack() as stack:
        observations, masks, rest = (stack.enter_context((folder / f"{name}.raw").open("wb")) for name in FILES)
        for hand in hands:
            if not hand.steps:
                continue
            encoded = encoder(hand)
            if encoded is None:
                left_out += 1
                continue
            steps = len(hand.steps)
            legal = legal_masks(encoded.choices or [step.legal for step in hand.steps], encoder.num_actions)
            numbers = np.empty((steps, 3), np.float32)
            numbers[:, 0] = [step.action for step in hand.steps]
            numbers[:, 1] = [behaviour(step) for step in hand.steps]
            numbers[:, 2] = encoded.rewards
            encoded.observations.astype(encoder.precision, copy=False).tofile(observations)
            legal.tofile(masks)
            numbers.tofile(rest)
            offsets.append(offsets[-1] + steps)
    building = folder / f".{DONE}"
    building.write_text(json.dumps({"offsets": offsets, "left_out": left_out, **_layout(encoder)}))
    building.replace(folder / DONE)
