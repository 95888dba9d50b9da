"""Hands of the learner in which uncertain decisions branch: each likely action is played to the end on the same wall.

A rule player decides what follows in all four seats (``mahjong.branches``). So a branch says what an action is worth if
all play on as that player does: the policy that learns from them improves on it by one step. With ``draws`` a critic
that sees all hands values branches after so many draws, and nothing that luck brings later counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import torch
from msgspec import Meta

from bothost.errors import UsageError
from bothost.rules import FloatArray, Game, State, mahjong
from bothost.training.branches import BranchBatch, branch_advantages, weighted_mean
from bothost.training.ppo import Float, masked_log_probs
from bothost.training.rollout import draw
from bothost_mahjong_ppo.encode import REWARD_SCALE
from bothost_mahjong_ppo.imitate import Teacher
from bothost_mahjong_ppo.selfplay import Group, Opponents, new_hands, observe, play_out


class BranchOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which decisions branch, and how far."""

    candidates: Annotated[int, Meta(ge=0)] = 0
    """Actions of a decision that are tried at most, the most probable ones. 0: nothing branches, plain PPO."""
    least_probability: Annotated[float, Meta(ge=0, lt=0.5)] = 0.03
    """Actions below it are not tried. A decision with fewer than two actions to try does not branch."""
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Share of the other decisions that branch."""
    continuation: Teacher = "acceptance-weighted"
    """The player that continues in all seats: ``rule-mahjong``, or the stronger one with the acceptance-weighted
    look-ahead. ``discerning`` is the old name of that one."""
    draws: Annotated[int, Meta(ge=0)] = 0
    """Draws after which the critic of ``mahjong.luck`` values a branch. 0: it is played to the end of the hand."""

    def __post_init__(self) -> None:
        if self.candidates == 1:
            raise ValueError("candidates must be 0 or at least 2")


class BranchedHands(NamedTuple):
    """Played hands with branches."""

    batch: BranchBatch
    scores: Float
    """Of each of the learner's seats in each hand, in points."""
    decisions: int
    """Of the learner."""
    branches: int
    """Hands that were played to the end to value actions."""


def candidates(probabilities: FloatArray, options: BranchOptions) -> np.ndarray:
    """The most probable actions of probabilities (A,), best first. Those of probability 0 are illegal."""
    best = np.argsort(-probabilities, kind="stable")[: options.candidates]
    return best[(probabilities[best] >= options.least_probability) & (probabilities[best] > 0.0)]


class _Branches:
    """The positions that branched, in the order of play."""

    def __init__(self, options: BranchOptions) -> None:
        self.options = options
        self.observations: list[Float] = []
        self.masks: list[np.ndarray] = []
        self.log_probs: list[Float] = []
        self.tried: list[np.ndarray] = []
        self.scores: list[Float] = []
        self.decisions = 0

    def branch(self, state: State, seat: int, observation: Float, mask: np.ndarray, log_probs: Float) -> None:
        """Play the likely actions of a decision to the end, if there are several."""
        tried = candidates(np.exp(log_probs), self.options)
        if len(tried) < 2:
            return
        weighted, draws = self.options.continuation != "rule", self.options.draws
        scores = mahjong.branches(state, seat, tried, acceptance_weighted=weighted, draws=draws)
        self.scores.append(scores[:, seat])
        self.observations.append(observation)
        self.masks.append(mask)
        self.log_probs.append(log_probs)
        self.tried.append(tried)

    def batch(self) -> BranchBatch:
        """All of them, with advantages in scaled points. Raises UsageError if there are none."""
        if not self.tried:
            problem = "no decision branched: the policy is certain everywhere"
            raise UsageError(problem, advice="lower branches.least_probability")
        shape = len(self.tried), self.options.candidates
        actions, scores = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        weights = np.zeros(shape, np.float32)
        for row, (tried, found, log_probs) in enumerate(zip(self.tried, self.scores, self.log_probs, strict=True)):
            n = len(tried)
            actions[row, :n], scores[row, :n], weights[row, :n] = tried, found, np.exp(log_probs[tried])
        values, given = torch.from_numpy(REWARD_SCALE * scores), torch.from_numpy(weights)
        return BranchBatch(
            torch.from_numpy(np.stack(self.observations)),
            torch.from_numpy(np.stack(self.masks)),
            torch.from_numpy(np.stack(self.log_probs)),
            torch.from_numpy(actions),
            given,
            branch_advantages(values, given),
            weighted_mean(values, given),
        )


def play_branching(
    game: Game,
    learner: torch.nn.Module,
    opponents: Opponents,
    hands: int,
    seed: int,
    options: BranchOptions,
    share: float = 0.0,
) -> BranchedHands:
    """Play hands as ``selfplay.play`` does, and branch. The result depends on the seed and the networks alone."""
    rng = np.random.default_rng([seed, 1])
    made = _Branches(options)

    def decide(group: Group) -> Sequence[int]:
        observations, legal = observe([(hand.state, seat) for hand, seat in group], share, rng)
        with torch.inference_mode():
            log_probs = masked_log_probs(learner(torch.from_numpy(observations))[0], torch.from_numpy(legal))
            actions: list[int] = draw(log_probs, rng).tolist()
        made.decisions += len(group)
        for i in np.flatnonzero(rng.random(len(group)) < options.share).tolist():
            hand, seat = group[i]
            made.branch(hand.state, seat, observations[i], legal[i], log_probs[i].numpy())
        return actions

    scores = play_out(new_hands(game, opponents, hands, seed), opponents, decide, rng)
    return BranchedHands(made.batch(), scores, made.decisions, sum(map(len, made.tried)))
