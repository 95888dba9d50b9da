"""The revealed hands of the log, each once, for formats whose unit is a hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from bothost.errors import StoreError
from bothost.rules.game import Game, Json
from bothost.store.logged_games import GameCache
from bothost.store.query import HandQuery
from bothost.store.reader import Timeline, iter_hands, iter_timelines_together
from bothost.store.store import Store


class WholeHand(msgspec.Struct, frozen=True):
    """A hand with its deal and all actions."""

    game: Game
    timeline: Timeline
    """The timeline of one of our seats."""
    deal: Json
    actions: list[tuple[int, int]]


def whole_hands(store: Store, query: HandQuery, left_out: Counter[str]) -> Iterator[WholeHand]:
    """Yield the revealed hands of a query, from any of our seats. ``left_out`` counts the others by reason."""
    games = GameCache()
    for ours in iter_timelines_together(store, iter_hands(store, query)):
        received = [_whole(timeline, games) for timeline in ours]
        whole = next((hand for hand in received if isinstance(hand, WholeHand)), None)
        if whole is not None:
            yield whole
        else:
            left_out[str(received[0])] += 1


def _whole(timeline: Timeline, games: GameCache) -> WholeHand | str:
    """The hand that one of our seats received, or the reason why it did not receive all of it."""
    record = timeline.hand.game
    game = games.get(record.game, record.rules)
    if game is None:
        return "of a game that is not installed"
    view = game.new_view(record.seat)
    try:
        view.observe_all(timeline.lines())
        found = view.record()
    except (StoreError, ValueError):
        return "with a gap in their events"
    return "that were never revealed" if found is None else WholeHand(game, timeline, *found)
