"""What the network sees: native encoder blocks of mahjong, with every row that is all ones or zeros as one number.

``state`` (2296,): tile sets and the tiles drawn and to claim (13 planes of ``tiles``), seat, winds, dealer, phase and
actor (5 planes of rows), ``integers``, and of ``look_ahead_3`` the recommended discard and the discards in reach (2
planes) and the rows of shapes and fans (46 planes). ``prospects`` (193, 20): block ``prospect`` of every legal action
(18), whether the look-ahead recommends it, and the logarithm of its value against the best, from 0 down to -1 for e⁻⁵;
0 elsewhere. Both come from a ``View``. The hidden tiles are encoded in ``oracle``, which takes a ``State``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, FloatArray, Game, View

ACTIONS = 193
NATIVE_PROSPECT = 18
VALUE = 17
"""Index of the value against the best in ``prospect``."""
PROSPECT = NATIVE_PROSPECT + 2
FARTHEST = 5.0
TILE_PLANES, ROW_PLANES, INTEGER_PLANES = 13, 5, 13
MATRIX_PLANES, LOOK_AHEAD_PLANES = 2, 48
PLANE = 4 * 34
PLAIN = TILE_PLANES * PLANE + 4 * (ROW_PLANES + INTEGER_PLANES)
"""Numbers of ``state`` before those of the look-ahead."""
STATE = PLAIN + MATRIX_PLANES * PLANE + 4 * (LOOK_AHEAD_PLANES - MATRIX_PLANES)
DEPTH = 3
"""Own draws that the look-ahead planes reach."""
VERSION = 1
"""Version of this encoding and of the blocks that it is made of."""
BLOCKS = {"tiles": 1, "integers": 1, f"look_ahead_{DEPTH}": 1, "prospect": 1}


def supports(game: Game) -> bool:
    """Whether the game's blocks are those that the models here were made for."""
    return game.name == "mahjong" and all(game.blocks[name].version == version for name, version in BLOCKS.items())


def encode_state(view: View, out: FloatArray) -> None:
    """The numbers (2296,) of a seat that is asked."""
    tiles, integers = view.encode("tiles"), view.encode("integers")
    ahead = view.encode(f"look_ahead_{DEPTH}")
    parts = (
        tiles[:TILE_PLANES].reshape(-1),
        tiles[TILE_PLANES:, :, 0].reshape(-1),
        integers[:, :, 0].reshape(-1),
        ahead[:MATRIX_PLANES].reshape(-1),
        ahead[MATRIX_PLANES:, :, 0].reshape(-1),
    )
    np.concatenate(parts, out=out)


def encode_prospects(view: View, legal: ActionArray, out: FloatArray) -> None:
    """Into ``out`` (193, 20) what the legal actions lead to; the other rows become 0."""
    out[:] = 0.0
    given = view.encode_actions("prospect", legal)
    value = given[:, VALUE]
    out[legal, :NATIVE_PROSPECT] = given
    out[legal, NATIVE_PROSPECT] = value >= 1.0
    out[legal, NATIVE_PROSPECT + 1] = np.log(np.maximum(value, np.exp(-FARTHEST))) / FARTHEST


def encode(views: Sequence[View], legal: Sequence[ActionArray]) -> tuple[FloatArray, FloatArray]:
    """States (n, 2296) and prospects (n, 193, 20)."""
    states = np.empty((len(views), STATE), np.float32)
    prospects = np.empty((len(views), ACTIONS, PROSPECT), np.float32)
    for row, of_actions, view, actions in zip(states, prospects, views, legal, strict=True):
        encode_state(view, row)
        encode_prospects(view, actions, of_actions)
    return states, prospects


def masks(legal: Sequence[ActionArray]) -> npt.NDArray[np.bool_]:
    """Legal actions (n, 193)."""
    out = np.zeros((len(legal), ACTIONS), np.bool_)
    for row, actions in zip(out, legal, strict=True):
        row[actions] = True
    return out
