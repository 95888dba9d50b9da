"""What the network sees: native encoder blocks of mahjong, with every row that is all ones or zeros as one number.

``state`` (5560,), in this order:

- tile sets, and the tiles drawn and to claim (13 planes of ``tiles``)
- seat, winds, dealer, phase and actor (5 planes of rows), then ``integers``
- of ``look_ahead_3`` the recommended discard and the discards in reach (2 planes), the rows of shapes and fans (46)
- ``order``: the last 24 discards of each seat

``prospects`` (193, 42), for every legal action, 0 elsewhere:

- the numbers of block ``appraisal`` that do not compare it with the best one (16)
- what kind of move it is (8)
- how its tile and the tiles beside it lie (18: ``tile_context``)

Both come from a ``View``. The hidden tiles are encoded in ``oracle``, which takes a ``State``.

Versions 1 and 2 of the encoding lack ``order``. Their ``prospects`` (193, 20) have all 18 numbers of the block
``prospect`` or ``appraisal``. The other two say whether the look-ahead recommends the action, and the logarithm of its
value against the best, from 0 down to -1 for e⁻⁵. So they contained the planner's answer.
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
VALUE = 17
"""Index of the value against the best in ``prospect`` and ``appraisal``."""
OWN_NUMBERS = np.array([i for i in range(18) if i not in (1, VALUE)])
"""Those that do not compare the action with the best one."""
_SCALE = np.ones(len(OWN_NUMBERS), np.float32)
_SCALE[0] = 6.0
"""The first number is log(1 + worth) itself, without its native divisor: small differences decide."""
FARTHEST = 5.0
KINDS = 34
_NUMBERS = np.arange(1, KINDS + 1, dtype=np.float32)
TILE_PLANES, ROW_PLANES, INTEGER_PLANES = 13, 5, 13
MATRIX_PLANES, LOOK_AHEAD_PLANES = 2, 48
PLANE = 4 * KINDS
PLAIN = TILE_PLANES * PLANE + 4 * (ROW_PLANES + INTEGER_PLANES)
"""Numbers of ``state`` before those of the look-ahead."""
ORDER_START = PLAIN + MATRIX_PLANES * PLANE + 4 * (LOOK_AHEAD_PLANES - MATRIX_PLANES)
"""Numbers of ``state`` before the sequences; all of them in versions 1 and 2."""
SEQUENCES, SEQUENCE = 4, 24
"""Seats, and the discards of each of them that are encoded."""
STATE = ORDER_START + SEQUENCES * SEQUENCE * KINDS
DEPTH = 3
"""Own draws that the look-ahead planes reach."""
MOVES = 8
CONTEXT = 18
PROSPECT = len(OWN_NUMBERS) + MOVES + CONTEXT
OLD_PROSPECT = 20
"""Numbers of each action in versions 1 and 2."""
ROWS = 16
"""More than the legal actions of any position. A seat that drew has at most 14 discards and a win: each kong takes the
place of a discard. A claim has at most 7: pass, win, three chows, pung and kong."""
PACKED_STATE = ORDER_START + SEQUENCES * SEQUENCE
"""A state as training keeps it: of each discard in the sequences the tile's number plus 1, with 0 for none."""
PACKED = ROWS * (PROSPECT + 1)
"""Prospects as training keeps them: those of the legal actions, then the actions' numbers plus 1, with 0 for none."""
CHUNK = 64
"""Positions encoded at a time, which stay in the cache."""
VERSION = 3
"""Version of this encoding and of the blocks that it is made of."""
PROSPECTS = {1: "prospect", 2: "appraisal", 3: "appraisal"}
"""The block of ``prospects`` by version. Networks of every version play; the last is trained."""
REWARD_SCALE = 1 / 24
"""Reward per point of the score. A hand is won or lost by some tens of points."""
BLOCKS = {"tiles": 1, "integers": 1, "order": 1, f"look_ahead_{DEPTH}": 1, **dict.fromkeys(PROSPECTS.values(), 1)}
NO_TILE = KINDS


def _parts_of_actions() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Move (193,) in the order of the block ``action``, and tile (193,), of a chow the middle one, of each action."""
    chows = [9 * suit + middle for suit in range(3) for middle in range(1, 8)]
    groups = [(NO_TILE,), (NO_TILE,), range(KINDS), chows, *[range(KINDS)] * 4]
    moves = np.repeat(np.arange(MOVES), [len(group) for group in groups])
    return moves, np.concatenate([np.array(group, np.int64) for group in groups])


def _neighbours() -> npt.NDArray[np.int64]:
    """The tiles (35, 5) from two below to two above each in its suit; ``NO_TILE`` where there is none."""
    out = np.full((KINDS + 1, 5), NO_TILE)
    for tile in range(KINDS):
        for step in range(-2, 3):
            if step == 0 or (tile < 27 and 0 <= tile % 9 + step < 9):
                out[tile, step + 2] = tile + step
    return out


MOVE_OF, TILE_OF = _parts_of_actions()
NEIGHBOURS = _neighbours()
OWN_HAND, UNSEEN = 0, 10
OPPONENTS = np.array([2, 3, 4, 6, 7, 8])
"""Planes of ``tiles``: melds and discards of the other seats, from the next on."""


def supports(game: Game) -> bool:
    """Whether the game's blocks are those that the models here were made for."""
    return game.name == "mahjong" and all(game.blocks[name].version == version for name, version in BLOCKS.items())


def encode(
    views: Sequence[View], legal: Sequence[ActionArray], version: int = VERSION
) -> tuple[FloatArray, FloatArray]:
    """States (n, 5560) and prospects (n, 193, 42) of seats that are asked; prospects of illegal actions are 0.

    (n, 2296) and (n, 193, 20) in versions 1 and 2.
    """
    last = version == VERSION
    states = np.empty((len(views), STATE if last else ORDER_START), np.float32)
    prospects = np.zeros((len(views), ACTIONS, PROSPECT if last else OLD_PROSPECT), np.float32)
    for part in _chunks(len(views)):
        tiles = _encode_positions(views[part], states[part, :ORDER_START])
        if last:
            for view, state in zip(views[part], states[part], strict=True):
                view.encode("order", state[ORDER_START:].reshape(SEQUENCES, SEQUENCE, KINDS))
        at = _positions(legal[part]), np.concatenate(legal[part])
        prospects[part][at] = _prospects(views[part], legal[part], tiles, version)
    return states, prospects


def encode_packed_into(
    views: Sequence[View], legal: Sequence[ActionArray], states: FloatArray, packed: FloatArray
) -> None:
    """As ``encode``, into arrays of the caller's, packed: states (n, 2392) and prospects (n, 688), a fifth of the size.

    Raises ValueError if a position has more than 16 legal actions.
    """
    packed[:] = 0.0
    split = ROWS * PROSPECT
    for part in _chunks(len(views)):
        tiles = _encode_positions(views[part], states[part, :ORDER_START])
        sequences = np.stack([view.encode("order") for view in views[part]])
        states[part, ORDER_START:] = sequences.reshape(len(tiles), -1, KINDS) @ _NUMBERS
        sizes = [len(of) for of in legal[part]]
        if max(sizes) > ROWS:
            raise ValueError(f"a position has {max(sizes)} legal actions; packed prospects hold at most {ROWS}")
        at = _positions(legal[part]), np.concatenate([np.arange(size) for size in sizes])
        rows = packed[part, :split].reshape(-1, ROWS, PROSPECT)
        rows[at] = _prospects(views[part], legal[part], tiles, VERSION)
        packed[part, split:][at] = np.concatenate(legal[part]) + 1


def _chunks(n: int) -> list[slice]:
    return [slice(first, first + CHUNK) for first in range(0, n, CHUNK)]


def _positions(legal: Sequence[ActionArray]) -> npt.NDArray[np.int64]:
    """The position that each of all legal actions belongs to."""
    return np.repeat(np.arange(len(legal)), [len(of) for of in legal])


def _encode_positions(views: Sequence[View], out: FloatArray) -> FloatArray:
    """Write what states have before the sequences (n, 2296). Returns the block ``tiles``."""
    n = len(views)
    tiles = np.empty((n, TILE_PLANES + ROW_PLANES, 4, KINDS), np.float32)
    integers = np.empty((n, INTEGER_PLANES, 4, KINDS), np.float32)
    ahead = np.empty((n, LOOK_AHEAD_PLANES, 4, KINDS), np.float32)
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
    return tiles


def _prospects(views: Sequence[View], legal: Sequence[ActionArray], tiles: FloatArray, version: int) -> FloatArray:
    """Of all legal actions of one view after another: (sum of their numbers, 42, or 20 in versions 1 and 2)."""
    block = PROSPECTS[version]
    given = np.concatenate([view.encode_actions(block, of) for view, of in zip(views, legal, strict=True)])
    if version < VERSION:
        value = given[:, VALUE, None]
        behind = np.log(np.maximum(value, np.exp(-FARTHEST))) / FARTHEST
        return np.concatenate((given, value >= 1.0, behind), axis=1)
    actions = np.concatenate(legal)
    moves = np.eye(MOVES, dtype=np.float32)[MOVE_OF[actions]]
    own = given[:, OWN_NUMBERS] * _SCALE
    return np.concatenate((own, moves, tile_context(tiles, _positions(legal), actions)), axis=1)


def tile_context(tiles: FloatArray, position: npt.NDArray[np.int64], actions: ActionArray) -> FloatArray:
    """How the tiles of ``actions`` (m,) lie in the positions with these blocks ``tiles`` (n, 18, 4, 34): (m, 18).

    Copies in the own hand and unseen, each from two below the tile to two above it; melds and discards of the others
    that hold the tile; all divided by 4. Then whether it is a terminal, and whether it is an honour.
    """
    counts = np.zeros((len(tiles), TILE_PLANES, KINDS + 1), np.float32)
    counts[:, :, :KINDS] = tiles[:, :TILE_PLANES].sum(axis=2) / 4.0
    tile = TILE_OF[actions]
    beside, at = NEIGHBOURS[tile], position[:, None]
    terminal = (tile < 27) & np.isin(tile % 9, (0, 8))
    honour = (tile >= 27) & (tile < KINDS)
    parts = (
        counts[at, OWN_HAND, beside],
        counts[at, UNSEEN, beside],
        counts[at, OPPONENTS, tile[:, None]],
        np.stack((terminal, honour), axis=1),
    )
    return np.concatenate(parts, axis=1).astype(np.float32, copy=False)


def choices(views: Sequence[View], legal: Sequence[ActionArray]) -> list[ActionArray]:
    """The legal actions among which the policy chooses: only the win where one of enough points is legal.

    A false win, which some rules let a seat declare, is an action like any other.
    """
    return [_WIN if WIN in of and wins(view) else of for view, of in zip(views, legal, strict=True)]


def wins(view: View) -> bool:
    """Whether a win that is legal reaches the minimum of points."""
    return not view.game.rules["false_win"] or mahjong.rule_choice(view, simple=True)[0] == WIN
