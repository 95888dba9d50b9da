"""The observation: a native encoder block of the pairing game.

Version 1, ``features``: 7 planes of 52 cards and 20 scalars. Version 2, ``candidates``: the same, 16 numbers about the
position, and 32 about each action. ``bothost.rules.game("pairing").blocks[name].doc`` lists them. Training reads the
same blocks through ``VecEnv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt

from bothost.rules import FloatArray, View

BLOCKS = {1: "features", 2: "candidates"}
"""The block of each encoder version. Models of other versions are refused."""
VERSION = 2
"""Version of new models."""
FEATURES = 384
POSITION = 400
"""Version 2: numbers about the position."""
CANDIDATE = 32
"""Version 2: numbers about each action, after those about the position."""
ACTIONS = 58
"""52 cards to select and 6 phases to enter."""
SIZES = {1: FEATURES, 2: POSITION + ACTIONS * CANDIDATE}
TURNS = 381
"""Index of the number of finished turns."""
REWARD_SCALE = 0.1
"""Reward per point of the score lead. Final leads are about ten points, so returns are about 1."""
WIN_POINTS = 10.0
"""Points that a win adds to its lead when playouts are compared. Equal players win by about ten points."""

PLANES, COLOURS, RANKS = 7, 4, 13
CARDS = COLOURS * RANKS


def encode(views: Sequence[View], version: int = VERSION) -> FloatArray:
    """Observations (n, size) of the deciding seats; ``SIZES`` has the size of each version."""
    out = np.empty((len(views), SIZES[version]), np.float32)
    for row, view in zip(out, views, strict=True):
        view.encode(BLOCKS[version], row)
    return out


class Symmetries:
    """Permutations of the four colours, which leave the rules unchanged.

    Uses the first ``count`` of the 24 permutations; the first 4 are the rotations. With 1, 4 or 24 they form a group,
    so an average over them is invariant under the group.
    """

    def __init__(self, count: int, version: int = VERSION) -> None:
        rotations = [tuple((shift + colour) % COLOURS for colour in range(COLOURS)) for shift in range(COLOURS)]
        others = [order for order in permutations(range(COLOURS)) if order not in rotations]
        cards = np.arange(CARDS).reshape(COLOURS, RANKS)
        chosen = [cards[list(order)].reshape(-1) for order in [*rotations, *others][:count]]
        planes = [np.concatenate([plane * CARDS + order for plane in range(PLANES)]) for order in chosen]
        positions = [_with_rest(order, FEATURES if version == 1 else POSITION) for order in planes]
        if version == 2:
            rows = [_with_rest(order, ACTIONS) for order in chosen]
            candidates = [(POSITION + row[:, None] * CANDIDATE + np.arange(CANDIDATE)).reshape(-1) for row in rows]
            positions = [np.concatenate(both) for both in zip(positions, candidates, strict=True)]
        self.features = np.stack(positions)
        """(count, size): feature j after permutation s is feature ``features[s, j]`` before."""
        self.actions = np.stack([_with_rest(np.argsort(order), ACTIONS) for order in chosen])
        """(count, 58): action a before permutation s is action ``actions[s, a]`` after."""

    def rename(self, observations: FloatArray) -> FloatArray:
        """Observations (n, size) → all their permutations (n · count, size)."""
        return observations[:, self.features].reshape(-1, observations.shape[1])

    def name_back(self, over_actions: FloatArray) -> FloatArray:
        """Numbers over permuted actions (n · count, 58) → over the original actions (n, count, 58)."""
        return np.take_along_axis(over_actions.reshape(-1, *self.actions.shape), self.actions[None], axis=2)


def _with_rest(order: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    return np.concatenate([order, np.arange(len(order), size)])
