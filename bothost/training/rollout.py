"""Rollouts of self-play: many hands of a two-seat game at once, with the learner on one seat of each.

A rollout depends on the two policies and a seed alone. It begins with fresh deals and keeps nothing. So a resumed
training continues exactly, and a lost rollout can be played again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor

from bothost.rules import Game, vec_env
from bothost.training.fused import FusedNetwork, fused
from bothost.training.limits import Count, Positive, Share
from bothost.training.loop import Learner, LoopOptions
from bothost.training.ppo import (
    Batch,
    Bool,
    Float,
    Model,
    PpoOptions,
    generalized_advantages,
    masked_log_probs,
    probabilities,
)

Build = Callable[[], torch.nn.Module]
"""Makes a model with fresh parameters from torch's global generator."""


class SelfPlayOptions(LoopOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a training by self-play."""

    environments: Count = 256
    """Hands played at once."""
    horizon: Count = 128
    """Decisions of the learner in each environment and iteration."""
    learning_rate: Positive = 1e-3
    """At the beginning. It falls linearly to 0 at the end."""
    newest_share: Share = 0.5
    """Share of the rollouts against the newest version of the pool. The others draw any version, equally likely."""
    ppo: PpoOptions = PpoOptions()


class RolloutTask(msgspec.Struct, frozen=True):
    """A game of two seats, as self-play sees it. A turn may have several decisions."""

    game: Game
    observation: str
    """The view block that the model sees, a vector."""
    turns: int
    """Index of the number of finished turns in the observation."""
    scores: str = "scores"
    """The view block with two numbers: own score and the opponent's."""
    reward_scale: float = 1.0
    """Reward per reward point."""
    lead_weight: float = 1.0
    """Reward points per point of the score lead."""
    win_points: float = 0.0
    """Reward points added for a hand that was won, and taken for one that was lost."""
    rule_share: float = 0.0
    """Share of the environments in which the game's rule player replaces the opponent."""
    skip_forced: bool = False
    """Leave decisions with one legal action out of the trajectories. They teach the policy nothing and cost as much as
    others. Their rewards count for the choice before them."""

    @property
    def observation_size(self) -> int:
        """Length of the observation vector."""
        return int(np.prod(self.game.blocks[self.observation].shape))

    def final(self, leads: Float) -> Float:
        """Final leads (n,) in points, as rewards count them."""
        return (self.lead_weight * leads + self.win_points * np.sign(leads)).astype(np.float32)


class Rollout(NamedTuple):
    """T decisions of the learner in each of N environments.

    With ``RolloutTask.skip_forced`` only choices count, and a turn lasts from its first choice to the first choice of
    the next turn that has one.
    """

    observations: Float
    """(T, N, observation_size)."""
    masks: Bool
    """(T, N, A): legal actions."""
    actions: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    """(T, N)."""
    log_probs: Float
    """(T, N): log-probability of each action under the learner."""
    values: Float
    """(T, N): the learner's value estimates before each action."""
    rewards: Float
    """(T, N): the last decision of a turn gets the change of the score lead until the next own turn, or until the end
    of the hand. Other decisions get 0. Scaled by ``RolloutTask.reward_scale``."""
    dones: Bool
    """(T, N): whether the hand ended before the learner's next decision."""
    last_values: Float
    """(N,): value estimates of the positions where the trajectories were cut."""
    final_leads: Float
    """(hands,): the learner's lead at the end of each hand that ended, in points."""
    steps: int
    """Decisions of both seats."""

    def batch(self, options: PpoOptions) -> Batch:
        """The samples of an update, flattened, with generalized advantages. They share this rollout's memory."""
        advantages, returns = generalized_advantages(
            self.rewards,
            self.values,
            self.dones,
            self.last_values,
            gamma=options.gamma,
            gae_lambda=options.gae_lambda,
        )
        fields = (self.observations, self.masks, self.actions, self.log_probs, advantages, returns)
        return Batch(*(torch.from_numpy(field.reshape(-1, *field.shape[2:])) for field in fields))


class SelfPlay:
    """N environments and the memory of their trajectories. Every rollout overwrites that memory."""

    def __init__(self, task: RolloutTask, environments: int, horizon: int) -> None:
        self.task = task
        self.environments = environments
        self.horizon = horizon
        shape = (horizon, environments)
        self._observations = np.zeros((*shape, task.observation_size), np.float32)
        self._masks = np.zeros((*shape, task.game.num_actions), np.bool_)
        self._actions = np.zeros(shape, np.int64)
        self._log_probs, self._values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def collect(self, learner: Model, opponent: Model, seed: int) -> Rollout:
        """Play until every environment has ``horizon`` decisions of the learner.

        The learner has seat i mod 2 of environment i. An environment that is complete waits at the learner's next
        decision. There the trajectory is cut, and the learner's value estimate replaces the later rewards.
        """
        task, n = self.task, self.environments
        learner, opponent = native(learner), native(opponent)
        rng = np.random.default_rng([seed, 1])
        env = vec_env(task.game, n, seed)
        seats = np.arange(n, dtype=np.int8) % 2
        ledger = Ledger(self.horizon, n, task.reward_scale)
        observations = np.empty((n, task.observation_size), np.float32)
        masks = np.empty((n, task.game.num_actions), np.bool_)
        scores = np.empty((n, 2), np.float32)
        by_rule = np.arange(n) < round(task.rule_share * n)
        steps = 0
        while True:
            env.encode(task.observation, observations)
            env.encode(task.scores, scores)
            env.legal_mask(masks)
            learners, choosing = env.seat == seats, self._choosing(masks)
            asked = learners & choosing
            leads = task.lead_weight * (scores[:, 0] - scores[:, 1])
            ledger.asked(np.flatnonzero(asked), leads, observations[:, task.turns])
            own = np.flatnonzero(asked & (ledger.taken < self.horizon))
            other, forced = np.flatnonzero(~learners & choosing), np.flatnonzero(~choosing)
            if not len(own) and not len(other) and not len(forced):
                break
            actions = np.full(n, -1, np.int32)
            actions[forced] = masks[forced].argmax(axis=1)
            if len(own):
                seen, legal = observations[own], masks[own]
                choice = choose(learner, seen, legal, rng)
                self._record(ledger.taken[own], own, seen, legal, choice)
                actions[own] = choice.actions
                ledger.decided(own)
            if len(others := other[~by_rule[other]]):
                actions[others] = choose(opponent, observations[others], masks[others], rng).actions
            if len(others := other[by_rule[other]]):
                actions[others] = env.rule_actions(others)
            env.step(actions)
            ended = np.flatnonzero(env.done)
            leads = env.returns[ended, seats[ended]]
            ledger.ended(ended, leads, task.final(leads))
            steps += len(own) + len(other) + len(forced)
        return Rollout(
            self._observations,
            self._masks,
            self._actions,
            self._log_probs,
            self._values,
            ledger.rewards,
            ledger.dones,
            estimate(learner, observations),
            np.array(ledger.final_leads, np.float32),
            steps,
        )

    def _choosing(self, masks: Bool) -> Bool:
        """(N,): whether a model decides, given the legal actions (N, A)."""
        return np.count_nonzero(masks, axis=1) > 1 if self.task.skip_forced else np.ones(len(masks), np.bool_)

    def _record(self, at: np.ndarray, rows: np.ndarray, seen: Float, legal: Bool, choice: Choice) -> None:
        self._observations[at, rows], self._masks[at, rows] = seen, legal
        self._actions[at, rows] = choice.actions
        self._log_probs[at, rows], self._values[at, rows] = choice.log_probs, choice.values


class Ledger:
    """Assigns rewards to decisions, as ``Rollout.rewards`` describes.

    ``rows`` are indices of environments. Other arrays have one entry per environment.
    """

    def __init__(self, horizon: int, environments: int, scale: float) -> None:
        self.rewards = np.zeros((horizon, environments), np.float32)
        self.dones = np.zeros((horizon, environments), np.bool_)
        self.taken = np.zeros(environments, np.int64)
        """Decisions of the learner so far."""
        self.final_leads: list[float] = []
        self._scale = scale
        self._lead = np.zeros(environments, np.float32)  # when the learner's turn began
        self._turn = np.full(environments, -1.0, np.float32)
        self._open = np.zeros(environments, np.bool_)  # whether a decision of that turn awaits its reward

    def asked(self, rows: np.ndarray, lead: Float, turn: Float) -> None:
        """The learner must decide in ``rows``. Where a new turn starts, the previous turn gets its reward."""
        rows = rows[turn[rows] != self._turn[rows]]
        self._settle(rows, lead[rows])
        self._turn[rows], self._lead[rows] = turn[rows], lead[rows]

    def decided(self, rows: np.ndarray) -> None:
        """The learner decided in ``rows``."""
        self.taken[rows] += 1
        self._open[rows] = True

    def ended(self, rows: np.ndarray, lead: Float, counts: Float) -> None:
        """Hands ended in ``rows`` with the learner's final ``lead``, which rewards count as ``counts``."""
        finished = rows[self._open[rows]]
        self.dones[self.taken[finished] - 1, finished] = True
        self._settle(rows, counts)
        self._turn[rows], self._lead[rows] = -1.0, 0.0
        self.final_leads += lead.tolist()

    def _settle(self, rows: np.ndarray, lead: Float) -> None:
        waiting = self._open[rows]
        rows, lead = rows[waiting], lead[waiting]
        self.rewards[self.taken[rows] - 1, rows] += self._scale * (lead - self._lead[rows])
        self._open[rows] = False


class Choice(NamedTuple):
    """Actions (B,) drawn from a policy, their log-probabilities, and the values of the positions."""

    actions: np.ndarray[tuple[int], np.dtype[np.int64]]
    log_probs: Float
    values: Float


def native(model: Model) -> Model:
    """The model with its present parameters, computed natively if possible, in torch's current precision."""
    return fused(model, bf16=torch.is_autocast_enabled("cpu")) or model


@torch.inference_mode()
def choose(model: Model, observations: Float, masks: Bool, rng: np.random.Generator) -> Choice:
    """Draw one legal action for each of the observations (B, …); ``masks`` (B, A) are the legal ones."""
    if isinstance(model, FusedNetwork):
        return Choice(*model.act(observations, masks, rng.random(len(masks), np.float32)))
    logits, values = model(torch.from_numpy(observations))
    log_probs = masked_log_probs(logits.float(), torch.from_numpy(masks))
    actions = draw(log_probs, rng)
    chosen = log_probs.gather(1, actions[:, None]).squeeze(1)
    return Choice(actions.numpy(), chosen.numpy(), values.float().numpy())


def draw(log_probs: Tensor, rng: np.random.Generator) -> Tensor:
    """Draw indices (B,) by log-probabilities (B, A), through the inverse of the distribution function."""
    cumulative = probabilities(log_probs).cumsum(dim=-1)
    # Stay below 1 by more than rounding: then the index is at most that of the last legal action.
    uniform = torch.from_numpy(rng.random(len(log_probs), np.float32) * np.float32(1 - 1e-6))
    return torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True).squeeze(1)


@torch.inference_mode()
def estimate(model: Model, observations: Float, chunk: int = 512) -> Float:
    """The model's values (B,) of observations (B, …)."""
    parts = [model(part)[1].float() for part in torch.split(torch.from_numpy(observations), chunk)]
    return torch.cat(parts).numpy()


class SelfPlayLearner(Learner):
    """A model that learns by self-play. Subclasses play and update it in one process or in many."""

    plotted = ("mean_lead", "value", "entropy", "approx_kl", "explained_variance")

    def __init__(self, options: SelfPlayOptions, build: Build, seed: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.options = options
        self.model = build()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate, eps=1e-5, fused=True)

    def note(self, figures: Mapping[str, float]) -> str:
        """See ``Learner``."""
        return f"lead {figures['mean_lead']:+.1f} over version {figures['opponent']:.0f}"


def rollout_figures(leads: Float, steps_per_s: float) -> dict[str, float]:
    """Metrics of self-play; ``leads`` (hands,) are the learner's at the end of each hand."""
    return {
        "mean_lead": float(leads.mean()) if len(leads) else 0.0,
        "win_rate": float((leads > 0).mean() + 0.5 * (leads == 0).mean()) if len(leads) else 0.5,
        "hands": len(leads),
        "rollout_steps_per_s": round(steps_per_s),
    }
