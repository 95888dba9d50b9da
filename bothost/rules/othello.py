"""Othello beyond the common contract: its native alpha-beta player."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.native import _native
from bothost.rules.game import View

perft = _native.othello_perft

__all__ = ["NUM_AFTERSTATE_FEATURES", "WEIGHTS", "SearchResult", "afterstates", "choose", "judge", "perft"]

WEIGHTS = {
    "mobility": 900,
    "frontier": 500,
    "corners": 800,
    "stability": 250,
    "danger": 350,
    "edges": 0,
    "greed": 0,
}
"""What the native player judges positions by, in hundredths of a disc: see ``native/games/othello/search.h``."""


NUM_AFTERSTATE_FEATURES = 217
"""Of ``afterstates``: for each square a1, b1 … h8 own, enemy, empty, as the mover sees it; then the number of the other
side's replies, 0 … 24 and more."""


def afterstates(
    features: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]],
    moves: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Features of the boards that moves lead to, a row for each move of each position.

    Rows are (offsets, items): row n is ``items[offsets[n]:offsets[n + 1]]``. ``features``: of each position those of
    the block ``squares`` that are set; ``moves``: squares 0 … 63, and 64 for the pass. Raises ValueError for others.
    """
    return _native.othello_afterstates(*features, *moves)


@dataclass(frozen=True)
class SearchResult:
    """What the search found for the seat that is asked."""

    action: int
    score: float
    """Discs ahead at the end when ``exact``, else a judgement on about the same scale."""
    depth: int
    """Plies looked ahead."""
    exact: bool
    """Whether the game was solved: no play gets a better difference of discs against the best defence."""
    nodes: int


def choose(view: View, *, depth: int = 6, solve_from: int = 12, nodes: int = 120_000) -> SearchResult:
    """The best action by alpha-beta over mobility, corners, edges and frontier; deterministic.

    It deepens to ``depth`` plies, and solves the game from ``solve_from`` empty squares on. ``nodes`` bounds the time
    on any machine, at five to ten million a second; what was found until then stands. Releases the GIL. Raises
    ValueError unless the view's seat is asked, TypeError for another game's view.
    """
    return SearchResult(*_native.othello_choose(_native_view(view), depth, solve_from, nodes))


def judge(
    view: View,
    *,
    depth: int = 2,
    solve_from: int = 6,
    nodes: int = 20_000,
    weights: Mapping[str, int] | None = None,
) -> dict[int, float]:
    """Action → discs ahead, about: every action judged for itself, ``depth`` plies ahead, by ``WEIGHTS`` where
    ``weights`` does not name others. Exact from ``solve_from`` empty squares on; empty where only a pass is possible.

    Deterministic; releases the GIL. Raises as ``choose`` does, and ValueError for a weight that does not exist.
    """
    return dict(_native.othello_judge(_native_view(view), depth, solve_from, nodes, dict(weights or {})))


def _native_view(view: View) -> _native.View:
    if not isinstance(view, _native.View):
        raise TypeError("the view is not one of Othello")
    return view
