"""The networks: the source's, and one that also scores each action from features of its own.

Both are fully connected with two hidden layers of 256, 58 logits, and a value on the last hidden layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import torch
from onnx import NodeProto, TensorProto, helper
from torch import Tensor, nn

from bothost.training.fused import Scorer
from bothost_phase_ppo.encode import ACTIONS, CANDIDATE, FEATURES, POSITION, SIZES

HIDDEN = 256
UNITS = 32
"""Hidden units of the scorer of actions."""


class PhaseNet(nn.Module):
    """Version 1, the source's: observations (B, 384) → logits (B, A), to be masked by legality, and values (B,).

    A is 58. A value is the expected return: the change of the score lead from the beginning of the current turn to the
    end of the hand, times the reward's scale.
    """

    def __init__(self, actions: int = ACTIONS, *, inputs: int = FEATURES, extra: int = 0) -> None:
        super().__init__()
        self.inputs, self.actions = inputs, actions
        first, second = nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        # One matrix for all outputs: one product instead of several.
        self.heads = nn.Linear(HIDDEN, actions + 1 + extra)
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


class CandidateNet(PhaseNet):
    """Version 2: observations (B, 400 + 58 · 32) → logits and values, as those of ``PhaseNet``.

    The logit of an action is the sum of the one that the hidden layers give it, and of a score. The score depends on
    the 32 features of the action and on a context from the hidden layers. All actions share the scorer's weights.
    """

    def __init__(self) -> None:
        super().__init__(inputs=POSITION, extra=UNITS)
        weight = nn.init.orthogonal_(torch.empty(UNITS, CANDIDATE), 2**0.5)
        self.score_weight = nn.Parameter(weight)
        self.score_out = nn.Parameter(torch.randn(UNITS) * 0.01)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        out = self.heads(self.body(observations[:, :POSITION]))
        candidates = observations[:, POSITION:].reshape(-1, self.actions, CANDIDATE)
        units = torch.relu(candidates @ self.score_weight.T + out[:, None, self.actions + 1 :])
        return out[:, : self.actions] + units @ self.score_out, out[:, self.actions]

    def among(self, positions: Tensor, rows: Tensor, actions: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Log probabilities (M,) among given actions, and values (B,), without the inputs of all other actions.

        ``positions`` (B, 400). The actions (M,) belong to the positions ``rows`` (M,); ``candidates`` (M, 32) are their
        inputs.
        """
        out = self.heads(self.body(positions))
        units = torch.relu(candidates @ self.score_weight.T + out[rows, self.actions + 1 :])
        logits = out[rows, actions] + units @ self.score_out
        dense = torch.full((len(positions), self.actions), -1e9).index_put((rows, actions), logits)
        return torch.log_softmax(dense, dim=1)[rows, actions], out[:, self.actions]

    def scorer(self) -> Scorer:
        """The parameters of the scorer, for trainers that compute it natively."""
        return Scorer(self.score_weight, self.score_out)


NETWORKS: dict[int, type[PhaseNet]] = {1: PhaseNet, 2: CandidateNet}
"""The network of each encoder version."""


def graph(version: int) -> onnx.ModelProto:
    """The network for ONNX Runtime. Its initializers have the names of the parameters and no data yet."""
    constants: dict[str, Sequence[int]] = {"axes": [1]}
    body = [
        helper.make_node("Gemm", ["position", "body.0.weight", "body.0.bias"], ["a"], transB=1),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "body.2.weight", "body.2.bias"], ["c"], transB=1),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "heads.weight", "heads.bias"], ["heads"], transB=1),
    ]
    if version == 1:
        constants["sizes"] = [ACTIONS, 1]
        nodes = [
            helper.make_node("Identity", ["observations"], ["position"]),
            *body,
            helper.make_node("Split", ["heads", "sizes"], ["logits", "column"], axis=1),
        ]
    else:
        constants |= {
            "parts": [POSITION, ACTIONS * CANDIDATE],
            "sizes": [ACTIONS, 1, UNITS],
            "rows": [0, ACTIONS, CANDIDATE],
        }
        nodes = [
            helper.make_node("Split", ["observations", "parts"], ["position", "flat"], axis=1),
            *body,
            helper.make_node("Split", ["heads", "sizes"], ["base", "column", "context"], axis=1),
            *_scores(),
            helper.make_node("Add", ["base", "scores"], ["logits"]),
        ]
    nodes.append(helper.make_node("Squeeze", ["column", "axes"], ["values"]))
    initializers = [
        TensorProto(name=name, dims=list(parameter.shape), data_type=TensorProto.FLOAT)
        for name, parameter in NETWORKS[version]().named_parameters()
    ]
    initializers += [
        helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers) for name, numbers in constants.items()
    ]

    def floats(name: str, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs = [floats("observations", "batch", SIZES[version])]
    outputs = [floats("logits", "batch", ACTIONS), floats("values", "batch")]
    net = helper.make_graph(nodes, "phase-ppo", inputs, outputs, initializers)
    return helper.make_model(net, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _scores() -> list[NodeProto]:
    """Scores (B, 58) of the features (B, 58 · 32) and the context (B, 32)."""
    return [
        helper.make_node("Reshape", ["flat", "rows"], ["candidates"]),
        helper.make_node("Transpose", ["score_weight"], ["weight"], perm=[1, 0]),
        helper.make_node("MatMul", ["candidates", "weight"], ["sums"]),
        helper.make_node("Unsqueeze", ["context", "axes"], ["contexts"]),
        helper.make_node("Add", ["sums", "contexts"], ["e"]),
        helper.make_node("Relu", ["e"], ["units"]),
        helper.make_node("MatMul", ["units", "score_out"], ["scores"]),
    ]
