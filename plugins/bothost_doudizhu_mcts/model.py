"""The networks: 15 × 15 × 29 → 4 convolutions, 3 poolings, fully connected layers → the value of a candidate move.

There is one network for each role. Each has three parts, which meet late::

    position (28 planes) → 4 convolutions along the ranks, 3 poolings → 160 numbers, once a position
    candidate (1 plane)  → one linear layer                           → 160 numbers, once a move
    hand − candidate     → a tower of one convolution                 → 160 numbers, once a move

Their sum goes through the last layers. The first convolution spans all 15 rows of a plane and three ranks, so that from
there on there is one column per rank. Its biases differ from rank to rank: a pair of twos is no pair of threes. Its
outputs also reach the first connected layer without pooling, because pooling blurs which rank is which.

The hand without the candidate decides what can be played later. A fixed layer computes it from the input planes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch.nn import functional

from bothost import Model, TrainingRun
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.publish import parameters_file, publish_one
from bothost_doudizhu_mcts import players
from bothost_doudizhu_mcts.encode import PLANES, ROLES, SIDE, VERSION, Inputs
from bothost_doudizhu_mcts.network import GRAPHS

CHANNELS = (64, 96, 96, 128)
TRUNK, JOINED, TOWER, HEAD = 256, 160, (48, 128), 64
COUNTS = 4
"""Rows of a plane that encode the count of each rank. The others are each all 0 or all 1."""
WIDTH = 3
"""Ranks under a kernel."""
INSIDE = np.stack([np.eye(SIDE, k=WIDTH // 2 - i).sum(0) for i in range(WIDTH)]).astype(np.float32)
"""Shape (WIDTH, SIDE): 1 where the i-th rank under the kernel is one of the 15."""


class RoleNet(nn.Module):
    """Planes (P, 29, 15, 15), moves (M, 1, 15, 15) and their positions (M,) → values (M,) and values of positions (P,).

    A value is 2 P(win) − 1 of the side that moves. It is not clipped to [−1, 1].
    """

    def __init__(self) -> None:
        super().__init__()
        first, second, third, fourth = CHANNELS
        self.conv1 = nn.Conv1d(PLANES * SIDE, first, WIDTH, bias=False)
        self.ranks = nn.Parameter(torch.zeros(first, SIDE))
        self.conv2 = nn.Conv1d(first, second, 3, padding=1)
        self.conv3 = nn.Conv1d(second, third, 3, padding=1)
        self.conv4 = nn.Conv1d(third, fourth, 3, padding=1)
        self.trunk = nn.Linear(first * SIDE + 2 * fourth, TRUNK)
        self.position = nn.Linear(TRUNK, JOINED)
        self.candidate = nn.Linear(SIDE * SIDE, JOINED, bias=False)
        self.rest1 = nn.Conv1d(COUNTS, TOWER[0], 5, padding=2)
        self.rest2 = nn.Linear(TOWER[0] * SIDE, TOWER[1])
        self.rest3 = nn.Linear(TOWER[1], JOINED)
        self.head1 = nn.Linear(JOINED, HEAD)
        self.head2 = nn.Linear(HEAD, 1)
        self.state1 = nn.Linear(TRUNK, HEAD)
        self.state2 = nn.Linear(HEAD, 1)
        self.counts = nn.Buffer(torch.arange(1.0, COUNTS + 1).reshape(1, COUNTS, 1))
        self.inside = nn.Buffer(torch.from_numpy(INSIDE), persistent=False)
        # A position sets some 90 of the 1,305 cells under a kernel: the usual scale would be too small.
        nn.init.kaiming_normal_(self.conv1.weight, nonlinearity="relu")
        with torch.no_grad():
            self.conv1.weight.mul_(3.0)

    def forward(self, planes: Tensor, moves: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
        relu, pool = functional.relu, functional.max_pool1d
        columns = relu(self.first(planes) + self.ranks)
        out = pool(relu(self.conv2(columns)), 2, ceil_mode=True)
        out = pool(relu(self.conv3(out)), 2, ceil_mode=True)
        out = pool(relu(self.conv4(out)), 2, ceil_mode=True)
        seen = relu(self.trunk(torch.cat([columns.flatten(1), out.flatten(1)], dim=1)))
        rest = self.one_hot(planes[:, 0, :COUNTS])[owner] - self.one_hot(moves[:, 0, :COUNTS])
        left = relu(self.rest1(relu(1.0 - (rest - self.counts).abs()))).flatten(1)
        joined = self.position(seen)[owner] + self.candidate(moves.flatten(1)) + self.rest3(relu(self.rest2(left)))
        values = self.head2(relu(self.head1(relu(joined)))).squeeze(1)
        states = self.state2(relu(self.state1(seen))).squeeze(1)
        return values, states

    def first(self, planes: Tensor) -> Tensor:
        """The first convolution. The rows from ``COUNTS`` on are the same for all ranks: they are multiplied once."""
        weight = self.conv1.weight.reshape(-1, PLANES, SIDE, WIDTH)
        cards = functional.conv1d(
            planes[:, :, :COUNTS].flatten(1, 2), weight[:, :, :COUNTS].flatten(1, 2), padding=WIDTH // 2
        )
        flags = planes[:, :, COUNTS:, 0].flatten(1) @ weight[:, :, COUNTS:].permute(1, 2, 0, 3).flatten(2).flatten(0, 1)
        inside: Tensor = flags.reshape(len(planes), -1, WIDTH) @ self.inside
        return cards + inside

    def one_hot(self, rows: Tensor) -> Tensor:
        """One-hot counts (N, 4, 15) → counts (N, 1, 15)."""
        counted: Tensor = (rows * self.counts).sum(1, keepdim=True)
        return counted


class Candidates(NamedTuple):
    """Candidate moves of some positions, as the networks take them."""

    planes: Tensor
    moves: Tensor
    owner: Tensor
    """See ``Inputs``."""
    roles: Tensor
    """(positions,) int64: index into ``ROLES``."""

    @classmethod
    def of(cls, inputs: Inputs, roles: npt.NDArray[np.int64]) -> Candidates:
        return cls(*map(torch.from_numpy, (*inputs, roles)))


class Networks(nn.Module):
    """A network for each role."""

    def __init__(self) -> None:
        super().__init__()
        self.of = nn.ModuleDict({role: RoleNet() for role in ROLES})

    def forward(self, candidates: Candidates) -> tuple[Tensor, Tensor]:
        """Values (M,) of all candidates, and values of their positions (P,)."""
        planes, moves, owner, roles = candidates
        values, states = planes.new_empty(len(moves)), planes.new_empty(len(planes))
        for number, role in enumerate(ROLES):
            rows = (roles == number).nonzero().squeeze(1)
            if not len(rows):
                continue
            place = torch.zeros_like(roles)
            place[rows] = torch.arange(len(rows), device=rows.device)
            own = roles[owner] == number
            of_moves, of_positions = self.of[role](planes[rows], moves[own], place[owner[own]])
            values[own], states[rows] = of_moves.float(), of_positions.float()  # of bfloat16, too
        return values, states

    def start_with(self, model: Model | None) -> None:
        """Take a model's parameters. None, or one without files: keep these. Raises ModelError if they do not fit."""
        file = parameters_file(model, VERSION)
        if file is not None:
            checkpoint.load_model(file, self)

    def in_16_bits(self) -> Networks:
        """A copy as versions are shipped, half as large."""
        return copy.deepcopy(self).half()

    def share(self) -> None:
        """Give every role the parameters of the first."""
        first = self.of[ROLES[0]].state_dict()
        for role in ROLES[1:]:
            self.of[role].load_state_dict(first)


def publish(
    run: TrainingRun, progress: Progress, nets: Networks, told: Mapping[str, Any], player_model: Path | None = None
) -> None:
    """Write a training's version, with ``told`` in its lineage.

    ``player_model``: the file of its model of players. None: that of the version that the training began with.
    """
    file = player_model or players.file_of(run.start)
    publish_one(run, progress, nets.in_16_bits(), graphs(), VERSION, told, more=[file] if file else [])


def graphs() -> dict[str, onnx.ModelProto]:
    """The networks for ONNX Runtime, by file name. They read 16-bit parameters and compute in 32 bits.

    The initializers have no data, and the names of the parameters among those of all roles.
    """
    return {file: _graph(role) for role, file in GRAPHS.items()}


Layer = Callable[..., onnx.NodeProto]
"""(input, layer, output, …) → its node."""


def _graph(role: str) -> onnx.ModelProto:
    def conv(x: str, name: str, out: str, width: int, bias: bool = True) -> onnx.NodeProto:
        inputs = [x, f"{name}.weight", *([f"{name}.bias"] if bias else [])]
        return helper.make_node("Conv", inputs, [out], pads=[width // 2, width // 2])

    def dense(x: str, name: str, out: str, bias: bool = True) -> onnx.NodeProto:
        inputs = [x, f"{name}.weight", *([f"{name}.bias"] if bias else [])]
        return helper.make_node("Gemm", inputs, [out], transB=1)

    shapes = {name: list(value.shape) for name, value in RoleNet().state_dict().items()}
    widened = [helper.make_node("Cast", [f"of.{role}.{name}"], [name], to=TensorProto.FLOAT) for name in shapes]
    nodes = [*widened, *_trunk_nodes(conv, dense), *_move_nodes(conv, dense)]
    parameters = [
        TensorProto(name=f"of.{role}.{name}", dims=shape, data_type=TensorProto.FLOAT16)
        for name, shape in shapes.items()
    ]
    first = CHANNELS[0]
    integers = {
        "shape_weight": [first, PLANES, SIDE, WIDTH],
        "shape_cards": [0, PLANES * COUNTS, -1],
        "shape_flags": [PLANES * (SIDE - COUNTS), first * WIDTH],
        "shape_offsets": [0, first, WIDTH],
        "first_flag": [COUNTS, 0],
        "last_flag": [SIDE, 1],
        "rows_and_ranks": [2, 3],
        "count_rows": [COUNTS],
        "side": [SIDE],
        "zero": [0],
        "one": [1],
        "two": [2],
    }
    parameters += [helper.make_tensor(n, TensorProto.INT64, [len(v)], v) for n, v in integers.items()]
    parameters.append(helper.make_tensor("unit", TensorProto.FLOAT, [], [1.0]))
    parameters.append(helper.make_tensor("inside", TensorProto.FLOAT, INSIDE.shape, INSIDE.ravel()))

    def tensor(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [
        tensor("planes", TensorProto.FLOAT, "positions", PLANES, SIDE, SIDE),
        tensor("moves", TensorProto.FLOAT, "candidates", 1, SIDE, SIDE),
        tensor("owner", TensorProto.INT64, "candidates"),
    ]
    outputs = [tensor("values", TensorProto.FLOAT, "candidates"), tensor("states", TensorProto.FLOAT, "positions")]
    made = helper.make_graph(nodes, f"doudizhu-mcts {role}", inputs, outputs, parameters)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _trunk_nodes(conv: Layer, dense: Layer) -> Iterator[onnx.NodeProto]:
    """The nodes that are computed once per position."""
    node = helper.make_node
    yield from _first_nodes()
    yield node("Add", ["conv1", "ranks"], ["ranked"])
    yield node("Relu", ["ranked"], ["columns"])
    last = "columns"
    for number in (2, 3, 4):
        yield conv(last, f"conv{number}", f"conv{number}", 3)
        yield node("Relu", [f"conv{number}"], [f"relu{number}"])
        yield node("MaxPool", [f"relu{number}"], [f"pool{number}"], kernel_shape=[2], strides=[2], ceil_mode=1)
        last = f"pool{number}"
    yield node("Flatten", ["columns"], ["columns_flat"])
    yield node("Flatten", [last], ["pooled_flat"])
    yield node("Concat", ["columns_flat", "pooled_flat"], ["joined_planes"], axis=1)
    yield dense("joined_planes", "trunk", "trunk")
    yield node("Relu", ["trunk"], ["seen"])
    yield dense("seen", "position", "position")
    yield dense("seen", "state1", "state1")
    yield node("Relu", ["state1"], ["state1_relu"])
    yield dense("state1_relu", "state2", "state2")
    yield node("Squeeze", ["state2", "one"], ["states"])


def _first_nodes() -> Iterator[onnx.NodeProto]:
    """``RoleNet.first``."""
    node = helper.make_node
    yield node("Reshape", ["conv1.weight", "shape_weight"], ["weight"])
    yield node("Slice", ["weight", "zero", "count_rows", "two"], ["card_weight"])
    yield node("Reshape", ["card_weight", "shape_cards"], ["card_kernel"])
    yield node("Slice", ["planes", "zero", "count_rows", "two"], ["card_rows_all"])
    yield node("Reshape", ["card_rows_all", "shape_cards"], ["card_columns"])
    yield node("Conv", ["card_columns", "card_kernel"], ["cards"], pads=[WIDTH // 2, WIDTH // 2])
    yield node("Slice", ["weight", "count_rows", "side", "two"], ["flag_weight"])
    yield node("Transpose", ["flag_weight"], ["flag_first"], perm=[1, 2, 0, 3])
    yield node("Reshape", ["flag_first", "shape_flags"], ["flag_matrix"])
    yield node("Slice", ["planes", "first_flag", "last_flag", "rows_and_ranks"], ["flag_cells"])
    yield node("Flatten", ["flag_cells"], ["flags"])
    yield node("MatMul", ["flags", "flag_matrix"], ["by_offset"])
    yield node("Reshape", ["by_offset", "shape_offsets"], ["offsets"])
    yield node("MatMul", ["offsets", "inside"], ["flag_columns"])
    yield node("Add", ["cards", "flag_columns"], ["conv1"])


def _move_nodes(conv: Layer, dense: Layer) -> Iterator[onnx.NodeProto]:
    """The nodes that are computed once per candidate."""
    node = helper.make_node
    for name, planes in (("hand", "planes"), ("card", "moves")):
        yield node("Slice", [planes, "zero", "one", "one"], [f"{name}_plane"])
        yield node("Squeeze", [f"{name}_plane", "one"], [f"{name}_rows"])
        yield node("Slice", [f"{name}_rows", "zero", "count_rows", "one"], [f"{name}_hot"])
        yield node("Mul", [f"{name}_hot", "counts"], [f"{name}_weighed"])
        yield node("ReduceSum", [f"{name}_weighed", "one"], [f"{name}_counts"], keepdims=1)
    yield node("Gather", ["hand_counts", "owner"], ["hand_of_move"], axis=0)
    yield node("Sub", ["hand_of_move", "card_counts"], ["rest"])
    yield node("Sub", ["rest", "counts"], ["distance"])
    yield node("Abs", ["distance"], ["distance_abs"])
    yield node("Sub", ["unit", "distance_abs"], ["near"])
    yield node("Relu", ["near"], ["rest_hot"])
    yield conv("rest_hot", "rest1", "rest1", 5)
    yield node("Relu", ["rest1"], ["rest1_relu"])
    yield node("Flatten", ["rest1_relu"], ["rest_flat"])
    yield dense("rest_flat", "rest2", "rest2")
    yield node("Relu", ["rest2"], ["rest2_relu"])
    yield dense("rest2_relu", "rest3", "rest3")
    yield node("Flatten", ["moves"], ["moves_flat"])
    yield dense("moves_flat", "candidate", "candidate", bias=False)
    yield node("Gather", ["position", "owner"], ["position_of_move"], axis=0)
    yield node("Add", ["position_of_move", "candidate"], ["with_candidate"])
    yield node("Add", ["with_candidate", "rest3"], ["joined"])
    yield node("Relu", ["joined"], ["joined_relu"])
    yield dense("joined_relu", "head1", "head1")
    yield node("Relu", ["head1"], ["head1_relu"])
    yield dense("head1_relu", "head2", "head2")
    yield node("Squeeze", ["head2", "one"], ["values"])
