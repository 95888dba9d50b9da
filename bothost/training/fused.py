"""Small policy networks computed natively, for updates and rollouts of models that allow it.

A model that is a chain of linear layers with ReLU between them has a method ``linear_layers``. One that also scores
each action from features of its own has ``scorer``. Parameters, optimizer and checkpoints stay with torch. Only forward
passes and gradients are computed here, without autograd. The first layer skips inputs that are 0, as most elements of
card encodings are. The instruction set is chosen at run time: AVX-512 where there is, and for ``bf16``
products of bfloat16, by AMX where there is. ``ppo.losses`` is the readable version of the same mathematics, and tests
compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from bothost.native import _native

Float = npt.NDArray[np.float32]

MOST_OUTPUTS = 4096


@runtime_checkable
class Layered(Protocol):
    """A model whose outputs are ``linear_layers()`` in turn with ReLU between them: logits and, last, a value."""

    def linear_layers(self) -> Sequence[nn.Linear]: ...


class Scorer(NamedTuple):
    """Parameters that add ``out · relu(weight @ features + context)`` to the logit of each action.

    All actions share them. The features of the actions follow the first layer's inputs in an observation. The context
    are the last outputs of the network, after the value.
    """

    weight: Tensor
    """(hidden, features)."""
    out: Tensor
    """(hidden,)."""


@runtime_checkable
class Scored(Layered, Protocol):
    """A layered model with a scorer of actions."""

    def scorer(self) -> Scorer: ...


class FusedNetwork:
    """A native copy of a layered model. ``load`` updates its parameters."""

    def __init__(self, model: Layered, *, bf16: bool = False, kernels: str = "") -> None:
        layers = model.linear_layers()
        scorer = model.scorer() if isinstance(model, Scored) else ()
        self._parameters: list[Tensor] = [p for layer in layers for p in (layer.weight, layer.bias)]
        self._parameters += scorer
        self.bf16 = bf16
        hidden, features = scorer.weight.shape if isinstance(scorer, Scorer) else (0, 0)
        self._native = _native.Mlp(widths(layers), bf16, kernels, features, hidden)
        self.load()

    @property
    def kernels(self) -> str:
        """Name of the instruction set in use."""
        return self._native.kernels

    def load(self) -> None:
        """Copy the present parameters."""
        self._native.load([parameter.detach().numpy() for parameter in self._parameters])

    def __call__(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Observations (B, row) → logits (B, A), values (B,), without gradients."""
        out = torch.from_numpy(self._native.forward(observations.numpy()))
        return out[:, :-1], out[:, -1]

    def act(
        self, observations: Float, masks: npt.NDArray[np.bool_], uniform: Float
    ) -> tuple[npt.NDArray[np.int64], Float, Float]:
        """Draw actions (B,) by ``uniform`` (B,) in [0, 1). Returns actions, log-probabilities and values.

        Raises ValueError for a row without a legal action.
        """
        return self._native.act(observations, masks, uniform)

    def accumulate(
        self,
        fields: Sequence[Tensor],
        *,
        clip: float,
        value_coef: float,
        entropy_coef: float,
        kl_coef: float,
    ) -> tuple[float, float, float, float, float]:
        """Add the gradients of PPO's objective to ``grad`` of the parameters.

        ``fields`` are those of ``ppo.Batch``. Returns the means of the terms: policy, value, entropy, approximate KL
        divergence and clipped fraction. Raises ValueError for an action that is not legal.
        """
        for parameter in self._parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        into = [parameter.grad.numpy() for parameter in self._parameters if parameter.grad is not None]
        observations, masks, actions, log_probs, advantages, returns = (f.contiguous().numpy() for f in fields)
        return self._native.gradients(
            observations, masks, actions, log_probs, advantages, returns, into, clip, value_coef, entropy_coef, kl_coef
        )


def widths(layers: Sequence[nn.Linear]) -> list[int]:
    """Inputs of the first layer and outputs of every one."""
    return [layers[0].in_features, *(layer.out_features for layer in layers)]


def fused(model: object, *, bf16: bool = False) -> FusedNetwork | None:
    """A native copy of the model, or None if the model is of another kind.

    Also None if ``bf16`` is asked for and the processor cannot multiply in bfloat16; torch emulates it.
    """
    if not isinstance(model, Layered):
        return None
    layers = list(model.linear_layers())
    if not _computable(layers) or (bf16 and "avx512_bf16" not in _native.network_kernels()):
        return None
    return FusedNetwork(model, bf16=bf16)


def _computable(layers: Sequence[nn.Linear]) -> bool:
    """Whether the native network supports the sizes, types and devices."""
    hidden = [layer.out_features for layer in layers[:-1]]
    return (
        bool(hidden)
        and all(width % 16 == 0 and width <= 8192 for width in hidden)
        and 2 <= layers[-1].out_features <= MOST_OUTPUTS
        and layers[0].in_features < 60000
        and all(
            layer.bias is not None
            and parameter.dtype == torch.float32
            and parameter.device.type == "cpu"
            and parameter.is_contiguous()
            for layer in layers
            for parameter in layer.parameters()
        )
    )
