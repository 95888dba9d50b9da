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
    done: dict[int, set[tuple[str, str, str]]] = {}  # the last minutes, and the hands that began in them
    for timeline in iter_timelines(store, iter_hands(store, query)):
        record = timeline.hand.game
        minute = record.started_us // TOGETHER_US
        place = record.lobby, record.table, record.hand
        if any(place in done.get(minute + near, ()) for near in (-1, 0, 1)):
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
        done = {near: places for near, places in done.items() if near >= minute - 1}
        done.setdefault(minute, set()).add(place)
        yield WholeHand(game, timeline, *found)
