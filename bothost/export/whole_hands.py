"""Hands of the log that were revealed, each once: for formats whose unit is a hand and not a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from bothost.errors import StoreError
from bothost.export.views import Games
from bothost.rules.game import Game, Json
from bothost.store.query import HandQuery
from bothost.store.reader import Timeline, iter_hands, iter_timelines, join_events
from bothost.store.store import Store

TOGETHER_US = 60_000_000
"""Our seats at one hand start within this time of one another."""


class WholeHand(msgspec.Struct, frozen=True):
    """A hand with everything that was dealt and done."""

    game: Game
    timeline: Timeline
    """Of one of our seats."""
    deal: Json
    actions: list[tuple[int, int]]


def whole_hands(store: Store, query: HandQuery, games: Games, left_out: Counter[str]) -> Iterator[WholeHand]:
    """The revealed hands of a query; ``left_out`` counts the others by reason."""
    done: set[tuple[str, str, str, int]] = set()
    for timeline in iter_timelines(store, iter_hands(store, query)):
        record = timeline.hand.game
        minute = record.started_us // TOGETHER_US
        place = record.lobby, record.table, record.hand
        if any((*place, minute + near) in done for near in (-1, 0, 1)):
            continue
        game = games.of(record.game, record.rules).game
        if game is None:
            left_out["of a game that is not installed here"] += 1
            continue
        view = game.new_view(record.seat)
        try:
            view.observe_all(join_events([(stretch.seq, stretch.events) for stretch in timeline.events]))
            found = view.record()
        except (StoreError, ValueError):
            left_out["with a gap in their events"] += 1
            continue
        if found is None:
            left_out["that were never revealed"] += 1
            continue
        done.add((*place, minute))
        yield WholeHand(game, timeline, *found)
