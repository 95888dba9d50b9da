"""Updates by several trainers, each with its share of the rollouts.

All trainers have the same model. For each gradient step, each trainer adds up the gradients of its own samples. A sum
over all trainers, weighted by samples, gives them the same mean, so they make the same step. Minibatches do not depend
on the number of trainers: each rollout is shuffled and cut into as many parts as the update has steps, and minibatch k
consists of all parts k. So the number of trainers changes only the order of floating-point additions.

This is data parallelism as in Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training"
(2020). The sum follows the backward pass explicitly, because shares differ in size and native models have no autograd
hooks.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator, Sequence

import torch
import torch.distributed
from torch import Tensor
from torch._C._distributed_c10d import Store

from bothost.training import ppo
from bothost.training.ppo import Batch, Losses, PpoOptions


def shares(workers: int, trainers: int) -> list[range]:
    """The workers of each trainer: consecutive, sizes differing by at most one, larger ones first.

    >>> [len(share) for share in shares(70 * 45, 8)]
    [394, 394, 394, 394, 394, 394, 393, 393]
    """
    small, larger = divmod(workers, trainers)
    starts = [small * trainer + min(trainer, larger) for trainer in range(trainers + 1)]
    return [range(begin, end) for begin, end in itertools.pairwise(starts)]


class Group:
    """The group of trainers that this process belongs to."""

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all trainers, in place. All get the same bits."""
        if self.size > 1:
            torch.distributed.all_reduce(tensor)
        return tensor


def join(rank: int, size: int, store: Store | None, device: str, timeout_s: float) -> Group:
    """Join a group of ``size`` trainers that meet at ``store``. One trainer needs no store.

    Leaves any earlier group. Trainers use NCCL on GPUs, otherwise gloo.
    """
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    if size > 1:
        torch.distributed.init_process_group(
            "nccl" if device == "cuda" else "gloo",
            store=store,
            rank=rank,
            world_size=size,
            timeout=datetime.timedelta(seconds=timeout_s),
        )
    return Group(size)


def update(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    options: PpoOptions,
    generators: Sequence[torch.Generator],
    group: Group,
) -> dict[str, float]:
    """Update the model from the rollouts of all trainers. This one has ``batches``, with a generator for each.

    The figures are those of ``ppo.update`` over all trainers; ``batch`` is the number of samples.
    """
    own = ppo.joined(*batches) if len(batches) > 1 else batches[0]
    total, advantage, spread = moments(own.advantages, group)
    _, _, returns = moments(own.returns, group)
    parts = max(1, math.ceil(total / options.minibatch))
    normal = own._replace(advantages=((own.advantages - advantage) / (math.sqrt(spread) + 1e-8)).float())
    sizes = [batch.samples for batch in batches]
    accumulate = ppo.accumulator(model, options)

    def gradients(part: Batch) -> Losses:
        return mean_gradients(model, accumulate(part), part.samples, group)

    figures = ppo.descend(model, optimizer, lambda: minibatches(normal, sizes, parts, generators), gradients, options)
    explained = 1.0 - spread / returns if returns > 1e-12 else 0.0
    return {**figures, "explained_variance": explained, "batch": float(total)}


def minibatches(
    samples: Batch, sizes: Sequence[int], parts: int, generators: Sequence[torch.Generator]
) -> Iterator[Batch]:
    """``parts`` minibatches with a random part of every rollout each. ``sizes``: the samples of each rollout."""
    cuts, begin = [], 0
    for size, generator in zip(sizes, generators, strict=True):
        order = torch.randperm(size, generator=generator) + begin
        cuts.append(torch.tensor_split(order.to(samples.actions.device), parts))
        begin += size
    for pieces in zip(*cuts, strict=True):
        index = torch.cat(pieces)
        yield Batch(*(field.index_select(0, index) for field in samples))  # several times faster than field[index]


def mean_gradients(model: torch.nn.Module, terms: Losses, samples: int, group: Group) -> Losses:
    """Set the gradients to the mean over the samples of all trainers. Returns the means of the terms."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    means = torch.stack([*terms, torch.ones(())]).to(gradients[0])
    flat = torch.cat([*(gradient.reshape(-1) for gradient in gradients), means]) * samples
    group.sum(flat)
    flat /= flat[-1].clone()
    begin = 0
    for gradient in gradients:
        gradient.copy_(flat[begin : begin + gradient.numel()].view_as(gradient))
        begin += gradient.numel()
    return Losses(*flat[begin:-1].float().cpu())


def moments(values: Tensor, group: Group) -> tuple[int, float, float]:
    """Number, mean and variance of the values of all trainers."""
    wide = values.double()
    count, total = group.sum(torch.stack([torch.ones_like(wide).sum(), wide.sum()])).tolist()
    mean = total / count
    return int(count), mean, float(group.sum((wide - mean).square().sum())) / count
