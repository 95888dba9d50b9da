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
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from bothost import Model, TrainingRun
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.publish import graph_of, parameters_file, publish_one
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

    ``player_model``: the file of its model of players. None: that of the version that the training started with.
    """
    file = player_model or players.file_of(run.start)
    publish_one(run, progress, nets.in_16_bits(), graphs(), VERSION, told, more=[file] if file else [])


def graphs() -> dict[str, onnx.ModelProto]:
    """The networks for ONNX Runtime, by file name. They read 16-bit parameters and compute in 32 bits."""
    sizes = {"FIRST": CHANNELS[0], "PLANES": PLANES, "SIDE": SIDE, "COUNTS": COUNTS, "WIDTH": WIDTH}
    sizes |= {"CARDS": PLANES * COUNTS, "FLAGS": PLANES * (SIDE - COUNTS), "OFFSETS": CHANNELS[0] * WIDTH}
    text = GRAPH.substitute(sizes, INSIDE=", ".join(map(str, INSIDE.ravel())))
    parameters = RoleNet().half().state_dict()
    return {file: graph_of(text, parameters, f"of.{role}.") for role, file in GRAPHS.items()}


GRAPH = Template("""
<ir_version: 8, opset_import: ["" : 17]>
network (
    float[positions, $PLANES, $SIDE, $SIDE] planes, float[candidates, 1, $SIDE, $SIDE] moves, int64[candidates] owner
) => (float[candidates] values, float[positions] states)
<
    int64[4] kernel = {$FIRST, $PLANES, $SIDE, $WIDTH}, int64[3] of_cards = {0, $CARDS, -1},
    int64[2] of_flags = {$FLAGS, $OFFSETS}, int64[3] of_offsets = {0, $FIRST, $WIDTH},
    int64[2] first_flag = {$COUNTS, 0}, int64[2] last_flag = {$SIDE, 1}, int64[2] rows_and_ranks = {2, 3},
    int64[1] count_rows = {$COUNTS}, int64[1] side = {$SIDE}, int64[1] zero = {0}, int64[1] one = {1},
    int64[1] two = {2}, float unit = {1.0}, float[$WIDTH, $SIDE] inside = {$INSIDE}
>
{
    # RoleNet.first: the counts of cards by a convolution along the ranks, the other rows once for all ranks
    weight = Reshape(conv1_weight, kernel)
    card_weight = Slice(weight, zero, count_rows, two)
    card_kernel = Reshape(card_weight, of_cards)
    card_rows = Slice(planes, zero, count_rows, two)
    card_columns = Reshape(card_rows, of_cards)
    cards = Conv <pads = [1, 1]> (card_columns, card_kernel)
    flag_weight = Slice(weight, count_rows, side, two)
    flags_first = Transpose <perm = [1, 2, 0, 3]> (flag_weight)
    flag_matrix = Reshape(flags_first, of_flags)
    flag_cells = Slice(planes, first_flag, last_flag, rows_and_ranks)
    flags = Flatten(flag_cells)
    by_offset = MatMul(flags, flag_matrix)
    offsets = Reshape(by_offset, of_offsets)
    flag_columns = MatMul(offsets, inside)
    conv1 = Add(cards, flag_columns)

    # once per position
    ranked = Add(conv1, ranks)
    columns = Relu(ranked)
    conv2 = Conv <pads = [1, 1]> (columns, conv2_weight, conv2_bias)
    relu2 = Relu(conv2)
    pool2 = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (relu2)
    conv3 = Conv <pads = [1, 1]> (pool2, conv3_weight, conv3_bias)
    relu3 = Relu(conv3)
    pool3 = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (relu3)
    conv4 = Conv <pads = [1, 1]> (pool3, conv4_weight, conv4_bias)
    relu4 = Relu(conv4)
    pool4 = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (relu4)
    flat_columns = Flatten(columns)
    flat_pools = Flatten(pool4)
    joined_planes = Concat <axis = 1> (flat_columns, flat_pools)
    trunk = Gemm <transB = 1> (joined_planes, trunk_weight, trunk_bias)
    seen = Relu(trunk)
    position = Gemm <transB = 1> (seen, position_weight, position_bias)
    state1 = Gemm <transB = 1> (seen, state1_weight, state1_bias)
    state1_relu = Relu(state1)
    state2 = Gemm <transB = 1> (state1_relu, state2_weight, state2_bias)
    states = Squeeze(state2, one)

    # once per candidate: the counts of the hand without its cards, one-hot again
    hand_plane = Slice(planes, zero, one, one)
    hand_rows = Squeeze(hand_plane, one)
    hand_hot = Slice(hand_rows, zero, count_rows, one)
    hand_weighed = Mul(hand_hot, counts)
    hand_counts = ReduceSum <keepdims = 1> (hand_weighed, one)
    card_plane = Slice(moves, zero, one, one)
    played_rows = Squeeze(card_plane, one)
    played_hot = Slice(played_rows, zero, count_rows, one)
    played_weighed = Mul(played_hot, counts)
    played_counts = ReduceSum <keepdims = 1> (played_weighed, one)
    hand_of_move = Gather <axis = 0> (hand_counts, owner)
    rest = Sub(hand_of_move, played_counts)
    distance = Sub(rest, counts)
    distance_abs = Abs(distance)
    near = Sub(unit, distance_abs)
    rest_hot = Relu(near)
    rest1 = Conv <pads = [2, 2]> (rest_hot, rest1_weight, rest1_bias)
    rest1_relu = Relu(rest1)
    rest_flat = Flatten(rest1_relu)
    rest2 = Gemm <transB = 1> (rest_flat, rest2_weight, rest2_bias)
    rest2_relu = Relu(rest2)
    rest3 = Gemm <transB = 1> (rest2_relu, rest3_weight, rest3_bias)
    moves_flat = Flatten(moves)
    candidate = Gemm <transB = 1> (moves_flat, candidate_weight)
    position_of_move = Gather <axis = 0> (position, owner)
    with_candidate = Add(position_of_move, candidate)
    joined = Add(with_candidate, rest3)
    joined_relu = Relu(joined)
    head1 = Gemm <transB = 1> (joined_relu, head1_weight, head1_bias)
    head1_relu = Relu(head1)
    head2 = Gemm <transB = 1> (head1_relu, head2_weight, head2_bias)
    values = Squeeze(head2, one)
}
""")
"""``RoleNet.forward``. Parameters have ``_`` for each dot in their names."""
