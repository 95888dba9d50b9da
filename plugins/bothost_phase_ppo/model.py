"""The networks: the source's, and one that also scores each action from features of its own.

Both are fully connected with two hidden layers of 256, 58 logits, and a value on the last hidden layer.
"""

from __future__ import annotations

from string import Template

import onnx
import torch
from torch import Tensor, nn

from bothost.training.fused import Scorer
from bothost.training.publish import graph_of
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
    """The network of an encoder version for ONNX Runtime."""
    sizes = {"POSITION": POSITION, "SCORED": ACTIONS * CANDIDATE, "UNITS": UNITS, "CANDIDATE": CANDIDATE}
    sizes |= {"INPUTS": SIZES[version], "ACTIONS": ACTIONS}
    return graph_of(GRAPHS[version].substitute(sizes), NETWORKS[version]().state_dict())


GRAPHS = {
    1: Template("""
<ir_version: 8, opset_import: ["" : 17]>
network (float[batch, $INPUTS] observations) => (float[batch, $ACTIONS] logits, float[batch] values)
<int64[1] axes = {1}, int64[2] sizes = {$ACTIONS, 1}>
{
    a = Gemm <transB = 1> (observations, body_0_weight, body_0_bias)
    b = Relu(a)
    c = Gemm <transB = 1> (b, body_2_weight, body_2_bias)
    d = Relu(c)
    heads = Gemm <transB = 1> (d, heads_weight, heads_bias)
    logits, column = Split <axis = 1> (heads, sizes)
    values = Squeeze(column, axes)
}
"""),
    2: Template("""
<ir_version: 8, opset_import: ["" : 17]>
network (float[batch, $INPUTS] observations) => (float[batch, $ACTIONS] logits, float[batch] values)
<
    int64[1] axes = {1}, int64[2] parts = {$POSITION, $SCORED}, int64[3] sizes = {$ACTIONS, 1, $UNITS},
    int64[3] rows = {0, $ACTIONS, $CANDIDATE}
>
{
    position, flat = Split <axis = 1> (observations, parts)
    a = Gemm <transB = 1> (position, body_0_weight, body_0_bias)
    b = Relu(a)
    c = Gemm <transB = 1> (b, body_2_weight, body_2_bias)
    d = Relu(c)
    heads = Gemm <transB = 1> (d, heads_weight, heads_bias)
    base, column, context = Split <axis = 1> (heads, sizes)
    candidates = Reshape(flat, rows)
    weight = Transpose <perm = [1, 0]> (score_weight)
    sums = MatMul(candidates, weight)
    contexts = Unsqueeze(context, axes)
    e = Add(sums, contexts)
    units = Relu(e)
    scores = MatMul(units, score_out)
    logits = Add(base, scores)
    values = Squeeze(column, axes)
}
"""),
}
"""Each network. Parameters have ``_`` for each dot in their names."""
