"""Every player's decisions of a hand, rebuilt from the events of one seat once the hidden was revealed.

This is where the data of opponents comes from: what they could see, what they might have done, what they did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from bothost.rules.game import ActionArray, Game, View


class Move(msgspec.Struct, frozen=True):
    """One decision of any player."""

    seat: int
    view: View
    """What the player knew when asked; the consumer's own copy."""
    legal: ActionArray
    action: int


def moves_of(game: Game, seat: int, events: Sequence[str], *, of: Collection[int] | None = None) -> Iterator[Move]:
    """The moves of all seats, in the order in which they took effect, of a hand whose reveal ``seat`` has seen.

    ``of``: only the moves of these seats.

    Nothing where the hand was not revealed (it was aborted, or this lobby shows no hands). Raises ValueError for events
    that the game does not know.
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
