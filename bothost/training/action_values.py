"""Networks of values Q(s, a): a trunk that is computed once a position, and a small head once a move.

:class:`ActionValueNet` holds the parameters and is the readable account of the mathematics; :class:`NativeActionValues`
computes the same natively, without its parameters ever leaving torch: values for play, and values with representations
for learning, through which autograd goes back. First layers skip inputs that are 0, which encodings of cards mostly
are.
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
        """``trunk`` and ``head``: widths of their hidden layers; native computation needs multiples of 16."""
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
        # An encoding has some 80 ones among its inputs; small sums of theirs, which later layers enlarge, learn faster
        # than such as have the deviation of a hidden layer from the start.
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
        """The parameters, in the order of the native network."""
        layers: list[Any] = [*self.trunk, self.join]
        first = [self.trunk_table, self.trunk_bias, *(p for layer in layers for p in (layer.weight, layer.bias))]
        layers = [*self.head, self.value]
        return [*first, self.head_table, *(p for layer in layers for p in (layer.weight, layer.bias))]


class NativeActionValues:
    """A network's parameters as they were when this was made, or when ``load`` was last called."""

    def __init__(self, net: ActionValueNet, kernels: str = "") -> None:
        """``kernels`` names an instruction set; "": the fastest. Raises ValueError for widths no multiples of 16."""
        self.net = net
        trunk, head = net.widths
        self._native = _native.ActionValues([net.inputs, *trunk], [net.features, *head], kernels)
        self._anchor = torch.zeros((), requires_grad=True)
        self._forwards = 0
        self.load()

    def load(self) -> None:
        """Take the parameters as they are now."""
        self._native.load([parameter.detach().numpy() for parameter in self.net.in_order()])

    def evaluate(self, positions: Float, moves: Float, offsets: Offsets) -> Float:
        """Values (M,), without gradients; shapes as in ``ActionValueNet``."""
        return self._native.evaluate(positions, moves, offsets)

    def __call__(self, positions: Float, moves: Float, offsets: Offsets) -> tuple[Tensor, Tensor]:
        """Values (M,) and representations (M, width); ``backward`` of what is made of them adds to ``grad`` of the
        network's parameters. Only the newest result can be gone back through (others: RuntimeError). At most 65,535
        moves."""
        return _Through.apply(self._anchor, self, positions, moves, offsets)  # type: ignore[no-any-return, no-untyped-call]

    def forward(self, positions: Float, moves: Float, offsets: Offsets) -> tuple[Float, Float]:
        """As calling it, without gradients of torch's."""
        self._forwards += 1
        return self._native.forward(positions, moves, offsets)

    def backward(self, values: Float, representations: Float) -> None:
        """Add to ``grad`` of the parameters, given the gradients of what ``forward`` returned."""
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
            raise RuntimeError("only the newest result of a native network can be gone back through")
        values, representations = (gradient.contiguous().numpy() for gradient in gradients)
        ctx.native.backward(values, representations)
        return torch.zeros(()), None, None, None, None
