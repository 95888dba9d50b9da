"""Live tables, read from the log: several hosts may write it, and no host is slowed by who watches.

One task reads what is new for all browsers together. A browser receives a position only through ``seen``, which leaves
out what its viewer may not know.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from bothost.hookspecs import Board
from bothost.rules.game import View
from bothost.store.models import events
from bothost.store.query import HandQuery
from bothost.store.reader import Key, LoggedHand, latest_hands
from bothost.web.hands import name_of, seat_names
from bothost.web.site import Site
from bothost.web.viewers import Viewer, public_view

Json = dict[str, Any]
PERIOD_S = 0.5
"""How often the log is read."""
WINDOW_S = 24 * 3600
"""A hand that started longer ago is not shown as live."""
STALE_S = 600
"""A live hand without a move for so long is shown as silent."""
MAX_TABLES = 500


class LiveHand(msgspec.Struct):
    """A hand that has not ended, folded as far as the log goes."""

    hand: LoggedHand
    view: View | None
    seq: int = 0
    moved_at: float = 0.0
    """When a new event came, by ``time.time()``."""
    version: int = 0
    """Raised by every change."""


class Live:
    """The live hands of the log. ``watch`` yields whenever something changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.hands: dict[str, LiveHand] = {}
        self._changed = asyncio.Condition()
        self._watchers = 0
        self._version = 0

    async def run(self) -> None:
        """Read the log as long as a browser watches."""
        while True:
            if self._watchers and await asyncio.to_thread(self._read):
                self._version += 1
                async with self._changed:
                    self._changed.notify_all()
            await asyncio.sleep(PERIOD_S)

    async def watch(self) -> AsyncIterator[int]:
        """Yields the number of the present version at once, then each later one."""
        self._watchers += 1
        try:
            seen = -1
            while True:
                async with self._changed:
                    while self._version == seen:
                        await self._changed.wait()
                seen = self._version
                yield seen
        finally:
            self._watchers -= 1

    def _read(self) -> bool:
        """Take what is new in the log; whether anything was."""
        query = HandQuery(since_us=int((time.time() - WINDOW_S) * 1e6), live=True)
        found = {name_of(hand): hand for hand in latest_hands(self._site.store, query, MAX_TABLES)}
        gone = self.hands.keys() - found.keys()
        fresh = [name for name in found if name not in self.hands]
        for name in gone:
            del self.hands[name]
        for name in fresh:
            record = found[name].game
            game = self._site.game(record.game, record.rules)
            self.hands[name] = LiveHand(found[name], None if game is None else game.new_view(record.seat))
        moved = self._fold()
        return bool(gone or fresh or moved)

    def _fold(self) -> bool:
        """Fold the events that came since."""
        by_key: dict[Key, LiveHand] = {live.hand.key: live for live in self.hands.values()}
        if not by_key:
            return False
        e = events.c
        statement = sa.select(e.game_id, e.seat, e.seq, e.events).where(e.game_id.in_({key[0] for key in by_key}))
        moved = False
        with self._site.store.begin() as connection:
            for game_id, seat, seq, text in connection.execute(statement.order_by(e.game_id, e.seat, e.seq)):
                live = by_key.get((game_id, seat))
                if live is not None and live.view is not None and seq >= live.seq:
                    moved |= _observe(live, seq, text.split("\n"))
        return moved


def _observe(live: LiveHand, seq: int, lines: list[str]) -> bool:
    """Fold one stretch of events. A gap, or an event that does not fit, ends the hand's live view."""
    if seq != live.seq:
        live.view = None
        return True
    try:
        assert live.view is not None
        live.view.observe_all(lines)
    except ValueError:
        live.view = None
        return True
    live.seq += len(lines)
    live.moved_at = time.time()
    live.version += 1
    return True


def line(live: LiveHand) -> Json:
    """A live table in the list: nothing in it is hidden from a viewer."""
    record = live.hand.game
    return {
        "name": name_of(live.hand),
        "game": record.game,
        "lobby": record.lobby,
        "table": record.table,
        "account": record.account,
        "strategy": record.strategy,
        "players": seat_names(live.hand, None),
        "started_us": record.started_us,
        "moved_us": int(live.moved_at * 1e6) or None,
        "silent": 0 < live.moved_at < time.time() - STALE_S,
    }


def seen(live: LiveHand, viewer: Viewer, boards: Mapping[str, Board]) -> Json:
    """The position of a live table as this viewer may know it; ``view`` None where nothing of it is public.

    ``boards``: what plugins declare public of their games.
    """
    record, view, game = live.hand.game, None, None
    if live.view is not None:
        game, whole = live.view.game, live.view.to_json()
        knows_seat = viewer.kind == "operator" and record.table not in viewer.plays_at
        view = whole if knows_seat else public_view(record.game, whole, boards)
    return {**line(live), "seat": record.seat, "names": seat_names(live.hand, game), "view": view}
