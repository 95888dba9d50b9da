"""Luck adjustment: a hand's scores less what luck gave each seat (AIVAT).

The adjusted scores have the same mean as the plain ones and vary less. Source: Burch, Schmid, Moravčík, Morrill and
Bowling, "AIVAT: A New Variance Reduction Technique for Agent Evaluation in Imperfect Information Games", AAAI 2018.
"""

from __future__ import annotations

from collections.abc import Callable

from bothost.errors import UsageError
from bothost.rules import mahjong
from bothost.rules.game import Game, State

Luck = Callable[[State], tuple[float, ...]]
"""Points that luck gave each seat of a hand that is over; zero on average."""

_LUCK: dict[str, Luck] = {"mahjong": lambda state: tuple(mahjong.luck(state).tolist())}


def has_luck(game: str) -> bool:
    """Whether scores of the game can be adjusted."""
    return game in _LUCK


def luck_of(game: Game) -> Luck:
    """The luck of a game's hands. Raises UsageError for a game without luck adjustment, or one with flowers."""
    if game.name not in _LUCK:
        advice = f"it is done for {', '.join(_LUCK)}"
        raise UsageError(f"scores of {game.name} cannot be adjusted for luck", advice=advice)
    if game.rules.get("flowers"):
        advice = "leave out --luck-adjusted, or play with --rule flowers=false"
        raise UsageError(f"scores of {game.name} with flowers cannot be adjusted for luck", advice=advice)
    return _LUCK[game.name]
