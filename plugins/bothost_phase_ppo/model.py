"""The networks: the source's, one that also scores each action from features of its own, and a critic for training.

The first two are fully connected, with 58 logits and a value on the last hidden layer. The source's has two hidden
layers of 256; the other may have more and wider ones.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from bothost.errors import ModelError
from bothost.training.checkpoint import load_model, parameters_of
from bothost.training.fused import Scorer
from bothost.training.publish import graph_of
from bothost_phase_ppo.encode import ACTIONS, CANDIDATE, CARDS, FEATURES, POSITION

HIDDEN = (256, 256)
UNITS = 32
"""Hidden units of the scorer of actions."""
DEPTHS = 24
"""Places of the deck that a critic tells apart. All deeper cards are alike to it."""


class PhaseNet(nn.Module):
    """Version 1, the source's: observations (B, 384) → logits (B, A), to be masked by legality, and values (B,).

    A is 58. A value is the expected return: the change of the score lead from the beginning of the current turn to the
    end of the hand, times the reward's scale.
    """

    def __init__(
        self, actions: int = ACTIONS, *, inputs: int = FEATURES, extra: int = 0, hidden: Sequence[int] = HIDDEN
    ) -> None:
        super().__init__()
        self.inputs, self.actions = inputs, actions
        layers = [nn.Linear(*sizes) for sizes in pairwise((inputs, *hidden))]
        self.body = nn.Sequential(*(module for layer in layers for module in (layer, nn.ReLU())))
        # One matrix for all outputs: one product instead of several.
        self.heads = nn.Linear(hidden[-1], actions + 1 + extra)
        for layer in layers:
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

    def __init__(self, hidden: Sequence[int] = HIDDEN, units: int = UNITS) -> None:
        super().__init__(inputs=POSITION, extra=units, hidden=hidden)
        weight = nn.init.orthogonal_(torch.empty(units, CANDIDATE), 2**0.5)
        self.score_weight = nn.Parameter(weight)
        self.score_out = nn.Parameter(torch.randn(units) * 0.01)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        out = self.heads(self.body(observations[:, :POSITION]))
        candidates = observations[:, POSITION:].reshape(-1, self.actions, CANDIDATE)
        units = torch.relu(candidates @ self.score_weight.T + out[:, None, self.actions + 1 :])
        return out[:, : self.actions] + units @ self.score_out, out[:, self.actions]

    def policy(self, positions: Tensor, rows: Tensor, actions: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Log probabilities (B, A) of given actions, -1e9 or less for all others, and values (B,), in float32.

        ``positions`` (B, 400). The actions (M,) belong to the positions ``rows`` (M,); ``candidates`` (M, 32) are their
        inputs. So nothing is computed for the other actions.
        """
        out = self.heads(self.body(positions))
        units = torch.relu(candidates @ self.score_weight.T + out[rows, self.actions + 1 :])
        logits = (out[rows, actions] + units @ self.score_out).float()
        none = torch.full((len(positions), self.actions), -1e9, device=positions.device)
        return torch.log_softmax(none.index_put((rows, actions), logits), dim=1), out[:, self.actions].float()

    def among(self, positions: Tensor, rows: Tensor, actions: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """As ``policy``, with the log probabilities (M,) of the given actions alone."""
        log_probs, values = self.policy(positions, rows, actions, candidates)
        return log_probs[rows, actions], values

    def scorer(self) -> Scorer:
        """The parameters of the scorer, for trainers that compute it natively."""
        return Scorer(self.score_weight, self.score_out)

    @torch.no_grad()
    def take(self, smaller: CandidateNet) -> None:
        """Compute exactly what a network computes that is nowhere larger, with units beside its own that count nothing.

        New units keep the inputs that they have here, and what leaves them is 0. A new layer passes on the units of the
        one before. Source: Chen, Goodfellow, Shlens, "Net2Net", arXiv:1511.05641 (2016).
        """
        own, given = self.linear_layers(), smaller.linear_layers()
        while len(given) < len(own):
            copy = nn.Linear(given[-1].in_features, given[-1].in_features)
            copy.weight.copy_(torch.eye(copy.in_features))
            copy.bias.zero_()
            given.insert(-1, copy)
        known = POSITION
        for layer, old in zip(own, given, strict=True):
            layer.weight[:, known:] = 0.0
            layer.weight[: old.out_features, :known] = old.weight
            layer.bias[: old.out_features] = old.bias
            known = old.out_features
        units = len(smaller.score_out)
        self.score_weight[:units] = smaller.score_weight
        self.score_out[:units], self.score_out[units:] = smaller.score_out, 0.0


class Critic(nn.Module):
    """Positions (B, 400) and the block ``hidden`` (B, 104) → how the hand will count for the seat (B,), scaled."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        layers = [nn.Linear(*pair) for pair in pairwise((POSITION + CARDS + CARDS * DEPTHS, *sizes))]
        hidden = [module for layer in layers for module in (layer, nn.ReLU())]
        self.layers = nn.Sequential(*hidden, nn.Linear(sizes[-1], 1))

    def forward(self, positions: Tensor, hidden: Tensor) -> Tensor:
        others, deck = hidden[:, :CARDS], hidden[:, CARDS:]
        depth = (1.0 / deck.clamp(min=1.0 / CARDS)).round().long().clamp(max=DEPTHS) - 1
        cards = DEPTHS * torch.arange(CARDS, device=deck.device)
        places = deck.new_zeros(len(deck), CARDS * DEPTHS).scatter_(1, cards + depth, (deck > 0).to(deck.dtype))
        out: Tensor = self.layers(torch.cat([positions, others, places], dim=1))
        return out[:, 0].float()


class ActorCritic(nn.Module):
    """The network that plays, and the critic that helps to train it."""

    def __init__(self, actor: CandidateNet, critic: Critic) -> None:
        super().__init__()
        self.actor, self.critic = actor, critic


def sizes(parameters: Mapping[str, Tensor]) -> tuple[tuple[int, ...], int]:
    """Sizes of the hidden layers, and hidden units of the scorer, of a ``CandidateNet`` with these parameters.

    Raises ModelError for those of another network.
    """
    layers = sorted(int(found[1]) for name in parameters if (found := re.fullmatch(r"body\.(\d{1,9})\.bias", name)))
    if not layers or "score_out" not in parameters:
        raise ModelError("the version to start with is of another network", advice="start with another version")
    return tuple(len(parameters[f"body.{layer}.bias"]) for layer in layers), len(parameters["score_out"])


def begin_with(file: Path, model: CandidateNet) -> None:
    """Let ``model`` compute what the network in a safetensors file does. Raises ModelError if that is larger."""
    hidden, units = sizes(parameters_of(file))
    own, own_units = sizes(model.state_dict())
    passed_on = hidden + hidden[-1:] * (len(own) - len(hidden))
    if len(passed_on) > len(own) or units > own_units or any(map(operator.gt, passed_on, own)):
        problem = f"{file} has layers of {list(hidden)} and {units} units, larger than {list(own)} and {own_units}"
        raise ModelError(problem, advice="give larger options hidden and units, or start with another version")
    smaller = CandidateNet(hidden, units)
    load_model(file, smaller)
    model.take(smaller)


def listed(legal: Tensor, begin: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The legal actions of choices ``index`` (B,), one after another: rows of these choices, actions, and places.

    ``legal`` (k, 58) of all choices. The legal actions of choice i begin at place ``begin[i]`` of all their inputs.
    """
    allowed = legal[index]
    rows, actions = allowed.nonzero(as_tuple=True)
    return rows, actions, begin[index][rows] + (allowed.cumsum(dim=1) - 1)[rows, actions]


NETWORKS: dict[int, type[PhaseNet]] = {1: PhaseNet, 2: CandidateNet}
"""The network of each encoder version."""


def graph(model: PhaseNet) -> onnx.ModelProto:
    """The network for ONNX Runtime. Parameters have ``_`` for each dot in their names."""
    layers = range(0, 2 * len(model.linear_layers()) - 2, 2)
    body = "\n".join(
        f"    sum{i} = Gemm <transB = 1> ({f'unit{i - 2}' if i else 'position'}, body_{i}_weight, body_{i}_bias)\n"
        f"    unit{i} = Relu(sum{i})"
        for i in layers
    )
    body += f"\n    heads = Gemm <transB = 1> (unit{layers[-1]}, heads_weight, heads_bias)"
    text = _scored(model, body) if isinstance(model, CandidateNet) else _plain(model, body)
    return graph_of(text, model.state_dict())


def _plain(model: PhaseNet, body: str) -> str:
    return f"""
<ir_version: 8, opset_import: ["" : 17]>
network (float[batch, {model.inputs}] observations) => (float[batch, {model.actions}] logits, float[batch] values)
<int64[1] axes = {{1}}, int64[2] sizes = {{{model.actions}, 1}}>
{{
    position = Identity(observations)
{body}
    logits, column = Split <axis = 1> (heads, sizes)
    values = Squeeze(column, axes)
}}
"""


def _scored(model: CandidateNet, body: str) -> str:
    actions, scored, units = model.actions, model.actions * CANDIDATE, len(model.score_out)
    return f"""
<ir_version: 8, opset_import: ["" : 17]>
network (float[batch, {POSITION + scored}] observations) => (float[batch, {actions}] logits, float[batch] values)
<
    int64[1] axes = {{1}}, int64[2] parts = {{{POSITION}, {scored}}}, int64[3] sizes = {{{actions}, 1, {units}}},
    int64[3] rows = {{0, {actions}, {CANDIDATE}}}
>
{{
    position, flat = Split <axis = 1> (observations, parts)
{body}
    base, column, context = Split <axis = 1> (heads, sizes)
    candidates = Reshape(flat, rows)
    weight = Transpose <perm = [1, 0]> (score_weight)
    products = MatMul(candidates, weight)
    contexts = Unsqueeze(context, axes)
    together = Add(products, contexts)
    scored = Relu(together)
    scores = MatMul(scored, score_out)
    logits = Add(base, scores)
    values = Squeeze(column, axes)
}}
"""
