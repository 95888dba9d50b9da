"""Rollouts of self-play: many hands of a two-seat game at once, the learner on one seat of each.

A rollout is a function of the two policies and a seed alone: it begins with fresh deals and keeps nothing. So an
interrupted training goes on exactly as one never interrupted, and a rollout that was lost can be played again.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor

from bothost.rules import Game, vec_env
from bothost.training.fused import FusedNetwork, fused
from bothost.training.ppo import Batch, Bool, Float, Model, PpoOptions, generalized_advantages, masked_log_probs


class Task(msgspec.Struct, frozen=True):
    """What self-play needs to know of a game of two seats that take turns of several decisions."""

    game: Game
    observation: str
    """View block that the model sees, a vector."""
    turns: int
    """Index in the observation of the number of turns over so far: another number, another turn."""
    scores: str = "scores"
    """View block of two numbers: own score and the other's."""
    reward_scale: float = 1.0
    """What one point of the score lead is worth in rewards."""
    win_points: float = 0.0
    """Points that a hand won counts for in rewards beside its lead, and a hand lost counts against."""
    rule_share: float = 0.0
    """Share of the environments whose other seat the game's own rule player has, in place of the opponent."""
    skip_forced: bool = False
    """Leave decisions with one legal action out of the trajectories, and ask no model for them: they teach the policy
    nothing, and cost as much as any other. What they score counts for the choice before them."""

    @property
    def observation_size(self) -> int:
        """Length of the observation."""
        return int(np.prod(self.game.blocks[self.observation].shape))

    def final(self, leads: Float) -> Float:
        """What leads (n,) at the end of hands count for in rewards, in points."""
        return (leads + self.win_points * np.sign(leads)).astype(np.float32)


class Rollout(NamedTuple):
    """T decisions of the learner in each of N environments; with ``Task.skip_forced`` those that are a choice, and a
    turn is what lies between the first choices of two turns that have one."""

    observations: Float
    """(T, N, observation_size)."""
    masks: Bool
    """(T, N, A): legal actions."""
    actions: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    """(T, N)."""
    log_probs: Float
    """(T, N): log-probability of each action under the learner."""
    values: Float
    """(T, N): the learner's estimates before each action."""
    rewards: Float
    """(T, N): the change of the score lead between two consecutive own turns stands on the earlier turn's last
    decision, that of the last turn is against the final lead; the others are 0. Scaled by ``Task.reward_scale``."""
    dones: Bool
    """(T, N): whether the hand ended before the learner's next decision."""
    last_values: Float
    """(N,): estimates of the positions where the trajectories were cut."""
    final_leads: Float
    """(hands,): the learner's lead at the end of each hand that ended, in points."""
    steps: int
    """Decisions of both sides."""

    def batch(self, options: PpoOptions) -> Batch:
        """The samples of an update, flattened; they share this rollout's memory."""
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
    """N environments with the memory of their trajectories, which every rollout overwrites."""

    def __init__(self, task: Task, environments: int, horizon: int) -> None:
        self.task = task
        self.environments = environments
        self.horizon = horizon
        shape = (horizon, environments)
        self._observations = np.zeros((*shape, task.observation_size), np.float32)
        self._masks = np.zeros((*shape, task.game.num_actions), np.bool_)
        self._actions = np.zeros(shape, np.int64)
        self._log_probs, self._values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def collect(self, learner: Model, opponent: Model, seed: int) -> Rollout:
        """Play until every environment has its decisions of the learner; the rollout is valid until the next one.

        The learner has seat i mod 2 of environment i. An environment that has all its decisions waits, at the
        learner's next one, for the others: there the trajectory is cut, and the learner's estimate stands in for what
        would follow.
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
            ledger.asked(np.flatnonzero(asked), scores[:, 0] - scores[:, 1], observations[:, task.turns])
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
        """(N,): whose decisions are asked of a model, given the legal actions (N, A)."""
        return np.count_nonzero(masks, axis=1) > 1 if self.task.skip_forced else np.ones(len(masks), np.bool_)

    def _record(self, at: np.ndarray, rows: np.ndarray, seen: Float, legal: Bool, choice: Choice) -> None:
        self._observations[at, rows], self._masks[at, rows] = seen, legal
        self._actions[at, rows] = choice.actions
        self._log_probs[at, rows], self._values[at, rows] = choice.log_probs, choice.values


class Ledger:
    """Which reward stands on which decision: see ``Rollout.rewards``.

    ``rows`` are indices of environments; all other arrays have one entry per environment.
    """

    def __init__(self, horizon: int, environments: int, scale: float) -> None:
        self.rewards = np.zeros((horizon, environments), np.float32)
        self.dones = np.zeros((horizon, environments), np.bool_)
        self.taken = np.zeros(environments, np.int64)
        """Decisions of the learner so far."""
        self.final_leads: list[float] = []
        self._scale = scale
        self._lead = np.zeros(environments, np.float32)  # at the beginning of the learner's current turn
        self._turn = np.full(environments, -1.0, np.float32)
        self._open = np.zeros(environments, np.bool_)  # whether that turn has a decision that awaits its reward

    def asked(self, rows: np.ndarray, lead: Float, turn: Float) -> None:
        """The learner is asked in ``rows``: where this is another turn than before, that one has its reward."""
        rows = rows[turn[rows] != self._turn[rows]]
        self._settle(rows, lead[rows])
        self._turn[rows], self._lead[rows] = turn[rows], lead[rows]

    def decided(self, rows: np.ndarray) -> None:
        """The learner decided in ``rows``."""
        self.taken[rows] += 1
        self._open[rows] = True

    def ended(self, rows: np.ndarray, lead: Float, counts: Float) -> None:
        """Hands ended in ``rows``; ``lead`` (len(rows),) is the learner's final one, which counts for ``counts``."""
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
    """Actions (B,) drawn from a policy, with their log-probabilities and the values of the positions."""

    actions: np.ndarray[tuple[int], np.dtype[np.int64]]
    log_probs: Float
    values: Float


def native(model: Model) -> Model:
    """The model as it is now, computed natively where it can be, in the precision that torch would compute it in."""
    return fused(model, bf16=torch.is_autocast_enabled("cpu")) or model


@torch.inference_mode()
def choose(model: Model, observations: Float, masks: Bool, rng: np.random.Generator) -> Choice:
    """Draw one action per row of ``observations`` (B, …) among the legal ones of ``masks`` (B, A)."""
    if isinstance(model, FusedNetwork):
        return Choice(*model.act(observations, masks, rng.random(len(masks), np.float32)))
    logits, values = model(torch.from_numpy(observations))
    log_probs = masked_log_probs(logits.float(), torch.from_numpy(masks))
    actions = draw(log_probs, rng)
    chosen = log_probs.gather(1, actions[:, None]).squeeze(1)
    return Choice(actions.numpy(), chosen.numpy(), values.float().numpy())


def draw(log_probs: Tensor, rng: np.random.Generator) -> Tensor:
    """Indices (B,) distributed by log-probabilities (B, A): the inverse of the distribution function."""
    cumulative = log_probs.exp().cumsum(dim=-1)
    # Below 1 by more than rounding: what is drawn lies under the last step of the function, which a legal action makes.
    uniform = torch.from_numpy(rng.random(len(log_probs), np.float32) * np.float32(1 - 1e-6))
    return torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True).squeeze(1)


@torch.inference_mode()
def estimate(model: Model, observations: Float, chunk: int = 512) -> Float:
    """The model's values (B,) of observations (B, …)."""
    parts = [model(part)[1].float() for part in torch.split(torch.from_numpy(observations), chunk)]
    return torch.cat(parts).numpy()
