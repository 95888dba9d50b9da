"""The network: a trunk over the state, logits from it and from each action's prospect, and a value.

state (5560) and, in training, hidden (680) → 192 → 192 → 193 logits and the value. Each discard of the sequences in
``state`` is embedded (34 → 8) before; training looks it up by the tile's number. To each logit is added what a small
network, the same for all actions, makes of the action's prospect (42 → 64 → 1). The trunk shifts that one's hidden
layer: what a danger or a worth weighs depends on the position. To the value is added what a linear layer makes of the
greatest of each number over the legal actions' prospects, since the trunk does not see what the hand is worth.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

import onnx
import torch
from torch import Tensor, nn

from bothost.training import checkpoint
from bothost.training.publish import graph_of
from bothost_mahjong_ppo.encode import (
    ACTIONS,
    KINDS,
    ORDER_START,
    PACKED,
    PACKED_STATE,
    PLAIN,
    PROSPECT,
    ROWS,
    SEQUENCE,
    SEQUENCES,
    STATE,
)
from bothost_mahjong_ppo.oracle import HIDDEN

WIDTH, PROSPECT_WIDTH, DISCARD_WIDTH = 192, 64, 8
TRUNK_INPUT = ORDER_START + SEQUENCES * SEQUENCE * DISCARD_WIDTH
OBSERVATION = PACKED_STATE + PACKED + HIDDEN
"""In training: packed state, packed prospects, hidden features."""


class MahjongNet(nn.Module):
    """Observations (B, 3760) → logits (B, 193), to be masked by legality, and values (B,), scaled returns of the hand.

    ``look_ahead``: False leaves out all that looks ahead. ``oracle``: False makes the network that is shipped; its
    observations may lack the hidden features.
    """

    def __init__(self, *, look_ahead: bool = True, oracle: bool = True) -> None:
        super().__init__()
        self.look_ahead = look_ahead
        self.learns_trunk = True
        """Whether gradients reach the trunk, or what reads it alone."""
        self.learns_policy_layer = True
        """Whether they reach the layer from the trunk to the logits."""
        self.discard = nn.Linear(KINDS, DISCARD_WIDTH, bias=False)
        self.state = nn.Linear(TRUNK_INPUT, WIDTH)
        self.hidden = nn.Linear(HIDDEN, WIDTH, bias=False) if oracle else None
        self.second = nn.Linear(WIDTH, WIDTH)
        self.policy = nn.Linear(WIDTH, ACTIONS)
        self.value = nn.Linear(WIDTH, 1)
        self.prospect_first = nn.Linear(PROSPECT, PROSPECT_WIDTH)
        self.prospect_context = nn.Linear(WIDTH, PROSPECT_WIDTH, bias=False)
        self.prospect_second = nn.Linear(PROSPECT_WIDTH, 1)
        self.prospect_value = nn.Linear(PROSPECT, 1, bias=False)
        if self.hidden is not None:
            nn.init.zeros_(self.hidden.weight)  # as if nothing was given, until it is learnt what it is good for
        nn.init.zeros_(self.prospect_context.weight)  # prospects alone, until it is learnt what they depend on
        nn.init.zeros_(self.prospect_value.weight)
        nn.init.orthogonal_(self.policy.weight, 0.01)  # all legal actions almost equally likely at first
        nn.init.orthogonal_(self.prospect_second.weight, 0.1)
        nn.init.orthogonal_(self.value.weight, 1.0)
        for layer in (self.state, self.second, self.policy, self.value, self.prospect_second):
            nn.init.zeros_(layer.bias)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.learns_trunk):
            body = self._body(observations).float()
        # The layers above are wide, and bfloat16 makes them faster where the options ask for it. The others are small,
        # and the sizes of their inputs change all the time: bfloat16 would prepare a product for each size.
        with torch.autocast(observations.device.type, enabled=False):
            return self._outputs(observations, body)

    def _outputs(self, observations: Tensor, body: Tensor) -> tuple[Tensor, Tensor]:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.learns_policy_layer):
            logits: Tensor = self.policy(body)
        values = self.value(body)
        if self.look_ahead:
            prospects = _prospects(observations)
            logits = logits + self._of_prospects(prospects, _actions(observations), body)
            values = values + self.prospect_value(_greatest(prospects))
        return logits, values.squeeze(-1)

    @torch.no_grad()
    def critic_inputs(self, observations: Tensor) -> Tensor:
        """What the value is linear in (B, 235): the trunk's last layer, the greatest prospects, 1."""
        prospects = _greatest(_prospects(observations))
        given = prospects if self.look_ahead else torch.zeros_like(prospects)
        return torch.cat((self._body(observations), given, torch.ones(len(observations), 1)), dim=1)

    @torch.no_grad()
    def set_critic(self, weights: Tensor) -> None:
        """The value's layers, by the weights (235,) of ``critic_inputs``."""
        self.value.weight.copy_(weights[None, :WIDTH])
        self.prospect_value.weight.copy_(weights[None, WIDTH:-1])
        self.value.bias.copy_(weights[-1:])

    def _body(self, observations: Tensor) -> Tensor:
        position = observations[:, :ORDER_START]
        if not self.look_ahead:
            position = torch.cat((position[:, :PLAIN], torch.zeros_like(position[:, PLAIN:])), dim=1)
        embeddings = nn.functional.pad(self.discard.weight.T, (0, 0, 1, 0))  # zeros where there is no discard
        discards = observations[:, ORDER_START:PACKED_STATE].flatten().int()
        sequences = embeddings.index_select(0, discards).reshape(len(observations), -1)
        # The layer's weights in two parts: only the sequences need a gradient.
        of_position, of_sequences = torch.split(self.state.weight, [ORDER_START, TRUNK_INPUT - ORDER_START], dim=1)
        body = nn.functional.linear(position, of_position, self.state.bias)
        body = body + nn.functional.linear(sequences, of_sequences)
        if self.hidden is not None:
            body = body + self.hidden(observations[:, PACKED_STATE + PACKED :])
        hidden: Tensor = self.second(body.relu())
        return hidden.relu()

    def _of_prospects(self, prospects: Tensor, actions: Tensor, body: Tensor) -> Tensor:
        """(B, 193). The prospects of illegal actions are 0: they all come to the same, which is computed once."""
        context = self.prospect_context(body)
        empty: Tensor = self.prospect_second((self.prospect_first.bias + context).relu())
        at = actions.nonzero(as_tuple=True)
        given = self.prospect_first(prospects[at]) + context[at[0]]
        values: Tensor = self.prospect_second(given.relu()).squeeze(1)
        return empty.expand(-1, ACTIONS).index_put((at[0], actions[at].long() - 1), values)

    @torch.no_grad()
    def cool(self, factor: float) -> None:
        """Multiply all logits by ``factor``."""
        for layer in (self.policy, self.prospect_second):
            layer.weight.mul_(factor)
            layer.bias.mul_(factor)

    def begin_with(self, file: Path) -> None:
        """Take the parameters of a shipped network, which ignores hidden features. Raises ModelError where the file has
        no such network."""
        shipped = MahjongNet(oracle=False)
        checkpoint.load_model(file, shipped)
        self.load_state_dict(shipped.state_dict(), strict=False)

    def deployed(self) -> MahjongNet:
        """The same network without an input for hidden features, as ``graph`` has it: what it is with all of them
        absent. What a network without look-ahead ignores has weight 0 there."""
        bare = MahjongNet(oracle=False)
        bare.load_state_dict({name: value for name, value in self.state_dict().items() if name != "hidden.weight"})
        if not self.look_ahead:
            with torch.no_grad():
                bare.state.weight[:, PLAIN:ORDER_START] = 0.0
                bare.prospect_second.weight.zero_()
                bare.prospect_second.bias.zero_()
                bare.prospect_value.weight.zero_()
        return bare


def _prospects(observations: Tensor) -> Tensor:
    """(B, 16, 42), of legal actions; 0 beyond them."""
    return observations[:, PACKED_STATE : PACKED_STATE + ROWS * PROSPECT].reshape(-1, ROWS, PROSPECT)


def _actions(observations: Tensor) -> Tensor:
    """(B, 16): which actions these are, counted from 1; 0 beyond them."""
    return observations[:, PACKED_STATE + ROWS * PROSPECT : PACKED_STATE + PACKED]


def _greatest(prospects: Tensor) -> Tensor:
    """Of each number over all actions (B, 42); the prospects of illegal ones are 0."""
    return prospects.amax(dim=1).clamp(min=0.0)


def graph() -> onnx.ModelProto:
    """The shipped network for ONNX Runtime."""
    sizes = {"STATE": STATE, "ACTIONS": ACTIONS, "PROSPECT": PROSPECT, "HIDDEN": PROSPECT_WIDTH, "KINDS": KINDS}
    sizes |= {"POSITION": ORDER_START, "ORDER": STATE - ORDER_START, "EMBEDDED": TRUNK_INPUT - ORDER_START}
    return graph_of(GRAPH.substitute(sizes), MahjongNet(oracle=False).state_dict())


GRAPH = Template("""
<ir_version: 8, opset_import: ["" : 17]>
network (float[batch, $STATE] state, float[batch, $ACTIONS, $PROSPECT] prospects)
    => (float[batch, $ACTIONS] logits, float[batch] values)
<
    int64[1] axes = {1}, int64[2] split = {$POSITION, $ORDER}, int64[2] by_discard = {-1, $KINDS},
    int64[2] flat_sequences = {-1, $EMBEDDED}, int64[2] flat = {-1, $PROSPECT},
    int64[3] by_action = {-1, $ACTIONS, $HIDDEN}, int64[2] flat_hidden = {-1, $HIDDEN}, int64[2] by_row = {-1, $ACTIONS}
>
{
    position, sequences = Split <axis = 1> (state, split)
    discards = Reshape(sequences, by_discard)
    embedded = Gemm <transB = 1> (discards, discard_weight)
    sequence_columns = Reshape(embedded, flat_sequences)
    trunk_input = Concat <axis = 1> (position, sequence_columns)
    a = Gemm <transB = 1> (trunk_input, state_weight, state_bias)
    b = Relu(a)
    c = Gemm <transB = 1> (b, second_weight, second_bias)
    body = Relu(c)
    from_body = Gemm <transB = 1> (body, policy_weight, policy_bias)
    value_of_body = Gemm <transB = 1> (body, value_weight, value_bias)
    greatest = ReduceMax <axes = [1], keepdims = 0> (prospects)
    value_of_prospects = Gemm <transB = 1> (greatest, prospect_value_weight)
    value_column = Add(value_of_body, value_of_prospects)
    values = Squeeze(value_column, axes)
    p = Reshape(prospects, flat)
    q = Gemm <transB = 1> (p, prospect_first_weight, prospect_first_bias)
    by_position = Reshape(q, by_action)
    shift = Gemm <transB = 1> (body, prospect_context_weight)
    context = Unsqueeze(shift, axes)
    shifted = Add(by_position, context)
    r = Relu(shifted)
    r_flat = Reshape(r, flat_hidden)
    s = Gemm <transB = 1> (r_flat, prospect_second_weight, prospect_second_bias)
    from_prospects = Reshape(s, by_row)
    logits = Add(from_body, from_prospects)
}
""")
"""The network without hidden features. Parameters have ``_`` for each dot in their names."""
