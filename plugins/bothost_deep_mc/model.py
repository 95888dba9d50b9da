"""Four value networks Q(s, a): for the landlord, the next peasant, the previous peasant, and seats that call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec
import onnx
import torch
from onnx import TensorProto, helper
from torch import nn

from bothost.errors import ModelError
from bothost.training import checkpoint
from bothost.training.action_values import ActionValueNet
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
    """The network of a role for ONNX Runtime.

    It maps positions (n, inputs), moves (m, features) and owner (m,), the position of each move, to values (m,). The
    initializers have no data yet. Their names are those of the parameters, and they have 16 bits, as in published
    models. The computation uses 32 bits.
    """
    net = DeepMcNet(sizes).of(role)
    prefix = f"{role}."
    names = [name for name, _ in net.named_parameters()]
    nodes = [
        *(
            helper.make_node("Cast", [f"by_role.{role}.{name}"], [prefix + name], to=TensorProto.FLOAT)
            for name in names
        ),
        helper.make_node("MatMul", ["positions", f"{prefix}trunk_table"], ["sum"]),
        helper.make_node("Add", ["sum", f"{prefix}trunk_bias"], ["biased"]),
        helper.make_node("Relu", ["biased"], ["trunk.0"]),
    ]
    last = _dense(nodes, prefix, "trunk", len(net.trunk))
    nodes += [
        helper.make_node("Gemm", [last, f"{prefix}join.weight", f"{prefix}join.bias"], ["joined"], transB=1),
        helper.make_node("Gather", ["joined", "owner"], ["shared"], axis=0),
        helper.make_node("MatMul", ["moves", f"{prefix}head_table"], ["own"]),
        helper.make_node("Add", ["shared", "own"], ["both"]),
        helper.make_node("Relu", ["both"], ["head.0"]),
    ]
    last = _dense(nodes, prefix, "head", len(net.head))
    nodes += [
        helper.make_node("Gemm", [last, f"{prefix}value.weight", f"{prefix}value.bias"], ["column"], transB=1),
        helper.make_node("Squeeze", ["column", "axes"], ["values"]),
    ]
    parameters = [
        TensorProto(name=f"by_role.{role}.{name}", dims=list(parameter.shape), data_type=TensorProto.FLOAT16)
        for name, parameter in net.named_parameters()
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    inputs = [
        helper.make_tensor_value_info("positions", TensorProto.FLOAT, ["n", net.inputs]),
        helper.make_tensor_value_info("moves", TensorProto.FLOAT, ["m", net.features]),
        helper.make_tensor_value_info("owner", TensorProto.INT64, ["m"]),
    ]
    outputs = [helper.make_tensor_value_info("values", TensorProto.FLOAT, ["m"])]
    built = helper.make_graph(nodes, f"deep-mc {role}", inputs, outputs, [*parameters, axes])
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _dense(nodes: list[onnx.NodeProto], prefix: str, part: str, layers: int) -> str:
    """Append the dense layers of a part. Returns the name of the last output."""
    for i in range(layers):
        weight, bias = f"{prefix}{part}.{i}.weight", f"{prefix}{part}.{i}.bias"
        nodes.append(helper.make_node("Gemm", [f"{part}.{i}", weight, bias], [f"{part}.{i}.sum"], transB=1))
        nodes.append(helper.make_node("Relu", [f"{part}.{i}.sum"], [f"{part}.{i + 1}"]))
    return f"{part}.{layers}"
