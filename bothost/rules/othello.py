"""Othello beyond the common contract: its native alpha-beta player."""

from __future__ import annotations

from dataclasses import dataclass

from bothost.rules import _native
from bothost.rules._native import othello_perft as perft
from bothost.rules.game import View

__all__ = ["Found", "choose", "perft"]


@dataclass(frozen=True)
class Found:
    """What the search found for the seat that is asked."""

    action: int
    score: float
    """Discs ahead at the end when ``exact``, else a judgement on about the same scale."""
    depth: int
    """Plies looked ahead."""
    exact: bool
    """Whether the game was solved: no play gets a better difference of discs against the best defence."""
    nodes: int


def choose(view: View, *, depth: int = 6, solve_from: int = 12, nodes: int = 120_000) -> Found:
    """The best action by alpha-beta over mobility, corners, edges and frontier; deterministic.

    It deepens to ``depth`` plies, and solves the game from ``solve_from`` empty squares on. ``nodes`` bounds the time
    on any machine, at five to ten million a second; what was found until then stands. Releases the GIL. Raises
    ValueError unless the view's seat is asked, TypeError for another game's view.
    """
    if not isinstance(view, _native.View):
        raise TypeError("the view is not one of Othello")
    return Found(*_native.othello_choose(view, depth, solve_from, nodes))
