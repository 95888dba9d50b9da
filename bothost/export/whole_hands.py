"""The revealed hands of the log, each once, for formats whose unit is a hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from bothost.errors import StoreError
from bothost.rules.game import Game, Json
from bothost.store.logged_games import GameCache
from bothost.store.query import HandQuery
from bothost.store.reader import TOGETHER_US, Timeline, iter_hands, iter_timelines
from bothost.store.store import Store


class WholeHand(msgspec.Struct, frozen=True):
    """A hand with its deal and all actions."""

    game: Game
    timeline: Timeline
    """The timeline of one of our seats."""
    deal: Json
    actions: list[tuple[int, int]]


def whole_hands(store: Store, query: HandQuery, left_out: Counter[str]) -> Iterator[WholeHand]:
    """Yield the revealed hands of a query. ``left_out`` counts the others by reason."""
    games = GameCache()
    done: dict[tuple[str, str, str], int] = {}  # the hands of the last minute, and when they started
    for timeline in iter_timelines(store, iter_hands(store, query)):
        record = timeline.hand.game
        while done and record.started_us - next(iter(done.values())) > TOGETHER_US:
            del done[next(iter(done))]
        place = record.lobby, record.table, record.hand
        if place in done:
            continue
        game = games.get(record.game, record.rules)
        if game is None:
            left_out["of a game that is not installed"] += 1
            continue
        view = game.new_view(record.seat)
        try:
            view.observe_all(timeline.lines())
            found = view.record()
        except (StoreError, ValueError):
            left_out["with a gap in their events"] += 1
            continue
        if found is None:
            left_out["that were never revealed"] += 1
            continue
        done[place] = record.started_us
        yield WholeHand(game, timeline, *found)
