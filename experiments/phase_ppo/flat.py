"""Four-colour pairing with one flat space of composite actions: what the decision phases are compared with.

A composite action is a whole phase at once: "enter ``pairing``, the green seven, the green nine" is one of 3,588
actions, each an output of its own on the same trunk. It is legal if its phase can be entered and its cards are where
that phase takes them. Tests check that selecting them one by one is then legal, too. 104 of the actions name one card
twice and are never legal; they keep the layout a product.

========== ================ ==================================
phase      first action     actions
========== ================ ==================================
A          0                52: hand card
B          52               52 × 52: hand card, pool card
discard 1  2756             52: hand card
discard 2  2808             52: hand card
pairing    2860             4 × 13 × 13: colour, ranks of both
final      3536             52: hand card
========== ================ ==================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, Block, FloatArray, Game, VecEnv, game, vec_env
from bothost_phase_ppo.encode import CARDS, COLOURS, RANKS

COMPOSITES = 4 * CARDS + CARDS * CARDS + CARDS * RANKS
ENTER = CARDS
"""The first of the six actions that enter a phase."""
NONE = -1

IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


def _steps() -> IntArray:
    """(3588, 3): the phase's actions of each composite, padded with ``NONE``."""
    cards = np.arange(CARDS)
    first, second = (part.reshape(-1) for part in np.meshgrid(cards, cards, indexing="ij"))
    same = first // RANKS == second // RANKS
    selections = [(cards, None), (first, second), (cards, None), (cards, None), (first[same], second[same])]
    rows = []
    for phase, (one, two) in enumerate([*selections, (cards, None)]):
        rows.append(
            np.stack([np.full(len(one), ENTER + phase), one, np.full(len(one), NONE) if two is None else two], 1)
        )
    return np.concatenate(rows).astype(np.int32)


STEPS = _steps()


def legal_composites(observations: FloatArray, phases: BoolArray) -> BoolArray:
    """Legal composites (n, 3588), given the phases (n, 6) that the seat may enter and its observations (n, 384)."""
    hand, pool = observations[:, :CARDS] > 0, observations[:, CARDS : 2 * CARDS] > 0
    open_to = phases[:, :, None] & hand[:, None]  # (n, 6, 52)
    pairs = open_to[:, 4].reshape(-1, COLOURS, RANKS, 1) & pool.reshape(-1, COLOURS, 1, RANKS)
    forced = open_to[:, 1, :, None] & pool[:, None, :]
    blocks = (open_to[:, 0], forced, open_to[:, 2], open_to[:, 3], pairs, open_to[:, 5])
    return np.concatenate([block.reshape(len(hand), -1) for block in blocks], axis=1)


class FlatPairing:
    """The part of the game that self-play needs, with composite actions in its batch environment."""

    num_actions = COMPOSITES
    name = "pairing-flat"

    def __init__(self) -> None:
        self.phased: Game = game("pairing")

    @property
    def blocks(self) -> Mapping[str, Block]:
        """Those of the game in phases."""
        return self.phased.blocks

    @property
    def rules(self) -> dict[str, Any]:
        """Those of the game in phases."""
        return dict(self.phased.rules)

    def vec_env(self, n: int, seed: int) -> FlatVecEnv:
        """``n`` hands; environment i plays the deals that it plays in phases, too."""
        return FlatVecEnv(vec_env(self.phased, n, seed))


class FlatVecEnv:
    """A batch of hands in phases that asks only the decisions in *init*; see ``bothost.rules.VecEnv``."""

    def __init__(self, phased: VecEnv) -> None:
        self._phased = phased
        self.n = phased.n
        self.done = np.zeros(self.n, np.bool_)
        self.returns = np.zeros((self.n, 2), np.float32)
        self._observations = np.empty((self.n, phased.game.blocks["features"].shape[0]), np.float32)
        self._phases = np.empty((self.n, phased.game.num_actions), np.bool_)

    @property
    def seat(self) -> npt.NDArray[np.int8]:
        """(n,): the seat that is asked."""
        return self._phased.seat

    def encode(self, block: str, out: FloatArray) -> None:
        """A view block of the seats that are asked."""
        self._phased.encode(block, out)

    def legal_mask(self, out: BoolArray) -> None:
        """Legal composites (n, 3588)."""
        self._phased.encode("features", self._observations)
        self._phased.legal_mask(self._phases)
        out[:] = legal_composites(self._observations, self._phases[:, ENTER:])

    def step(self, actions: ActionArray) -> None:
        """Apply a composite action in every environment; -1 leaves one unchanged."""
        self.done[:] = False
        self.returns[:] = 0.0
        waits = actions < 0
        for step in STEPS[np.maximum(actions, 0)].T:
            self._phased.step(np.where(waits, NONE, step).astype(np.int32))
            self.done |= self._phased.done
            self.returns += self._phased.returns
