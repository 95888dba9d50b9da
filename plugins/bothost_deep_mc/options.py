"""Options of the training."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from bothost.training.devices import Device
from bothost.training.limits import Count, Levels, NotNegative, Positive, Share
from bothost.training.loop import check_levels
from bothost_deep_mc.encode import Seen
from bothost_deep_mc.engine import EngineOptions, Order
from bothost_deep_mc.model import Sizes
from bothost_deep_mc.selfplay import PlayOptions


class Options(EngineOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training."""

    start: str = ""
    """Version to begin with, such as ``v9-level-3``. Its networks may be smaller. Empty: fresh parameters. A retraining
    begins with the champion."""
    hands: Count = 1024
    """Hands of a round, played at once."""
    bidding_share: Share = 0.1
    """Share of the hands with bidding. In the others the first seat is the landlord."""
    branches: Annotated[int, Meta(ge=0)] = 4
    """How often each hand is played again with one decision changed. 0: plain deep Monte-Carlo."""
    pair_epochs: Count = 2
    """Passes over the pairs of the branches for each pass over the decisions."""
    difference_weight: NotNegative = 1.0
    """α_d, the weight of the loss of differences, which needs branches."""
    expert_weight: NotNegative = 0.3
    """α_e, the weight of the regularizer at the beginning. 0: none."""
    expert_margin: NotNegative = 0.0
    """μ, the margin by which other moves must be valued below the expert's."""
    expert: Literal["rule", "search", "logged"] = "rule"
    """Whose moves the regularizer takes for the best. rule: the rule player's at every decision. search: those of a
    search at some decisions. logged: those of logged players only. In a retraining logged players always count."""
    searched_hands: Count = 32
    """Additional hands of a round in which a search decides one decision each."""
    search_iterations: Count = 300
    """Iterations of each search. 100 take about 10 ms."""
    parity: Positive = 0.5
    """Win rate against the expert at which α_e reaches 0."""
    reduction_weight: NotNegative = 0.0
    """α_s, the weight of the state-action reduction loss. 0: none."""
    beta: NotNegative = 0.1
    """β, the weight of the angle in that loss."""
    imitation: Share = 0.05
    """Part of the training, at the beginning, in which all seats play the expert's moves."""
    expert_share: Share = 0.9
    """Share of the hands in which one side plays the expert's moves."""
    epochs: Count = 1
    """Passes over each round."""
    device: Device = "cpu"
    """Where gradient steps are made. Hands are always played on the processor. cuda gives equal results only within
    rounding."""
    minibatch: Count = 1024
    """Decisions per gradient step."""
    learning_rate: Positive = 1e-3
    """At the beginning. It falls linearly to a twentieth at the end."""
    clip_norm: Positive = 1.0
    """Largest norm of a network's gradients."""
    play: PlayOptions = PlayOptions()
    sizes: Sizes = Sizes()
    evaluate_every: Count = 20
    """Rounds between two measurements against the rule player."""
    evaluation_deals: Count = 256
    """Deals of each measurement, played in both roles."""
    pool_every: Count = 20
    logged_share: NotNegative = 0.25
    """In a retraining: logged decisions for each decision of self-play."""
    levels: Levels = (0.02, 0.1, 1.0)
    """When each level is taken, weakest first, as parts of the training's samples."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_levels(self.levels)

    def order(self, rng: np.random.Generator, *, imitate: bool, keep_expert: bool) -> Order:
        """The order of a round."""
        called = round(self.hands * self.bidding_share)
        seeds = int(rng.integers(2**63)), int(rng.integers(2**63))
        hands = self.hands - called, called
        return Order(seeds, hands, self.expert_share, imitate, keep_expert, self.branches)

    @property
    def seen(self) -> Seen:
        """The cells of a position and of a move that the networks see."""
        return self.sizes.seen
