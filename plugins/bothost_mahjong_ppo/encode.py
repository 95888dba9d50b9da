"""What the network sees: native encoder blocks of mahjong, with every row that is all ones or zeros as one number.

``state`` (2296,): tile sets and the tiles drawn and to claim (13 planes of ``tiles``), seat, winds, dealer, phase and
actor (5 planes of rows), ``integers``, and of ``look_ahead_3`` the recommended discard and the discards in reach (2
planes) and the rows of shapes and fans (46 planes). ``prospects`` (193, 20): block ``appraisal`` of every legal action
(18), whether the look-ahead recommends it, and the logarithm of its value against the best, from 0 down to -1 for e⁻⁵;
0 elsewhere. Both come from a ``View``. The hidden tiles are encoded in ``oracle``, which takes a ``State``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, FloatArray, Game, View, mahjong

ACTIONS = 193
WIN = 1
"""The action that declares a win."""
_WIN = np.array([WIN])
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
ROWS = 16
"""More than the legal actions of any position. A seat that drew has at most 14 discards and a win: each kong takes the
place of a discard. A claim has at most 7: pass, win, three chows, pung and kong."""
PACKED = ROWS * (PROSPECT + 1)
"""Prospects as training keeps them: those of the legal actions, then the actions' numbers plus 1, with 0 for none."""
CHUNK = 64
"""Positions encoded at a time, which stay in the cache."""
VERSION = 2
"""Version of this encoding and of the blocks that it is made of."""
PROSPECTS = {1: "prospect", 2: "appraisal"}
"""The block of ``prospects`` by version: all else is the same in both. Networks of either version play; the last is
trained."""
REWARD_SCALE = 1 / 24
"""Reward per point of the score. A hand is won or lost by some tens of points."""
BLOCKS = {"tiles": 1, "integers": 1, f"look_ahead_{DEPTH}": 1, **dict.fromkeys(PROSPECTS.values(), 1)}


def supports(game: Game) -> bool:
    """Whether the game's blocks are those that the models here were made for."""
    return game.name == "mahjong" and all(game.blocks[name].version == version for name, version in BLOCKS.items())


def encode(
    views: Sequence[View], legal: Sequence[ActionArray], version: int = VERSION
) -> tuple[FloatArray, FloatArray]:
    """States (n, 2296) and prospects (n, 193, 20) of seats that are asked; prospects of illegal actions are 0."""
    states = np.empty((len(views), STATE), np.float32)
    prospects = np.empty((len(views), ACTIONS, PROSPECT), np.float32)
    encode_into(views, legal, states, prospects, version)
    return states, prospects


def encode_into(
    views: Sequence[View],
    legal: Sequence[ActionArray],
    states: FloatArray,
    prospects: FloatArray,
    version: int = VERSION,
) -> None:
    """As ``encode``, into arrays of the caller's."""
    for first in range(0, len(views), CHUNK):
        part = slice(first, first + CHUNK)
        _encode_states(views[part], states[part])
        _encode_prospects(views[part], legal[part], prospects[part], PROSPECTS[version])


def encode_packed_into(
    views: Sequence[View], legal: Sequence[ActionArray], states: FloatArray, packed: FloatArray
) -> None:
    """As ``encode_into``, with prospects packed (n, 336), a twelfth of the size.

    Raises ValueError if a position has more than 16 legal actions.
    """
    for first in range(0, len(views), CHUNK):
        part = slice(first, first + CHUNK)
        _encode_states(views[part], states[part])
        _pack_prospects(views[part], legal[part], packed[part])


def _encode_states(views: Sequence[View], out: FloatArray) -> None:
    n = len(views)
    tiles = np.empty((n, TILE_PLANES + ROW_PLANES, 4, 34), np.float32)
    integers = np.empty((n, INTEGER_PLANES, 4, 34), np.float32)
    ahead = np.empty((n, LOOK_AHEAD_PLANES, 4, 34), np.float32)
    for i, view in enumerate(views):
        view.encode("tiles", tiles[i])
        view.encode("integers", integers[i])
        view.encode(f"look_ahead_{DEPTH}", ahead[i])
    parts = (
        tiles[:, :TILE_PLANES],
        tiles[:, TILE_PLANES:, :, 0],
        integers[:, :, :, 0],
        ahead[:, :MATRIX_PLANES],
        ahead[:, MATRIX_PLANES:, :, 0],
    )
    np.concatenate([part.reshape(n, -1) for part in parts], axis=1, out=out)


def _encode_prospects(views: Sequence[View], legal: Sequence[ActionArray], out: FloatArray, block: str) -> None:
    out[:] = 0.0
    at = np.repeat(np.arange(len(views)), [len(of) for of in legal]), np.concatenate(legal)
    out[at] = _prospects(views, legal, block)


def _pack_prospects(views: Sequence[View], legal: Sequence[ActionArray], out: FloatArray) -> None:
    out[:] = 0.0
    sizes = [len(of) for of in legal]
    if max(sizes) > ROWS:
        raise ValueError(f"a position has {max(sizes)} legal actions; packed prospects hold at most {ROWS}")
    at = np.repeat(np.arange(len(views)), sizes), np.concatenate([np.arange(size) for size in sizes])
    split = ROWS * PROSPECT
    out[:, :split].reshape(-1, ROWS, PROSPECT)[at] = _prospects(views, legal, PROSPECTS[VERSION])
    out[:, split:][at] = np.concatenate(legal) + 1


def _prospects(views: Sequence[View], legal: Sequence[ActionArray], block: str) -> FloatArray:
    """Of all legal actions of one view after another: (sum of their numbers, 20)."""
    given = np.concatenate([view.encode_actions(block, of) for view, of in zip(views, legal, strict=True)])
    value = given[:, VALUE, None]
    behind = np.log(np.maximum(value, np.exp(-FARTHEST))) / FARTHEST
    return np.concatenate((given, value >= 1.0, behind), axis=1)


def choices(views: Sequence[View], legal: Sequence[ActionArray]) -> list[ActionArray]:
    """The legal actions among which the policy chooses: only the win where one of enough points is legal.

    A false win, which some rules let a seat declare, is an action like any other.
    """
    return [_WIN if WIN in of and wins(view) else of for view, of in zip(views, legal, strict=True)]


def wins(view: View) -> bool:
    """Whether a win that is legal reaches the minimum of points."""
    return not view.game.rules["false_win"] or mahjong.rule_choice(view, simple=True)[0] == WIN


def masks(legal: Sequence[ActionArray]) -> npt.NDArray[np.bool_]:
    """Legal actions (n, 193)."""
    out = np.zeros((len(legal), ACTIONS), np.bool_)
    for row, actions in zip(out, legal, strict=True):
        row[actions] = True
    return out
