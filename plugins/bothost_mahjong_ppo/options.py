"""Options of the training of mahjong-ppo."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from bothost.rules import game
from bothost.training import ppo
from bothost.training.adaptive import SteeringOptions
from bothost.training.limits import Count, NotNegative, Positive, Share
from bothost.training.loop import LoopOptions
from bothost_mahjong_ppo.imitate import Teacher
from bothost_mahjong_ppo.oracle import DropoutOptions
from bothost_mahjong_ppo.selfplay import CURRICULUM
from bothost_mahjong_ppo.vine import BranchOptions


class Options(LoopOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training. With ``iterations`` 0 it ends after the imitation."""

    preset: str = "botzone"
    """Preset of the game's rules."""
    hands: Count = 128
    """Hands of the learner in each iteration, of each process that plays."""
    workers: Annotated[int, Meta(ge=0)] = 0
    """Processes of this machine that play, and learn together from all their hands. 0: do it all in this process."""
    timeout_s: Positive = 600.0
    """A process that takes longer for an iteration counts as dead."""
    learning_rate: Positive = 3e-4
    """At the beginning. It falls linearly to 0 at the end."""
    look_ahead: bool = True
    """Whether the network sees look-ahead features and prospects."""
    oracle: bool = True
    """Whether it sees hidden features until ``dropout`` has removed them."""
    dropout: DropoutOptions = DropoutOptions()
    branches: BranchOptions = BranchOptions()
    """Learn from branches instead of trajectories. A retraining does not use it."""
    adaptive: bool = True
    """Whether the coefficients of entropy and approximate KL are steered. False: use those of ``ppo``."""
    steering: SteeringOptions = SteeringOptions()
    first_stage: int | None = None
    """Stage of the curriculum to begin with. None: the first; in a retraining the last."""
    window: Count = 10
    """Iterations over which progress is measured."""
    least_score: float = 2.0
    """Mean points a hand over the window that open the next stage."""
    start: str | None = None
    """Version to begin with, such as ``v7``. None: a fresh network. A retraining begins with the champion."""
    imitation_hands: Annotated[int, Meta(ge=0)] = 0
    """Hands of the teacher to imitate before. 0: none."""
    teacher: Teacher = "rule"
    """Player to imitate: ``rule-mahjong``, or the one with the acceptance-weighted look-ahead. ``discerning`` is the
    old name of that one."""
    imitation_rate: Positive = 2e-3
    """Learning rate of the imitation."""
    imitation_entropy: NotNegative = 0.0
    """Least mean entropy of the policy after the imitation, in nats."""
    critic_hands: Annotated[int, Meta(ge=0)] = 400
    """Hands of the teacher that the critic is fitted to after the imitation. 0: none."""
    trunk: bool = True
    """Whether PPO changes the trunk. False: only the layers that read it."""
    policy_layer: bool = True
    """Whether PPO changes the layer from the trunk to the logits. False, without the trunk: what scores each action by
    its prospect, and the value, are all that learns. That is 15,000 weights, which need fewer samples."""
    pool_every: Count = 10
    newest_share: Share = 0.5
    """Share of the hands against past selves that use the newest version."""
    checkpoint_every: Count = 10
    logged_share: NotNegative = 0.25
    """In a retraining: logged samples for each sample of self-play."""
    ppo: ppo.PpoOptions = ppo.PpoOptions(epochs=2, minibatch=512, entropy_coef=0.01, gae_lambda=0.95, target_kl=0.05)
    least_iterations: ClassVar[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        game("mahjong", preset=self.preset)  # raises ValueError for an unknown one
        if self.first_stage is not None and not 0 <= self.first_stage < len(CURRICULUM):
            raise ValueError(f"first_stage must be within 0 and {len(CURRICULUM) - 1}")
        if self.workers and self.branches.candidates:
            raise ValueError("workers share PPO on trajectories: leave out branches, or workers")
        if self.workers > self.ppo.minibatch:
            raise ValueError(f"ppo.minibatch must be at least {self.workers}: each of the workers has a part of it")
        if self.adaptive and self.ppo.entropy_final is not None:
            raise ValueError(
                "adaptive steers the coefficient of entropy: set adaptive = false, or no ppo.entropy_final"
            )
