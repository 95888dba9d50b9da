"""Proximal policy optimization as small pure functions, and one update that reads top to bottom.

Source: Schulman, Wolski, Dhariwal, Radford, Klimov, "Proximal Policy Optimization Algorithms", arXiv:1707.06347 (2017);
generalized advantages: Schulman et al., arXiv:1506.02438 (2015); the approximate KL divergence: J. Schulman,
"Approximating KL Divergence" (2020), estimator k3.

Shapes: T steps of each trajectory, N trajectories, B samples of a minibatch, A actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from msgspec import Meta
from torch import Tensor

from bothost.training.fused import FusedNetwork, fused

Float = npt.NDArray[np.float32]
Bool = npt.NDArray[np.bool_]


class PpoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hyper-parameters of one update."""

    gamma: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Discount per decision."""
    gae_lambda: Annotated[float, Meta(ge=0, le=1)] = 0.95
    """λ of generalized advantages. 1: Monte-Carlo returns; less: the value estimates count more."""
    epochs: Annotated[int, Meta(ge=1)] = 3
    """Passes over each batch."""
    minibatch: Annotated[int, Meta(ge=1)] = 1024
    """Samples per gradient step."""
    chunk: Annotated[int, Meta(ge=1)] = 512
    """Samples that torch computes at a time. The gradients of the chunks of a step add up. Activations of a few hundred
    samples stay in a core's cache."""
    bf16: bool = False
    """Compute layers in bfloat16, with parameters, losses and gradient steps in float32."""
    clip: Annotated[float, Meta(gt=0)] = 0.2
    """ε: the probability ratio counts within [1 − ε, 1 + ε]."""
    value_coef: Annotated[float, Meta(ge=0)] = 0.5
    """Weight of the value loss."""
    entropy_coef: Annotated[float, Meta(ge=0)] = 0.005
    """Weight of the policy's entropy, which keeps it from becoming certain too soon."""
    entropy_final: Annotated[float, Meta(ge=0)] | None = None
    """Weight of the entropy at the training's end; it changes linearly from ``entropy_coef``. None: it stays."""
    kl_coef: Annotated[float, Meta(ge=0)] = 0.0
    """Weight of the approximate KL divergence as a penalty. 0: plain PPO."""
    max_grad_norm: Annotated[float, Meta(gt=0)] = 0.5
    """Largest norm of the gradients of a step."""
    target_kl: Annotated[float, Meta(gt=0)] | None = 0.05
    """Stop the epochs of an update once the approximate KL divergence exceeds this."""

    def at(self, part_done: float) -> PpoOptions:
        """The options after this part of the training, within 0 and 1."""
        if self.entropy_final is None:
            return self
        weight = self.entropy_coef + part_done * (self.entropy_final - self.entropy_coef)
        return msgspec.structs.replace(self, entropy_coef=weight)


class Batch(NamedTuple):
    """S samples of one update, flattened over time and trajectories."""

    observations: Tensor
    """(S, *observation) float32."""
    masks: Tensor
    """(S, A) bool: legal actions, at least one in each row."""
    actions: Tensor
    """(S,) int64."""
    log_probs: Tensor
    """(S,) float32: log-probability of each action when it was taken."""
    advantages: Tensor
    """(S,) float32."""
    returns: Tensor
    """(S,) float32: targets of the value head."""

    @property
    def samples(self) -> int:
        """S, the number of samples."""
        return int(self.actions.shape[0])


ExtraBatch = Callable[[torch.nn.Module, PpoOptions, np.random.Generator, int], Batch]
"""Returns samples to learn from beside a rollout of so many samples, such as logged hands."""


class Losses(NamedTuple):
    """Terms of the objective of one minibatch; scalars."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


Rows = TypeVar("Rows", bound=tuple[Tensor, ...])
"""A batch of any kind: a ``NamedTuple`` of tensors with a row for each sample."""

Model = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Observations (B, …) → logits (B, A), values (B,)."""


def generalized_advantages(
    rewards: Float, values: Float, dones: Bool, last_values: Float, *, gamma: float, gae_lambda: float
) -> tuple[Float, Float]:
    """Generalized advantage estimates and value targets of N trajectories of T steps.

    ``rewards`` (T, N) follow the actions, ``values`` (T, N) are the estimates before them, ``dones`` (T, N) say whether
    the episode ended with the action, ``last_values`` (N,) estimate the position after the last one.

    Â_t = δ_t + γλ(1 − done_t)·Â_{t+1} with δ_t = r_t + γ(1 − done_t)·V_{t+1} − V_t; targets are Â + V.
    """
    advantages = np.empty_like(rewards)
    following = np.zeros_like(last_values)
    next_values = last_values
    for t in range(rewards.shape[0] - 1, -1, -1):
        going = gamma * (1.0 - dones[t].astype(np.float32))
        delta = rewards[t] + going * next_values - values[t]
        following = delta + gae_lambda * going * following
        advantages[t] = following
        next_values = values[t]
    return advantages, advantages + values


def masked_log_probs(logits: Tensor, masks: Tensor) -> Tensor:
    """Log-probabilities (B, A) of the softmax over legal actions.

    Illegal actions get −1e9 rather than −inf, so that products with probability 0 stay 0.
    """
    return torch.log_softmax(logits.masked_fill(~masks, -1e9), dim=-1)


def probabilities(log_probs: Tensor) -> Tensor:
    """Probabilities (B, A) of log-probabilities (B, A). Of illegal actions ``exp`` takes ten times as long."""
    return torch.softmax(log_probs, dim=-1)


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy (B,) in nats of distributions given by log-probabilities (B, A)."""
    return -(probabilities(log_probs) * log_probs).sum(dim=-1)


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """Mean of (r − 1) − log r for the probability ratio r = new / old. Unbiased for KL(old ‖ new), never negative."""
    return (log_ratio.exp() - 1.0 - log_ratio).mean()


def clipped_policy_loss(log_ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """−E[min(r·Â, clip(r, 1 − ε, 1 + ε)·Â)]."""
    ratio = log_ratio.exp()
    return -torch.min(ratio * advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * advantages).mean()


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Half the mean squared error."""
    return 0.5 * (values - returns).square().mean()


def losses(model: Model, batch: Batch, options: PpoOptions) -> Losses:
    """The objective of one minibatch, to minimise: policy + value_coef·value − entropy_coef·entropy + kl_coef·KL."""
    logits, values = model(batch.observations)
    log_probs = masked_log_probs(logits.float(), batch.masks)
    log_ratio = log_probs.gather(1, batch.actions[:, None]).squeeze(1) - batch.log_probs
    policy = clipped_policy_loss(log_ratio, batch.advantages, options.clip)
    value = value_loss(values.float(), batch.returns)
    spread = entropy(log_probs).mean()
    kl = approximate_kl(log_ratio)
    total = policy + options.value_coef * value - options.entropy_coef * spread + options.kl_coef * kl
    with torch.no_grad():
        clipped = ((log_ratio.exp() - 1.0).abs() > options.clip).float().mean()
    return Losses(total, policy, value, spread, kl, clipped)


def normalized(advantages: Tensor) -> Tensor:
    """Advantages with mean 0 and standard deviation 1 over the whole batch."""
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)


def joined(*batches: Batch) -> Batch:
    """The samples of several batches as one."""
    return Batch(*(torch.cat(fields) for fields in zip(*batches, strict=True)))


def minibatches(batch: Rows, size: int, generator: torch.Generator) -> Iterator[Rows]:
    """The batch in random order, in parts of at most ``size`` samples. Their sizes differ by at most one."""
    samples, part = len(batch[0]), type(batch)._make  # type: ignore[attr-defined]  # a NamedTuple
    for index in torch.tensor_split(torch.randperm(samples, generator=generator), max(1, -(-samples // size))):
        yield part(field.index_select(0, index) for field in batch)  # several times faster than field[index]


def update(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    options: PpoOptions,
    generator: torch.Generator,
) -> dict[str, float]:
    """Update the model from one batch. Returns the mean of every loss term over the gradient steps.

    Advantages are normalised over the batch. With ``target_kl`` the epochs may end early.
    """
    explained = explained_variance(batch.advantages, batch.returns)
    batch = batch._replace(advantages=normalized(batch.advantages))
    gradients = accumulator(model, options)
    figures = descend(model, optimizer, lambda: minibatches(batch, options.minibatch, generator), gradients, options)
    return {**figures, "explained_variance": explained}


Part = TypeVar("Part")


def descend(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    epoch: Callable[[], Iterable[Part]],
    gradients: Callable[[Part], Losses],
    options: PpoOptions,
) -> dict[str, float]:
    """Make a gradient step for every minibatch of every epoch. Returns the means of the terms over the steps.

    ``gradients`` adds the gradients of a minibatch to the model and returns its terms, detached.
    """
    sums = torch.zeros(len(Losses._fields))
    steps = 0
    norms = 0.0
    for part in (part for _ in range(options.epochs) for part in epoch()):
        optimizer.zero_grad(set_to_none=True)
        terms = gradients(part)
        if options.target_kl is not None and float(terms.approx_kl) > options.target_kl:
            break
        norms += clip_gradients(model.parameters(), options.max_grad_norm)
        optimizer.step()
        sums += torch.stack(list(terms))
        steps += 1
    means = (sums / max(1, steps)).tolist()
    return {
        **dict(zip(Losses._fields, means, strict=True)),
        "grad_norm": norms / max(1, steps),
        "gradient_steps": float(steps),
    }


def clip_gradients(parameters: Iterable[torch.nn.Parameter], most: float) -> float:
    """Scale the gradients so that their common norm is at most ``most``. Returns the norm before.

    As ``torch.nn.utils.clip_grad_norm_``, but twice as fast for a small network on a CPU.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return 0.0
    flat = [gradient.flatten() for gradient in gradients]
    norm = float(torch.stack([torch.dot(gradient, gradient) for gradient in flat]).sum().sqrt())
    if not norm <= most:  # also for NaN, as torch does
        for gradient in gradients:
            gradient.mul_(most / (norm + 1e-6))
    return norm


def accumulator(model: torch.nn.Module, options: PpoOptions) -> Callable[[Batch], Losses]:
    """``accumulate`` for this model, or ``accumulate_fused`` where that is possible."""
    if native := fused(model, bf16=options.bf16):
        return lambda batch: accumulate_fused(native, batch, options)
    return lambda batch: accumulate(model, batch, options)


def accumulate(model: Model, batch: Batch, options: PpoOptions) -> Losses:
    """Add the gradients of one minibatch, chunk by chunk. Returns its terms, detached."""
    sums = torch.zeros(len(Losses._fields))
    parts = max(1, -(-batch.samples // options.chunk))
    with precision(options.bf16, batch.actions.device.type):
        for fields in zip(*(torch.tensor_split(field, parts) for field in batch), strict=True):
            chunk = Batch(*fields)
            share = chunk.samples / batch.samples
            terms = losses(model, chunk, options)
            torch.autograd.backward(terms.total * share)
            sums += share * torch.stack([term.detach() for term in terms]).cpu()
    return Losses(*sums)


def accumulate_fused(network: FusedNetwork, batch: Batch, options: PpoOptions) -> Losses:
    """As ``accumulate``, computed natively with the model's present parameters."""
    network.load()
    policy, value, spread, kl, clipped = network.accumulate(
        batch,
        clip=options.clip,
        value_coef=options.value_coef,
        entropy_coef=options.entropy_coef,
        kl_coef=options.kl_coef,
    )
    total = policy + options.value_coef * value - options.entropy_coef * spread + options.kl_coef * kl
    return Losses(*torch.tensor([total, policy, value, spread, kl, clipped]))


def precision(bf16: bool, device: str = "cpu") -> torch.autocast:
    """A context in which layers on this device compute in bfloat16, if ``bf16``."""
    return torch.autocast(device, torch.bfloat16, enabled=bf16)


def explained_variance(advantages: Tensor, returns: Tensor) -> float:
    """1 − Var(advantages) / Var(returns) of value estimates; 0 if the returns are constant.

    The advantages must not be normalised yet: they are returns − values.
    """
    variance = float(returns.var(correction=0))
    return 1.0 - float(advantages.var(correction=0)) / variance if variance > 1e-12 else 0.0
