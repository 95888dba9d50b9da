"""The observation: the native encoder block ``features`` of the pairing game, 384 numbers.

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
"""Version of the block that models need. Others are refused."""
TURNS = 381
"""Index of the number of finished turns."""
REWARD_SCALE = 0.1
"""Reward per point of the score lead. Final leads are about ten points, so returns are about 1."""

PLANES, COLOURS, RANKS = 7, 4, 13
CARDS = COLOURS * RANKS


def encode(views: Sequence[View]) -> FloatArray:
    """Observations (n, 384) of the deciding seats."""
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
    """Permutations of the four colours, which leave the rules unchanged.

    Uses the first ``count`` of the 24 permutations; the first 4 are the rotations. With 1, 4 or 24 they form a group,
    so an average over them is invariant under the group.
    """

    def __init__(self, count: int) -> None:
        rotations = [tuple((shift + colour) % COLOURS for colour in range(COLOURS)) for shift in range(COLOURS)]
        others = [order for order in permutations(range(COLOURS)) if order not in rotations]
        cards = np.arange(CARDS).reshape(COLOURS, RANKS)
        chosen = [cards[list(order)].reshape(-1) for order in [*rotations, *others][:count]]
        planes = [np.concatenate([plane * CARDS + order for plane in range(PLANES)]) for order in chosen]
        self.features = np.stack([_with_rest(order, FEATURES) for order in planes])
        """(count, 384): feature j after permutation s is feature ``features[s, j]`` before."""
        self.actions = np.stack([_with_rest(np.argsort(order), ACTIONS) for order in chosen])
        """(count, 58): action a before permutation s is action ``actions[s, a]`` after."""

    def rename(self, observations: FloatArray) -> FloatArray:
        """Observations (n, 384) → all their permutations (n · count, 384)."""
        return observations[:, self.features].reshape(-1, FEATURES)

    def name_back(self, over_actions: FloatArray) -> FloatArray:
        """Numbers over permuted actions (n · count, 58) → over the original actions (n, count, 58)."""
        return np.take_along_axis(over_actions.reshape(-1, *self.actions.shape), self.actions[None], axis=2)


def _with_rest(order: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    return np.concatenate([order, np.arange(len(order), size)])
