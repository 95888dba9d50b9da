"""Policy gradients from branches: several actions of one position, each played to the end from the same state.

The branches of a position share its hidden cards and its wall, so their differences say more about the actions than the
scores of different hands do. Every action that was tried is a sample, weighted by its probability, and its advantage is
its score less the policy's mean over the actions that were tried.

Source: "vine" sampling of Schulman, Levine, Moritz, Jordan, Abbeel, "Trust Region Policy Optimization",
arXiv:1502.05477 (2015), here with the clipped objective of ``ppo``.

Shapes: S positions, K actions tried in each at most, A actions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bothost.training.ppo import (
    Losses,
    Model,
    PpoOptions,
    descend,
    entropy,
    masked_log_probs,
    minibatches,
    precision,
    probabilities,
    value_loss,
)


class BranchBatch(NamedTuple):
    """Positions with branches."""

    observations: Tensor
    """(S, *observation) float32."""
    masks: Tensor
    """(S, A) bool: legal actions."""
    log_probs: Tensor
    """(S, A) float32: log-probabilities of the policy that chose the actions to try."""
    actions: Tensor
    """(S, K) int64: actions that were tried. Any action where ``weights`` is 0."""
    weights: Tensor
    """(S, K) float32: their probabilities; 0 for none."""
    advantages: Tensor
    """(S, K) float32."""
    returns: Tensor
    """(S,) float32: targets of the value head."""

    @property
    def samples(self) -> int:
        """S, the number of positions."""
        return int(self.actions.shape[0])


def weighted_mean(scores: Tensor, weights: Tensor) -> Tensor:
    """Means (S,) of scores (S, K) by weights (S, K), which need not sum to 1."""
    return (weights * scores).sum(dim=1) / weights.sum(dim=1)


def branch_advantages(scores: Tensor, weights: Tensor) -> Tensor:
    """Scores (S, K) less their weighted mean; 0 where the weight is 0."""
    return torch.where(weights > 0.0, scores - weighted_mean(scores, weights)[:, None], 0.0)


def scaled(advantages: Tensor, weights: Tensor) -> Tensor:
    """Advantages with a weighted mean square of 1 over the batch."""
    mean_square = (weights * advantages.square()).sum() / weights.sum()
    return advantages / (mean_square.sqrt() + 1e-8)


def branch_policy_loss(log_ratio: Tensor, advantages: Tensor, weights: Tensor, clip: float) -> Tensor:
    """−E[Σ over the actions of weight·min(r·Â, clip(r, 1 − ε, 1 + ε)·Â)]; all (S, K)."""
    ratio = log_ratio.exp()
    gains = torch.min(ratio * advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * advantages)
    return -(weights * gains).sum(dim=1).mean()


def branch_losses(model: Model, batch: BranchBatch, options: PpoOptions) -> Losses:
    """The terms of ``ppo.losses`` for positions with branches. The KL divergence is exact, of the old policy to the
    new."""
    logits, values = model(batch.observations)
    log_probs = masked_log_probs(logits.float(), batch.masks)
    log_ratio = (log_probs - batch.log_probs).gather(1, batch.actions)
    policy = branch_policy_loss(log_ratio, batch.advantages, batch.weights, options.clip)
    value = value_loss(values.float(), batch.returns)
    spread = entropy(log_probs).mean()
    kl = (probabilities(batch.log_probs) * (batch.log_probs - log_probs)).sum(dim=1).mean()
    total = policy + options.value_coef * value - options.entropy_coef * spread + options.kl_coef * kl
    with torch.no_grad():
        outside = ((log_ratio.exp() - 1.0).abs() > options.clip).float()
        clipped = (batch.weights * outside).sum() / batch.weights.sum()
    return Losses(total, policy, value, spread, kl, clipped)


def update(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: BranchBatch,
    options: PpoOptions,
    generator: torch.Generator,
) -> dict[str, float]:
    """Update the model from one batch. Returns the mean of every loss term over the gradient steps.

    Advantages are scaled over the batch. With ``target_kl`` the epochs may end early.
    """
    batch = batch._replace(advantages=scaled(batch.advantages, batch.weights))

    def gradients(part: BranchBatch) -> Losses:
        with precision(options.bf16, part.actions.device.type):
            terms = branch_losses(model, part, options)
            torch.autograd.backward(terms.total)
        return Losses(*(term.detach() for term in terms))

    return descend(model, optimizer, lambda: minibatches(batch, options.minibatch, generator), gradients, options)
