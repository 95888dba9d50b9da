"""Opponents with habits: the rule player, with its preferences bent at random.

A network that only meets itself and the rule player learns how these play. Many opponents who play worse, each in a way
of its own, teach it to use what others do wrong.
"""

from __future__ import annotations

import numpy as np

from bothost.rules import FloatArray
from bothost_deep_mc.encode import BEHIND, CHOICE, FEATURES, KINDS, LENGTHS, PLAYS_LEFT, RANKS, UNBEATABLE


def habits(rng: np.random.Generator, hands: int, strength: float) -> FloatArray:
    """Weights (hands, 202) of the cells of a move, of one player for each hand. It plays the move of the largest sum.

    A habit likes or dislikes each kind of move, high ranks, long moves, moves that no enemy can beat, and moves that
    leave a hand of many plays. A hand's habits have a size between 0, for the rule player, and ``strength``. 1 is worth
    one step of the rule player's preferences.
    """
    weights = np.zeros((hands, FEATURES), np.float32)
    weights[:, KINDS] = rng.normal(size=(hands, KINDS.stop - KINDS.start))
    for cells in (PLAYS_LEFT, RANKS, LENGTHS):
        weights[:, cells] = rng.normal(size=(hands, 1)) * np.linspace(-1.5, 1.5, cells.stop - cells.start)
    weights[:, UNBEATABLE] = rng.normal(size=hands)
    weights *= strength * rng.random((hands, 1))
    weights[:, BEHIND] = -1.0
    weights[:, CHOICE] = 0.5
    return weights
