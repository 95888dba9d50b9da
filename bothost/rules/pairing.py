"""Four-colour pairing beyond the common contract: its native rule player, and playouts by it."""

from __future__ import annotations

from bothost.native import _native
from bothost.rules.game import FloatArray, View

__all__ = ["rule_choice", "rule_returns"]


def rule_choice(
    view: View, *, deny: float = 0.6, keep: float = 0.8, promise: float = 0.35, force_from: float = 16.0
) -> tuple[int, str]:
    """Action of the native rule player, and its reason in words; deterministic, about a microsecond.

    The weights are in points of the game: ``deny`` of what a pool card would be worth to the opponent, ``keep`` of what
    the hand card is worth, ``promise`` of a set's bonus, times the square of how far it is complete; a pair of any
    colours that is worth ``force_from`` deserves skill B. Raises ValueError where the seat is not asked, TypeError for
    a view of another game.
    """
    if not isinstance(view, _native.View):
        raise TypeError("the view is not one of pairing")
    return _native.pairing_rule_choice(view, deny, keep, promise, force_from)


def rule_returns(view: View, *, deals: int, seed: int) -> FloatArray:
    """What each legal action comes to if the rule player goes on for both seats, in states sampled from the view.

    Returns float32 (deals, legal actions): row by row, the lead in points with which the view's seat ends the hand.
    All actions of a row meet the same hidden cards, so differences within it vary less than its numbers. Some
    microseconds a number; releases the GIL. Raises ValueError where the seat is not asked or ``deals`` is not within
    1 and 100,000, TypeError for a view of another game.
    """
    if not isinstance(view, _native.View):
        raise TypeError("the view is not one of pairing")
    return _native.pairing_rule_returns(view, deals, seed)
