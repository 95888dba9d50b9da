"""The inputs of the network: the native encoder blocks ``planes`` and ``move_plane``, 29 planes of 15 x 15.

An input is one position with one candidate move. x are the ranks 3456789TJQKA2BR. In each plane:

====== ======================================================================================================
y      what
====== ======================================================================================================
0-3    the count of rank x in one-hot: row c - 1 for c cards, none for 0
4-13   the type of the plane's move, over all x: single, pair, three, three + 1, three + 2, sequence of singles,
       of pairs, of threes, bomb, rocket. Planes with wings and space shuttles count as a sequence of threes, four
       with two solos as three + 1, four with two pairs as three + 2; a pass has no type
14     over all x: the plane's move is the landlord's
====== ======================================================================================================

====== ======================================================================================================
plane  what
====== ======================================================================================================
0      own hand
1      unseen cards: what the other two hold (and, while bidding, the bottom)
2      the candidate move, alone in ``move_plane``; empty in ``planes``
3-5    cards played so far by self, next and previous
6      the move to beat; empty for a lead
7      the bottom cards, once they are shown
8-10   hand counts of self, next and previous: n cards set the first n cells, row by row
11-28  the last 18 moves, newest first
====== ======================================================================================================

Only planes 2, 6 and 11-28 use the rows 4-14. The network takes each position once, the planes of all candidates, and
the index of each candidate's position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, FloatArray, Game, View

POSITION, MOVE = "planes", "move_plane"
"""The blocks."""
PLANES, SIDE = 29, 15
VERSION = 1
"""The supported version of both blocks."""


class Inputs(NamedTuple):
    """Candidate moves of some positions. The fields are the inputs of the ONNX graph."""

    planes: FloatArray
    """Shape (positions, 29, 15, 15), plane 2 empty."""
    moves: FloatArray
    """Shape (candidates, 1, 15, 15)."""
    owner: npt.NDArray[np.int64]
    """Shape (candidates,): the index of each candidate's position."""


def supports(game: Game) -> bool:
    """Whether the game has the blocks in the supported version."""
    blocks = game.blocks
    return all(name in blocks and blocks[name].version == VERSION for name in (POSITION, MOVE))


def encode(views: Sequence[View], moves: Sequence[ActionArray]) -> Inputs:
    """Encode the positions of asked seats, with candidate moves of each."""
    counts = [len(actions) for actions in moves]
    planes = np.empty((len(views), PLANES, SIDE, SIDE), np.float32)
    candidates = np.empty((sum(counts), 1, SIDE, SIDE), np.float32)
    end = 0
    for plane, view, actions in zip(planes, views, moves, strict=True):
        view.encode(POSITION, plane)
        begin, end = end, end + len(actions)
        if len(actions):
            view.encode_actions(MOVE, actions, candidates[begin:end, 0])
    return Inputs(planes, candidates, np.repeat(np.arange(len(views)), counts))


ROLES = ("landlord", "next", "previous")
"""The landlord, the peasant after and the peasant before the landlord. Each has a network."""
_COMPACT, _FIRST_ROLE = "compact", 9 * 54 + 3 * 20 + 15
"""The block with the seat's role, and its cell that is 1 for the landlord. Those of the other roles follow."""


def roles(views: Sequence[View]) -> npt.NDArray[np.int64]:
    """The index into ``ROLES`` of each view's seat."""
    cells = np.stack([view.encode(_COMPACT)[_FIRST_ROLE : _FIRST_ROLE + len(ROLES)] for view in views])
    found: npt.NDArray[np.int64] = cells.argmax(axis=1)
    return found
