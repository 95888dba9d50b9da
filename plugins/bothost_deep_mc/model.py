"""Four networks of values Q(s, a): landlord, next peasant, previous peasant, and whoever calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import onnx
import torch
from onnx import TensorProto, helper
from torch import nn

from bothost.training.action_values import ActionValueNet
from bothost_deep_mc.encode import INPUTS, ROLES, Features, width


class Sizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the networks are made of."""

    features: Features = "analysis"
    """What a move's encoding holds: its "cards" alone, or also an "analysis" of it by the rules and the rule player."""
    trunk: tuple[int, ...] = (512, 256)
    """Widths of the hidden layers that are computed once a position; multiples of 16."""
    head: tuple[int, ...] = (128, 64)
    """Widths of the hidden layers that are computed once a move."""
    bidder_trunk: tuple[int, ...] = (64, 32)
    """The same of the network of the calls, which has less to learn."""
    bidder_head: tuple[int, ...] = (32, 16)

    def __post_init__(self) -> None:
        parts = (self.trunk, self.head, self.bidder_trunk, self.bidder_head)
        if not all(part and all(0 < size <= 8192 and size % 16 == 0 for size in part) for part in parts):
            raise ValueError("widths must be multiples of 16, at most 8192")


class DeepMcNet(nn.Module):
    """The networks by role; each takes what ``encode.Candidates`` holds, moves cut to its features.

    Values are the expected utility of the side that moves, about within [-1, 1].
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.by_role = nn.ModuleDict({role: self._net(role) for role in ROLES})

    def _net(self, role: str) -> ActionValueNet:
        bids = role == "bidder"
        trunk: Sequence[int] = self.sizes.bidder_trunk if bids else self.sizes.trunk
        head: Sequence[int] = self.sizes.bidder_head if bids else self.sizes.head
        return ActionValueNet(INPUTS, width(self.sizes.features), trunk, head)

    def of(self, role: str) -> ActionValueNet:
        """The network of a role."""
        net = self.by_role[role]
        assert isinstance(net, ActionValueNet)
        return net


def seeded(sizes: Sizes, seed: int) -> DeepMcNet:
    """Networks with parameters that the seed determines."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DeepMcNet(sizes)


def graph(role: str, sizes: Sizes) -> onnx.ModelProto:
    """The network of a role for ONNX Runtime: positions (n, inputs), moves (m, features) and owner (m,), the position
    of each move, to values (m,). Its initializers, which have no data yet, bear the names of the parameters and are of
    16 bits, as published models are; all is computed in 32."""
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
    """Append the dense layers of a part; returns the name of what the last one gives."""
    for i in range(layers):
        weight, bias = f"{prefix}{part}.{i}.weight", f"{prefix}{part}.{i}.bias"
        nodes.append(helper.make_node("Gemm", [f"{part}.{i}", weight, bias], [f"{part}.{i}.sum"], transB=1))
        nodes.append(helper.make_node("Relu", [f"{part}.{i}.sum"], [f"{part}.{i + 1}"]))
    return f"{part}.{layers}"
