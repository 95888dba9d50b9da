"""Four value networks Q(s, a): for the landlord, the next peasant, the previous peasant, and seats that call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import get_args

import msgspec
import onnx
import torch
from torch import nn

from bothost.errors import ModelError
from bothost.training import checkpoint
from bothost.training.action_values import ActionValueNet
from bothost.training.publish import graph_of
from bothost_deep_mc.encode import ROLES, Features, Positions, Seen, seen


class Sizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Inputs and layers of the networks."""

    positions: Positions = "now"
    """Encoding of a position. now: the table now. history: also the others' passes and the last 15 moves."""
    features: Features = "analysis"
    """Encoding of a move. cards: its cards. analysis: also an analysis by the rules and the rule player."""
    trunk: tuple[int, ...] = (512, 256)
    """Widths of the hidden layers that are computed once per position; multiples of 16."""
    head: tuple[int, ...] = (128, 64)
    """Widths of the hidden layers that are computed once per move."""
    bidder_trunk: tuple[int, ...] = (64, 32)
    """As ``trunk``, for the network of the calls, which has less to learn."""
    bidder_head: tuple[int, ...] = (32, 16)
    """As ``head``, for that network."""

    def __post_init__(self) -> None:
        parts = (self.trunk, self.head, self.bidder_trunk, self.bidder_head)
        if not all(part and all(0 < size <= 8192 and size % 16 == 0 for size in part) for part in parts):
            raise ValueError("widths must be multiples of 16, at most 8192")

    @property
    def seen(self) -> Seen:
        """The number of cells of a position and of a move that the networks see."""
        return seen(self.positions, self.features)


class DeepMcNet(nn.Module):
    """The networks by role. Their inputs are ``encode.Candidates``, with moves cut to their features.

    Values are expected utilities of the side that moves, about within [-1, 1].
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.by_role = nn.ModuleDict({role: self._net(role) for role in ROLES})

    def _net(self, role: str) -> ActionValueNet:
        bids = role == "bidder"
        trunk: Sequence[int] = self.sizes.bidder_trunk if bids else self.sizes.trunk
        head: Sequence[int] = self.sizes.bidder_head if bids else self.sizes.head
        return ActionValueNet(*self.sizes.seen, trunk, head)

    def of(self, role: str) -> ActionValueNet:
        """The network of a role."""
        net = self.by_role[role]
        assert isinstance(net, ActionValueNet)
        return net


def sizes_of(file: Path) -> Sizes:
    """The sizes of the networks in a safetensors file. Raises ModelError if it has none of deep-mc."""
    shapes = {name: tensor.shape for name, tensor in checkpoint.parameters_of(file).items()}

    def widths(role: str, part: str) -> tuple[int, ...]:
        name, layers = f"by_role.{role}.{part}", itertools.count()
        found = [shapes[f"{name}_table"][1]]
        while (layer := f"{name}.{next(layers)}.weight") in shapes:
            found.append(shapes[layer][0])
        return tuple(found)

    try:
        role = ROLES[0]
        inputs, features = (shapes[f"by_role.{role}.{part}_table"][0] for part in ("trunk", "head"))
        known = {seen(p, f): (p, f) for p, f in itertools.product(get_args(Positions), get_args(Features))}
        positions, kinds = known[Seen(inputs, features)]
        return Sizes(
            positions=positions,
            features=kinds,
            trunk=widths(role, "trunk"),
            head=widths(role, "head"),
            bidder_trunk=widths("bidder", "trunk"),
            bidder_head=widths("bidder", "head"),
        )
    except (KeyError, IndexError, ValueError) as error:
        raise ModelError(f"{file} contains no networks of deep-mc", advice="use another file") from error


def begin_with(file: Path, model: DeepMcNet) -> None:
    """Load parameters from a safetensors file. They may be of narrower networks with as many layers.

    Additional units keep their own parameters, but their output weights are 0, so the values are the same. Raises
    ModelError if the file's networks are wider or different. Source: Chen, Goodfellow and Shlens, Net2Net (2016), where
    additional units are copies of others.
    """
    smaller, larger = checkpoint.parameters_of(file), model.state_dict()
    if smaller.keys() != larger.keys() or any(
        part.dim() != larger[name].dim() or any(a > b for a, b in zip(part.shape, larger[name].shape, strict=True))
        for name, part in smaller.items()
    ):
        raise ModelError(
            f"the networks of {file} do not fit into these", advice="give the same number of layers, none narrower"
        )
    for name, part in smaller.items():
        whole = larger[name]
        rows = part.shape[0]
        if part.dim() == 1:
            whole[:rows] = part
            continue
        columns = part.shape[1]
        if name.endswith("_table"):  # inputs, units
            whole[rows:, :columns] = 0.0
        else:  # units, inputs
            whole[:rows, columns:] = 0.0
        whole[:rows, :columns] = part


def seeded(sizes: Sizes, seed: int) -> DeepMcNet:
    """Networks with initial parameters that depend on the seed only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DeepMcNet(sizes)


def graph(role: str, sizes: Sizes) -> onnx.ModelProto:
    """The network of a role for ONNX Runtime. It reads 16-bit parameters and computes in 32 bits.

    It maps positions (n, inputs), moves (m, features) and owner (m,), the position of each move, to values (m,).
    """
    net = DeepMcNet(sizes).of(role).half()
    text = GRAPH.substitute(
        INPUTS=net.inputs,
        FEATURES=net.features,
        TRUNK=_dense("trunk", len(net.trunk)),
        LAST_OF_TRUNK=f"trunk_{len(net.trunk)}",
        HEAD=_dense("head", len(net.head)),
        LAST_OF_HEAD=f"head_{len(net.head)}",
    )
    return graph_of(text, net.state_dict(), f"by_role.{role}.")


def _dense(part: str, layers: int) -> str:
    """The dense layers of a part, from its activations ``part_0`` on."""
    return "\n".join(
        f"    {part}_{i}_sum = Gemm <transB = 1> ({part}_{i}, {part}_{i}_weight, {part}_{i}_bias)\n"
        f"    {part}_{i + 1} = Relu({part}_{i}_sum)"
        for i in range(layers)
    )


GRAPH = Template("""
<ir_version: 8, opset_import: ["" : 17]>
network (float[n, $INPUTS] positions, float[m, $FEATURES] moves, int64[m] owner) => (float[m] values)
<int64[1] axes = {1}>
{
    sum = MatMul(positions, trunk_table)
    biased = Add(sum, trunk_bias)
    trunk_0 = Relu(biased)
$TRUNK
    joined = Gemm <transB = 1> ($LAST_OF_TRUNK, join_weight, join_bias)
    shared = Gather <axis = 0> (joined, owner)
    own = MatMul(moves, head_table)
    both = Add(shared, own)
    head_0 = Relu(both)
$HEAD
    column = Gemm <transB = 1> ($LAST_OF_HEAD, value_weight, value_bias)
    values = Squeeze(column, axes)
}
""")
"""``ActionValueNet.forward``. Parameters have ``_`` for each dot in their names."""
