"""Othello beyond the common contract: its native alpha-beta player."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.native import _native, native_view
from bothost.rules.game import Rows, View

__all__ = ["NUM_AFTERSTATE_FEATURES", "WEIGHTS", "SearchResult", "afterstates", "choose", "judge", "judgements"]

WEIGHTS = {
    "mobility": 900,
    "frontier": 500,
    "corners": 800,
    "stability": 250,
    "danger": 350,
    "edges": 0,
    "greed": 0,
}
"""The native player's weights, in hundredths of a disc. See ``native/games/othello/search.h``."""


NUM_AFTERSTATE_FEATURES = 217
"""Features of ``afterstates``: for each square a1, b1 … h8, whether the mover sees it as own, enemy or empty; then the
number of the other side's replies, 0 … 24 and more."""


def afterstates(features: Rows, moves: Rows) -> Rows:
    """Features of the boards that moves lead to, a row for each move of each position.

    ``features``: for each position, the set features of the block ``squares``. ``moves``: for each position, squares
    0 … 63, and 64 for the pass. Raises ValueError for invalid rows.
    """
    return _native.othello_afterstates(features, moves)


@dataclass(frozen=True)
class SearchResult:
    """The result of a search for the seat that is asked."""

    action: int
    score: float
    """Disc difference at the end if ``exact``, otherwise an estimate on about the same scale."""
    depth: int
    """Plies looked ahead."""
    exact: bool
    """Whether the game is solved: no other move gives a higher disc difference against the best defence."""
    nodes: int


def choose(view: View, *, depth: int = 6, solve_from: int = 12, nodes: int = 120_000) -> SearchResult:
    """The best action by alpha-beta over mobility, corners, edges and frontier; deterministic.

    Iterative deepening to ``depth`` plies; it solves the game with at most ``solve_from`` empty squares. ``nodes``
    limits the search (five to ten million nodes take a second); the best result so far is then returned. Releases the
    GIL. Raises ValueError if the view's seat is not asked, TypeError for a view of another game.
    """
    return SearchResult(*_native.othello_choose(native_view(view, "Othello"), depth, solve_from, nodes))


def judge(
    view: View,
    *,
    depth: int = 2,
    solve_from: int = 6,
    nodes: int = 20_000,
    weights: Mapping[str, int] | None = None,
) -> dict[int, float]:
    """Estimate the disc difference after each action by a search of ``depth`` plies. Returns action → estimate.

    ``weights`` override ``WEIGHTS``. Exact with at most ``solve_from`` empty squares; empty if only a pass is legal.
    Deterministic; releases the GIL. Raises as ``choose`` does, and ValueError for an unknown weight.
    """
    return dict(_native.othello_judge(native_view(view, "Othello"), depth, solve_from, nodes, dict(weights or {})))


def judgements(
    features: Rows,
    moves: Rows,
    *,
    depth: int = 2,
    solve_from: int = 6,
    nodes: int = 20_000,
    weights: Mapping[str, int] | None = None,
) -> npt.NDArray[np.float32]:
    """As ``judge``, for many positions: float32, shape (moves,), one position's moves after another; 0 for a pass.

    ``features`` and ``moves`` are those of ``afterstates``. Raises ValueError for invalid rows and unknown weights.
    """
    return _native.othello_judgements(features, moves, depth, solve_from, nodes, dict(weights or {}))
