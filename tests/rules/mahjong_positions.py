"""Positions of mahjong hands."""

import numpy as np

from bothost import rules
from bothost.rules import mahjong

GAME = rules.game("mahjong")


def positions(hands=2):
    """States with a seat that is asked, from play of all kinds."""
    rng = np.random.default_rng(0)
    found = []
    for seed in range(hands):
        state = GAME.new_state(seed)
        while not state.terminal:
            seat = state.to_act[0]
            found.append((state.clone(), seat))
            state.apply(
                seat, mahjong.rule_choice(state.view(seat))[0] if rng.random() < 0.8 else int(state.legal(seat)[0])
            )
    return found
