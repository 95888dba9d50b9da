"""Networks of action values Q(s, a): a trunk that runs once per position, and a small head that runs once per move.

:class:`ActionValueNet` holds the parameters and is the readable version. :class:`NativeActionValues` computes the same
natively, with the parameters of the torch module: values for play, and values with representations for learning, with
gradients through autograd. First layers skip inputs that are 0, as most elements of card encodings are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from bothost.native import _native

Float = npt.NDArray[np.float32]
Offsets = npt.NDArray[np.int64]


class ActionValueNet(nn.Module):
    """Positions (P, inputs), moves (M, features) and offsets (P + 1,) → values (M,) and representations (M, width).

    Position i has the moves ``offsets[i]`` to ``offsets[i + 1]``. With trunk(s) of the position, the first hidden layer
    of the head is ReLU(W trunk(s) + b + T x) of the move's inputs x; a representation is the last hidden layer.
    """

    def __init__(self, inputs: int, features: int, trunk: Sequence[int], head: Sequence[int]) -> None:
        """``trunk`` and ``head``: widths of their hidden layers. The native version needs multiples of 16."""
        super().__init__()
        self.inputs, self.features = inputs, features
        self.widths = (tuple(trunk), tuple(head))
        self.trunk_table = nn.Parameter(torch.empty(inputs, trunk[0]))
        self.trunk_bias = nn.Parameter(torch.zeros(trunk[0]))
        self.trunk = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(trunk))
        self.join = nn.Linear(trunk[-1], head[0])
        self.head_table = nn.Parameter(torch.empty(features, head[0]))
        self.head = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(head))
        self.value = nn.Linear(head[-1], 1)
        # About 80 inputs of an encoding are 1. Small first-layer sums learn faster than sums with the standard
        # deviation of a hidden layer.
        nn.init.normal_(self.trunk_table, std=0.25 * 80**-0.5)
        nn.init.normal_(self.head_table, std=0.25 * 80**-0.5)
        nn.init.normal_(self.value.weight, std=0.1)
        nn.init.zeros_(self.value.bias)
        for layer in (*self.trunk, self.join, *self.head):
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, positions: Tensor, moves: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        hidden = functional.relu(positions @ self.trunk_table + self.trunk_bias)
        for layer in self.trunk:
            hidden = functional.relu(layer(hidden))
        shared = self.join(hidden).repeat_interleave(offsets.diff(), dim=0)
        hidden = functional.relu(shared + moves @ self.head_table)
        for layer in self.head:
            hidden = functional.relu(layer(hidden))
        return self.value(hidden).squeeze(1), hidden

    def in_order(self) -> list[nn.Parameter]:
        """Return the parameters in the order of the native network."""
        layers: list[Any] = [*self.trunk, self.join]
        first = [self.trunk_table, self.trunk_bias, *(p for layer in layers for p in (layer.weight, layer.bias))]
        layers = [*self.head, self.value]
        return [*first, self.head_table, *(p for layer in layers for p in (layer.weight, layer.bias))]


class NativeActionValues:
    """A native copy of a network, with the parameters of the last ``load``.

    If the network is on another device than the processor, it learns there, through torch's own operations.
    """

    def __init__(self, net: ActionValueNet, kernels: str = "") -> None:
        """``kernels``: instruction set; "": the fastest. Raises ValueError for widths that are not multiples of 16."""
        self.net = net
        trunk, head = net.widths
        self._native = _native.ActionValues([net.inputs, *trunk], [net.features, *head], kernels)
        self._anchor = torch.zeros((), requires_grad=True)
        self._forwards = 0
        self.load()

    def load(self) -> None:
        """Copy the current parameters."""
        self._native.load([parameter.detach().cpu().numpy() for parameter in self.net.in_order()])

    def learned(self) -> None:
        """Follow a step of the optimizer. A network on another device is copied by the next ``load`` alone."""
        if self.on_processor:
            self.load()

    @property
    def on_processor(self) -> bool:
        """Whether the network is on the processor, where native code computes it."""
        return self.net.trunk_table.device.type == "cpu"

    def evaluate(self, positions: Float, moves: Float, offsets: Offsets) -> Float:
        """Return values (M,), float32, without gradients. Shapes as in ``ActionValueNet``."""
        return self._native.evaluate(positions, moves, offsets)

    def __call__(self, positions: Tensor, moves: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Return values (M,) and representations (M, width), connected to autograd. At most 65,535 moves.

        ``positions`` and ``moves`` are float32 on the network's device. ``offsets`` are int64 on the processor.

        Their ``backward`` adds to ``grad`` of the network's parameters. It raises RuntimeError for all results but the
        newest.
        """
        if not self.on_processor:
            values, representations = self.net(positions, moves, offsets.to(positions.device))
            return values, representations
        inputs = (positions.numpy(), moves.numpy(), offsets.numpy())
        return _Through.apply(self._anchor, self, *inputs)  # type: ignore[no-any-return, no-untyped-call]

    def forward(self, positions: Float, moves: Float, offsets: Offsets) -> tuple[Float, Float]:
        """Like ``__call__``, without autograd."""
        self._forwards += 1
        return self._native.forward(positions, moves, offsets)

    def backward(self, values: Float, representations: Float) -> None:
        """Add to ``grad`` of the parameters, given the gradients of the results of ``forward``."""
        parameters = self.net.in_order()
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        into = [parameter.grad.numpy() for parameter in parameters if parameter.grad is not None]
        self._native.backward(values, representations, into)


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, native: NativeActionValues, positions: Float, moves: Float, offsets: Offsets
    ) -> tuple[Tensor, Tensor]:
        values, representations = native.forward(positions, moves, offsets)
        ctx.native, ctx.number = native, native._forwards
        return torch.from_numpy(values), torch.from_numpy(representations)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        if ctx.number != ctx.native._forwards:
            raise RuntimeError("backward is possible only through the newest result of a native network")
        values, representations = (gradient.contiguous().numpy() for gradient in gradients)
        ctx.native.backward(values, representations)
        return torch.zeros(()), None, None, None, None
