"""Rebuild every player's decisions of a revealed hand from the events of one seat.

This yields the data of opponents: their views, legal actions and moves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from bothost.rules.game import ActionArray, Game, View


class Move(msgspec.Struct, frozen=True):
    """One decision of any player."""

    seat: int
    view: View
    """What the player knew before the move. The consumer's own copy."""
    legal: ActionArray
    action: int


def moves_of(game: Game, seat: int, events: Sequence[str], *, of: Collection[int] | None = None) -> Iterator[Move]:
    """Yield the moves of all seats in the order in which they took effect, from the ``events`` of one seat.

    ``of``: only the moves of these seats. Yields nothing if the hand was not revealed (it was aborted, or the lobby
    does not show hands). Raises ValueError for invalid events.
    """
    seen = game.new_view(seat)
    seen.observe_all(events)
    record = seen.record()
    if record is None:
        return
    deal, actions = record
    state = game.state_from_deal(deal)
    for actor, action in actions:
        if of is None or actor in of:
            view = state.view(actor)
            yield Move(actor, view, view.legal(), action)
        state.apply(actor, action)
