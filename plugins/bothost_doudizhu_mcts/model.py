"""The network: 15 x 15 x 29 → 4 convolutions, 3 poolings, 3 fully connected layers → the value of a candidate move.

The first convolution spans all 15 rows of a plane and three ranks, so that from there on there is one column per rank;
the others run along the ranks, where chains lie. Biases of the convolutions differ from rank to rank: a pair of twos is
no pair of threes.

The planes of a position are the same for all its candidates but for one. A convolution is linear: what the first makes
of the position and what it makes of the candidate's plane are computed apart and added, which gives the same numbers
for a fraction of the time.
"""

from __future__ import annotations

import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch.nn import functional

from bothost_doudizhu_mcts.encode import CANDIDATE, PLANES, SIDE, Inputs

CHANNELS = (64, 96, 96, 128)
HIDDEN = (128, 64)
WIDTHS = (SIDE, SIDE, 8, 4)
"""Columns at each convolution; poolings (of two columns, rounded up) lie after the second, third and fourth."""


class ValueNet(nn.Module):
    """Planes (P, 29, 15, 15), moves (M, 1, 15, 15) and their positions (M,) → values (M,).

    A value is that of the records: 2 P(win) - 1 of the side that moves. It is not held within [-1, 1].
    """

    def __init__(self, channels: tuple[int, int, int, int] = CHANNELS, hidden: tuple[int, int] = HIDDEN) -> None:
        super().__init__()
        self.kernels, self.biases = nn.ParameterList(), nn.ParameterList()
        last, rows = PLANES, SIDE
        for count, width in zip(channels, WIDTHS, strict=True):
            kernel = nn.Parameter(torch.empty(count, last, rows, 3))
            nn.init.kaiming_normal_(kernel, nonlinearity="relu")
            self.kernels.append(kernel)
            self.biases.append(nn.Parameter(torch.zeros(count, 1, width)))
            last, rows = count, 1
        # Planes are nearly empty: of 1,305 cells under a kernel some 90 are set.
        with torch.no_grad():
            self.kernels[0].mul_(3.0)
        self.dense = nn.Sequential(
            nn.Linear(2 * last, hidden[0]),
            nn.ReLU(),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Linear(hidden[1], 1),
        )

    def forward(self, planes: Tensor, moves: Tensor, owner: Tensor) -> Tensor:
        kernel = self.kernels[0]
        position = functional.conv2d(planes, kernel, padding=(0, 1)) + self.biases[0]
        candidate = functional.conv2d(moves, kernel[:, CANDIDATE : CANDIDATE + 1], padding=(0, 1))
        out = functional.relu(position[owner] + candidate)
        for kernel, bias in zip(list(self.kernels)[1:], list(self.biases)[1:], strict=True):
            out = functional.relu(functional.conv2d(out, kernel, padding=(0, 1)) + bias)
            out = functional.max_pool2d(out, (1, 2), ceil_mode=True)
        values: Tensor = self.dense(out.flatten(1)).squeeze(1)
        return values


def tensors(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs as the network takes them."""
    planes = torch.from_numpy(inputs.planes).to(memory_format=torch.channels_last)
    return planes, torch.from_numpy(inputs.moves), torch.from_numpy(inputs.owner)


def graph(net: ValueNet) -> onnx.ModelProto:
    """The network for ONNX Runtime; its initializers, which have no data yet, bear the names of the parameters."""
    node = helper.make_node
    pads = [0, 1, 0, 1]
    nodes = [
        node("Conv", ["planes", "kernels.0"], ["shared"], pads=pads),
        node("Add", ["shared", "biases.0"], ["position"]),
        node("Slice", ["kernels.0", "first", "end", "axis"], ["candidate_kernel"]),
        node("Conv", ["moves", "candidate_kernel"], ["candidate"], pads=pads),
        node("Gather", ["position", "owner"], ["of_candidate"], axis=0),
        node("Add", ["of_candidate", "candidate"], ["sum.0"]),
        node("Relu", ["sum.0"], ["out.0"]),
    ]
    for i in range(1, len(CHANNELS)):
        nodes += [
            node("Conv", [f"out.{i - 1}", f"kernels.{i}"], [f"conv.{i}"], pads=pads),
            node("Add", [f"conv.{i}", f"biases.{i}"], [f"sum.{i}"]),
            node("Relu", [f"sum.{i}"], [f"relu.{i}"]),
            node("MaxPool", [f"relu.{i}"], [f"out.{i}"], kernel_shape=[1, 2], strides=[1, 2], ceil_mode=1),
        ]
    nodes += [
        node("Flatten", ["out.3"], ["flat"]),
        node("Gemm", ["flat", "dense.0.weight", "dense.0.bias"], ["a"], transB=1),
        node("Relu", ["a"], ["b"]),
        node("Gemm", ["b", "dense.2.weight", "dense.2.bias"], ["c"], transB=1),
        node("Relu", ["c"], ["d"]),
        node("Gemm", ["d", "dense.4.weight", "dense.4.bias"], ["column"], transB=1),
        node("Squeeze", ["column", "axis"], ["values"]),
    ]
    parameters = [
        TensorProto(name=name, dims=list(parameter.shape), data_type=TensorProto.FLOAT)
        for name, parameter in net.named_parameters()
    ]
    for name, number in (("first", CANDIDATE), ("end", CANDIDATE + 1), ("axis", 1)):
        parameters.append(helper.make_tensor(name, TensorProto.INT64, [1], [number]))

    def tensor(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [
        tensor("planes", TensorProto.FLOAT, "positions", PLANES, SIDE, SIDE),
        tensor("moves", TensorProto.FLOAT, "candidates", 1, SIDE, SIDE),
        tensor("owner", TensorProto.INT64, "candidates"),
    ]
    outputs = [tensor("values", TensorProto.FLOAT, "candidates")]
    built = helper.make_graph(nodes, "doudizhu-mcts", inputs, outputs, parameters)
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
