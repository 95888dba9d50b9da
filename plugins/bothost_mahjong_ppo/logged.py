"""Encodes logged hands of mahjong for ``bothost.training.offpolicy``."""

from __future__ import annotations

import numpy as np

from bothost import LoggedStep, Trajectory
from bothost.rules import ActionArray
from bothost.training.offpolicy import Encoded
from bothost_mahjong_ppo.encode import ACTIONS, REWARD_SCALE, choices, supports
from bothost_mahjong_ppo.model import OBSERVATION
from bothost_mahjong_ppo.selfplay import observed


class MahjongHands:
    """A seat's hand is one trajectory. Its only reward is the score at the end, as in self-play.

    Hidden features are 0, because the log does not have them.
    """

    observation_size = OBSERVATION
    num_actions = ACTIONS
    precision = np.float32  # worths are compared with one another: half precision shifts probabilities by percents

    def __call__(self, hand: Trajectory) -> Encoded | None:
        if not supports(hand.game) or len(hand.scores) != hand.game.num_seats:
            return None
        rewards = np.zeros(len(hand.steps), np.float32)
        rewards[-1] = REWARD_SCALE * hand.scores[hand.seat]
        views, legal = [step.view for step in hand.steps], [step.legal for step in hand.steps]
        return Encoded(observed(views, legal), rewards, [_among(step) for step in hand.steps])


def _among(step: LoggedStep) -> ActionArray:
    """What the policy chose among. Earlier versions could pass a win: there it is all legal actions."""
    (found,) = choices([step.view], [step.legal])
    return found if step.action in found else step.legal
