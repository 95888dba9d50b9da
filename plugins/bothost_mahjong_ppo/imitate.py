"""Warm start: imitate a player before PPO. Report its results separately from pure training."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from bothost.inference import legal_masks
from bothost.rules import Game, View, mahjong
from bothost.training import ppo
from bothost.training.loop import set_learning_rate
from bothost.training.ppo import Float, masked_log_probs, value_loss
from bothost_mahjong_ppo.encode import ACTIONS, REWARD_SCALE
from bothost_mahjong_ppo.model import MahjongNet
from bothost_mahjong_ppo.selfplay import observed

Teacher = Literal["rule", "acceptance-weighted", "discerning"]
TEACHERS = {
    "rule": mahjong.rule_choice,
    "acceptance-weighted": mahjong.acceptance_weighted_choice,
    "discerning": mahjong.acceptance_weighted_choice,
}
"""Teachers: ``rule-mahjong``, or the same planner with the acceptance-weighted look-ahead (once ``discerning``)."""
MINIBATCH = 64
PASSES = 3
"""Passes over each chunk of hands."""
BISECTIONS = 20
SHRINKAGE = 1e-2
"""L2 penalty on the critic's weights, relative to the mean square of its inputs."""


def demonstrations(
    game: Game, hands: int, seed: int, teacher: Teacher = "rule"
) -> tuple[Float, np.ndarray, np.ndarray, Float]:
    """Decisions of a teacher on all four seats: observations (n, 3760), masks (n, 193), actions (n,), rewards (n,)."""
    choice = TEACHERS[teacher]
    views: list[View] = []
    actions: list[int] = []
    scores: list[float] = []
    for number in range(hands):
        state = game.new_state((seed + number) % 2**63)
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            action = choice(view)[0]
            if len(view.legal()) > 1:
                views.append(view)
                actions.append(action)
            state.apply(seat, action)
        scores += [state.returns[view.seat] * REWARD_SCALE for view in views[len(scores) :]]
    legal = [view.legal() for view in views]
    masks = legal_masks(legal, ACTIONS)
    return observed(views, legal), masks, np.array(actions, np.int64), np.array(scores, np.float32)


def imitate(
    model: MahjongNet,
    game: Game,
    hands: int,
    seed: int,
    *,
    rate: float,
    entropy: float = 0.0,
    chunk: int = 64,
    teacher: Teacher = "rule",
) -> float:
    """Imitate ``hands`` hands of the teacher. Returns the agreement on the last tenth, which is held out.

    Minimises the cross-entropy of the actions and half the squared error of the scores. ``entropy``: the least mean
    entropy of the policy, in nats. A clone is too certain for reinforcement learning to explore, so its logits shrink
    until the policy has that entropy.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, eps=1e-5, fused=True)
    generator = torch.Generator().manual_seed(seed)
    taught = max(1, hands * 9 // 10)
    for begin in range(0, taught, chunk):
        fields = [torch.from_numpy(f) for f in demonstrations(game, min(chunk, taught - begin), seed + begin, teacher)]
        set_learning_rate(optimizer, rate * (1.0 - begin / taught))
        orders = [torch.randperm(len(fields[0]), generator=generator) for _ in range(PASSES)]
        for index in (part for order in orders for part in torch.split(order, MINIBATCH)):
            observations, legal, actions, scores = (field[index] for field in fields)
            logits, values = model(observations)
            loss = torch.nn.functional.nll_loss(masked_log_probs(logits, legal), actions) + value_loss(values, scores)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    legal, actions, logits = _unseen(model, game, max(1, hands - taught), seed + taught, teacher)
    model.cool(cooling(logits, legal, entropy))
    return float((masked_log_probs(logits, legal).argmax(dim=1) == actions).float().mean())


def fit_critic(
    model: MahjongNet, game: Game, hands: int, seed: int, chunk: int = 32, teacher: Teacher = "rule"
) -> float:
    """Fit the value's last layers to the scores of ``hands`` hands of the teacher, in closed form.

    The policy does not change. Returns the explained variance of the scores in a quarter as many held-out hands. The
    imitation alone overfits the few scores that it sees, and a useless critic leaves PPO with very noisy advantages.
    """
    gram = moment = None
    for begin in range(0, hands, chunk):
        inputs, scores = _critic_samples(model, game, min(chunk, hands - begin), seed + begin, teacher)
        gram = inputs.T @ inputs if gram is None else gram + inputs.T @ inputs
        moment = inputs.T @ scores if moment is None else moment + inputs.T @ scores
    assert gram is not None and moment is not None
    shrinkage = SHRINKAGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    weights = torch.linalg.solve(gram + shrinkage, moment)
    model.set_critic(weights.float())
    inputs, scores = _critic_samples(model, game, max(1, hands // 4), seed + hands, teacher)
    return ppo.explained_variance(scores - inputs @ weights, scores)


def _critic_samples(
    model: MahjongNet, game: Game, hands: int, seed: int, teacher: Teacher
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs of the critic (n, 235) and scaled scores (n,), float64."""
    observations, _, _, scores = (torch.from_numpy(field) for field in demonstrations(game, hands, seed, teacher))
    return model.critic_inputs(observations).double(), scores.double()


@torch.inference_mode()
def _unseen(model: torch.nn.Module, game: Game, hands: int, seed: int, teacher: Teacher) -> tuple[torch.Tensor, ...]:
    observations, legal, actions, _ = (torch.from_numpy(f) for f in demonstrations(game, hands, seed, teacher))
    return legal, actions, model(observations)[0]


def cooling(logits: torch.Tensor, legal: torch.Tensor, entropy: float) -> float:
    """The factor, at most 1, that shrinks logits (B, A) to this mean entropy. 1 if they have it already."""

    def mean_entropy(factor: float) -> float:
        return float(ppo.entropy(masked_log_probs(factor * logits, legal)).mean())

    low, high = 0.0, 1.0
    if mean_entropy(high) >= entropy:
        return high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_entropy(middle) >= entropy else (low, middle)
    return low
