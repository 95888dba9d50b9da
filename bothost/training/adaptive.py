"""Steered coefficients of PPO's objective: weights of entropy and approximate KL that follow targets.

The objective to be minimised is α·L_actor + β·L_critic − γ·entropy + δ·KL (``ppo.losses``). After every update
γ ← γ + c₁(entropy_target − entropy): too little entropy raises its weight. δ ← δ + c₂(KL − KL_target): too large steps
raise their penalty. Both stay within their ranges, δ ≥ 0.

Source: Chinese patent application "用于麻将的智能决策方法、系统、存储介质及设备" (2021), which prints
δ ← δ + c₂(KL_target − KL). For a penalty this is positive feedback. ``literal`` applies it for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from bothost.training.ppo import PpoOptions


class SteeringOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Targets, rates and ranges."""

    entropy_target: Annotated[float, Meta(ge=0)] = 0.3
    """Mean entropy of the policy, in nats."""
    kl_target: Annotated[float, Meta(ge=0)] = 0.01
    """Mean approximate KL divergence of an update."""
    entropy_rate: Annotated[float, Meta(ge=0)] = 0.002
    """c₁: how fast the weight of the entropy follows its target."""
    kl_rate: Annotated[float, Meta(ge=0)] = 0.5
    """c₂: how fast the weight of the KL divergence follows its target."""
    entropy_range: tuple[float, float] = (0.0, 0.1)
    """Least and greatest weight of the entropy."""
    kl_range: tuple[float, float] = (0.0, 5.0)
    """Least and greatest weight of the KL divergence."""
    literal: bool = False
    """Use the rule for δ as the source prints it."""

    def __post_init__(self) -> None:
        for name, (low, high) in (("entropy_range", self.entropy_range), ("kl_range", self.kl_range)):
            if not 0.0 <= low <= high:
                raise ValueError(f"{name} must be 0 or more and ascend, not {low} … {high}")


class Coefficients(msgspec.Struct, frozen=True, kw_only=True):
    """The steered weights of the objective."""

    entropy: float = 0.01
    """γ"""
    kl: float = 0.005
    """δ"""

    def into(self, options: PpoOptions) -> PpoOptions:
        """The options of an update with these weights."""
        return msgspec.structs.replace(options, entropy_coef=self.entropy, kl_coef=self.kl)


def steer_entropy(weight: float, entropy: float, options: SteeringOptions) -> float:
    """γ after an update with this mean entropy."""
    low, high = options.entropy_range
    return min(high, max(low, weight + options.entropy_rate * (options.entropy_target - entropy)))


def steer_kl(weight: float, kl: float, options: SteeringOptions) -> float:
    """δ after an update with this mean approximate KL divergence."""
    low, high = options.kl_range
    sign = -1.0 if options.literal else 1.0
    return min(high, max(low, weight + sign * options.kl_rate * (kl - options.kl_target)))


def steer(weights: Coefficients, figures: Mapping[str, float], options: SteeringOptions) -> Coefficients:
    """The weights after an update, from its figures ``entropy`` and ``approx_kl``."""
    return Coefficients(
        entropy=steer_entropy(weights.entropy, figures["entropy"], options),
        kl=steer_kl(weights.kl, figures["approx_kl"], options),
    )
