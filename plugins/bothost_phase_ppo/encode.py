"""What the network sees: the native encoder block ``features`` of the pairing game, 384 numbers.

7 planes of 52 cards and 20 scalars, described in ``bothost.rules.game("pairing").blocks["features"].doc``. Training
reads the same block through ``VecEnv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, FloatArray, View

BLOCK = "features"
FEATURES = 384
ACTIONS = 58
"""52 cards to select and 6 phases to enter."""
VERSION = 1
"""Version of the block that the models here are made for; another is refused."""
TURNS = 381
"""Index of the number of turns over so far."""
REWARD_SCALE = 0.1
"""Reward per point of the score lead: leads at the end of a hand are some ten points, so returns are about 1."""

PLANES, COLOURS, RANKS = 7, 4, 13
CARDS = COLOURS * RANKS


def encode(views: Sequence[View]) -> FloatArray:
    """Observations (n, 384) of the seats that are asked."""
    out = np.empty((len(views), FEATURES), np.float32)
    for row, view in zip(out, views, strict=True):
        view.encode(BLOCK, row)
    return out


def masks(legal: Sequence[ActionArray]) -> npt.NDArray[np.bool_]:
    """Legal actions (n, 58)."""
    out = np.zeros((len(legal), ACTIONS), np.bool_)
    for row, actions in zip(out, legal, strict=True):
        row[actions] = True
    return out


class Symmetries:
    """The game under other names of its four colours: no rule tells colours apart.

    The first ``count`` of the 24 permutations, of which the first 4 are the rotations: with 1, 4 or 24 of them they
    form a group, and what is averaged over them does not depend on the names of colours that the group exchanges.
    """

    def __init__(self, count: int) -> None:
        rotations = [tuple((shift + colour) % COLOURS for colour in range(COLOURS)) for shift in range(COLOURS)]
        others = [order for order in permutations(range(COLOURS)) if order not in rotations]
        cards = np.arange(CARDS).reshape(COLOURS, RANKS)
        chosen = [cards[list(order)].reshape(-1) for order in [*rotations, *others][:count]]
        planes = [np.concatenate([plane * CARDS + order for plane in range(PLANES)]) for order in chosen]
        self.features = np.stack([_with_rest(order, FEATURES) for order in planes])
        """(count, 384): feature j of the renamed game is feature ``features[s, j]`` of the game."""
        self.actions = np.stack([_with_rest(np.argsort(order), ACTIONS) for order in chosen])
        """(count, 58): action a of the game is action ``actions[s, a]`` of the renamed game."""

    def rename(self, observations: FloatArray) -> FloatArray:
        """Observations (n, 384) → those of all renamed games (n · count, 384)."""
        return observations[:, self.features].reshape(-1, FEATURES)

    def name_back(self, over_actions: FloatArray) -> FloatArray:
        """Numbers over the actions of the renamed games (n · count, 58) → over those of the game (n, count, 58)."""
        return np.take_along_axis(over_actions.reshape(-1, *self.actions.shape), self.actions[None], axis=2)


def _with_rest(order: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    return np.concatenate([order, np.arange(len(order), size)])
