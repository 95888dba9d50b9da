"""The inputs of the networks: native encoder blocks of Dou Dizhu, all zeros and ones.

A position is the block ``compact``: card vectors of what the seat knows, hand counts, bombs, its role and the calls.
With ``positions = "history"`` there are also the blocks ``passed`` and ``recent_moves``, which hint at what others do
not hold. A move is the block ``move_cards``. With ``features = "analysis"`` there is also the block ``move_analysis``:
the hand after the move, and the rule player's preference. ``bothost.rules.game("doudizhu").blocks[name].doc`` describes
each cell. Training reads the same blocks through ``VecEnv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, FloatArray, Game, VecEnv, View

STATE = {"compact": (584,), "passed": (82,), "recent_moves": (15, 54)}
"""The blocks of a position with their shapes, in order."""
CARDS, ANALYSIS = "move_cards", "move_analysis"
"""The blocks of a move."""
VERSION = 1
"""The supported version of these blocks."""
Positions = Literal["now", "history"]
Features = Literal["cards", "analysis"]

NOW, INPUTS = 584, 1476
"""Number of cells of a position: of the block ``compact``, and of all blocks."""
CARD_FEATURES, FEATURES = 60, 202
"""Number of cells of a move: of its cards, and of all blocks."""
PLAYS_LEFT, KINDS, RANKS, LENGTHS = slice(114, 125), slice(146, 164), slice(164, 179), slice(179, 191)
"""Cells of a move: how many plays empty the hand after it, its kind, its lowest rank, and its length."""
UNBEATABLE = 191
"""The cell of a move that is 1 if no enemy can beat it."""
BEHIND = slice(192, 200)
"""Cells of a move that encode how much the rule player prefers another one."""
CHOICE = FEATURES - 1
"""The cell of a move that is 1 for the rule player's choice."""
FIRST_ROLE = 9 * 54 + 3 * 20 + 15
"""The cell of a position that is 1 for the landlord. Those of the other roles follow."""
ROLES = ("landlord", "next", "previous", "bidder")
"""The landlord, the peasant after and the peasant before the landlord, and any seat that calls. Each has a network."""

IntArray = npt.NDArray[np.int64]


class Candidates(NamedTuple):
    """Positions with all their legal moves."""

    positions: FloatArray
    """(n, 584), or (n, 1476) with history."""
    moves: FloatArray
    """(m, 202), or (m, 60) without analysis."""
    offsets: IntArray
    """(n + 1,): position i has the moves ``offsets[i]`` to ``offsets[i + 1]``."""


def supports(game: Game) -> bool:
    """Whether the game has the blocks in the supported version."""
    blocks = game.blocks
    return all(name in blocks and blocks[name].version == VERSION for name in (*STATE, CARDS, ANALYSIS))


class Seen(NamedTuple):
    """The number of first cells of a position and of a move that are a network's inputs."""

    position: int
    move: int


SEEN = frozenset(Seen(*cells) for cells in product((NOW, INPUTS), (CARD_FEATURES, FEATURES)))
"""All possible inputs of networks."""


def seen(positions: Positions, features: Features) -> Seen:
    """The inputs of a network with these options."""
    return Seen(NOW if positions == "now" else INPUTS, CARD_FEATURES if features == "cards" else FEATURES)


def state_blocks(inputs: int) -> list[str]:
    """The blocks of positions with this many cells."""
    return [*STATE] if inputs > NOW else ["compact"]


def encode(views: Sequence[View], legal: Sequence[ActionArray], inputs: int = INPUTS) -> Candidates:
    """Encode the positions of asked seats with ``inputs`` cells, and all their legal moves."""
    offsets = np.cumsum([0, *map(len, legal)])
    positions, moves = np.empty((len(views), inputs), np.float32), np.empty((offsets[-1], FEATURES), np.float32)
    for i, (view, actions) in enumerate(zip(views, legal, strict=True)):
        np.concatenate([view.encode(block).ravel() for block in state_blocks(inputs)], out=positions[i])
        part = moves[offsets[i] : offsets[i + 1]]
        part[:, :CARD_FEATURES] = view.encode_actions(CARDS, actions)
        part[:, CARD_FEATURES:] = view.encode_actions(ANALYSIS, actions)
    return Candidates(positions, moves, offsets)


def encode_rows(env: VecEnv, rows: IntArray, *, analysis: bool, inputs: int = INPUTS) -> Candidates:
    """Encode the positions of some environments with ``inputs`` cells. Without ``analysis``, moves only have their
    cards (m, 60)."""
    counts = env.legal_offsets[rows + 1] - env.legal_offsets[rows]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    parts = []
    for block in state_blocks(inputs):
        parts.append(np.empty((len(rows), *STATE[block]), np.float32))
        env.encode(block, parts[-1], rows)
    positions = np.concatenate([part.reshape(len(rows), -1) for part in parts], axis=1)
    cards = np.empty((offsets[-1], CARD_FEATURES), np.float32)
    env.encode_actions(CARDS, cards, rows)
    if not analysis:
        return Candidates(positions, cards, offsets)
    thought = np.empty((offsets[-1], FEATURES - CARD_FEATURES), np.float32)
    env.encode_actions(ANALYSIS, thought, rows)
    return Candidates(positions, np.concatenate([cards, thought], axis=1), offsets)


def roles(positions: FloatArray) -> IntArray:
    """Indices (n,) into ``ROLES`` of the seats that are asked."""
    found: IntArray = positions[:, FIRST_ROLE : FIRST_ROLE + len(ROLES)].argmax(axis=1)
    return found
