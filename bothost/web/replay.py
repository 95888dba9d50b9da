"""A logged hand as positions to step through: the views of all seats once they are revealed, else those of our seat."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bothost.rules.game import Game, Json, View
from bothost.store.hand_report import revealed
from bothost.store.reader import Timeline, iter_views
from bothost.web.drawn import drawn


class Position(msgspec.Struct, frozen=True):
    """Between two moves of a hand."""

    views: dict[int, Json]
    """Seat → its view. All seats, or ours alone."""
    seqs: dict[int, int]
    """Seat → events that it has received: a decision of that seat is made where its ``seq`` stands here."""
    mover: int | None = None
    """Who moved to get here; None at the start."""
    notation: str | None = None


def positions(game: Game, timeline: Timeline) -> list[Position]:
    """Every position of a hand in order. Raises StoreError where the log does not lead through it."""
    whole = revealed(game, timeline)
    if whole is not None:
        try:
            return list(_of_all_seats(game, *whole))
        except ValueError:
            pass  # a lobby whose rules differ in a detail: our own seat's views are still exact
    return list(_of_our_seat(game, timeline))


def _of_all_seats(game: Game, deal: Json, actions: list[tuple[int, int]]) -> Iterator[Position]:
    state = game.state_from_deal(deal)
    seats = range(game.num_seats)
    yield _position([state.view(seat) for seat in seats])
    for seat, action in actions:
        state.apply(seat, action)
        yield _position([state.view(seat) for seat in seats], seat, game.notation(action))


def _of_our_seat(game: Game, timeline: Timeline) -> Iterator[Position]:
    for decision, view in iter_views(game, timeline):
        if decision.role == "live":
            yield _position([view])


def _position(views: list[View], mover: int | None = None, notation: str | None = None) -> Position:
    return Position(
        {view.seat: drawn(view) for view in views}, {view.seat: view.seq for view in views}, mover, notation
    )
