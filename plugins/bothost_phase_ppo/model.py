"""The network: 384 → 256 → 256 → 58 logits, and a value on the last hidden layer."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper
from torch import Tensor, nn

from bothost_phase_ppo.encode import ACTIONS, FEATURES

HIDDEN = 256


class PhaseNet(nn.Module):
    """Observations (B, 384) → logits (B, A), to be masked by legality, and values (B,); A is 58.

    A value is the expected return: the change of the score lead from the beginning of the current turn to the end of
    the hand, times the reward's scale.
    """

    def __init__(self, actions: int = ACTIONS) -> None:
        super().__init__()
        self.actions = actions
        first, second = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        # One matrix for logits and value: one product instead of two.
        self.heads = nn.Linear(HIDDEN, actions + 1)
        for layer in (first, second):
            nn.init.orthogonal_(layer.weight, 2**0.5)
            nn.init.zeros_(layer.bias)
        nn.init.orthogonal_(self.heads.weight[:actions], 0.01)  # all legal actions almost equally likely at first
        nn.init.orthogonal_(self.heads.weight[actions:], 1.0)
        nn.init.zeros_(self.heads.bias)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        out = self.heads(self.body(observations))
        return out[:, : self.actions], out[:, self.actions]

    def linear_layers(self) -> list[nn.Linear]:
        """The layers, with ReLU between them. Trainers compute such a network natively."""
        return [module for module in self.modules() if isinstance(module, nn.Linear)]


def graph() -> onnx.ModelProto:
    """The network for ONNX Runtime. Its initializers have the names of the parameters and no data yet."""
    shapes = {name: list(parameter.shape) for name, parameter in PhaseNet().named_parameters()}
    nodes = [
        helper.make_node("Gemm", ["observations", "body.0.weight", "body.0.bias"], ["a"], transB=1),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "body.2.weight", "body.2.bias"], ["c"], transB=1),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "heads.weight", "heads.bias"], ["heads"], transB=1),
        helper.make_node("Split", ["heads", "sizes"], ["logits", "column"], axis=1),
        helper.make_node("Squeeze", ["column", "axes"], ["values"]),
    ]
    parameters = [TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT) for name, shape in shapes.items()]
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [2], [ACTIONS, 1])
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])

    def floats(name: str, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs = [floats("observations", "batch", FEATURES)]
    outputs = [floats("logits", "batch", ACTIONS), floats("values", "batch")]
    net = helper.make_graph(nodes, "phase-ppo", inputs, outputs, [*parameters, sizes, axes])
    return helper.make_model(net, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
