"""Four-colour pairing beyond the common contract: its native rule player, and playouts by it."""

from __future__ import annotations

from bothost.native import _native, native_view
from bothost.rules.game import ActionArray, FloatArray, View

__all__ = ["rule_choice", "rule_returns"]


def rule_choice(
    view: View, *, deny: float = 0.6, keep: float = 0.8, promise: float = 0.35, force_from: float = 16.0
) -> tuple[int, str]:
    """Action of the native rule player, and its reason in words; deterministic, about a microsecond.

    The weights are in points of the game. ``deny``: of a pool card's worth to the opponent. ``keep``: of the hand
    card's worth. ``promise``: of a set's bonus, times the square of its completed share. ``force_from``: worth of a
    pair of any colours from which skill B is used; infinity: never for its worth. Raises ValueError if the seat is not
    asked or another weight is not within -1,000 and 1,000, TypeError for a view of another game.
    """
    return _native.pairing_rule_choice(native_view(view, "pairing"), deny, keep, promise, force_from)


def rule_returns(view: View, *, deals: int, seed: int, actions: ActionArray | None = None) -> FloatArray:
    """Roll out ``actions`` with the rule player for both seats, in states sampled from the view.

    Default: every legal action.

    Returns float32 (deals, actions): the seat's final lead in points. All actions of a row share the hidden cards,
    which reduces the variance of their differences. A column does not depend on which other actions are asked for.
    A value takes a few microseconds; releases the GIL.
    Raises ValueError if the seat is not asked, or if ``deals`` is not within 1 and 100,000. Raises it also if
    ``actions`` is empty, or has an illegal action or one twice. Raises TypeError for a view of another game.
    """
    return _native.pairing_rule_returns(native_view(view, "pairing"), deals, seed, actions)
