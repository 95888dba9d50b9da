"""Live tables, read from the log: several hosts may write it, and no host is slowed by who watches.

One task reads what is new for all browsers together. A browser receives a position only through ``seen``, which leaves
out what its viewer may not know.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable

import msgspec
import sqlalchemy as sa
import structlog

from bothost.errors import BothostError, StoreError, UsageError
from bothost.host.control import ask
from bothost.rules.game import Game, Json, View
from bothost.store.models import chat, decisions, events, snapshots
from bothost.store.query import HandQuery
from bothost.store.reader import Key, LoggedHand, latest_hands, read_hands
from bothost.web.drawn import drawn
from bothost.web.hands import described, name_of, seat_names
from bothost.web.site import Site
from bothost.web.stream import Changes
from bothost.web.viewers import MOST_CHAT, SECRET_QUESTIONS, Viewer, is_asked_in_secret, last_move, public_view

PERIOD_S = 0.5
"""How often the log is read."""
WINDOW_S = 24 * 3600
"""A hand that started longer ago is not shown as live."""
MAX_TABLES = 500
SCAN_S = 30.0
"""How often all hands of the window are looked at. In between only new hands are looked for, and ends of known ones."""
OVERLAP_US = 60_000_000
"""How much later than the time of its id a hand may appear in the log."""
HOST_S = 1.0
"""How long the host may take to tell its clocks."""

log = structlog.get_logger("bothost.web")


class LiveHand(msgspec.Struct):
    """A hand that has not ended, folded as far as the log goes."""

    hand: LoggedHand
    view: View | None
    public: Json | None = None
    """What is public of it. The log has new events when our seat is asked: where that is secret, this stays."""
    seq: int = 0
    moved_at: float = 0.0
    """When a new event came, by ``time.time()``."""
    public_at: float = 0.0
    """When ``public`` changed."""
    version: int = 0
    """Raised by every change."""
    last: Json | None = None
    """The last move that everybody saw: its seat, where that is known, and its notation."""
    left_ms: int | None = None
    """What is left of our open decision at ``clock_at`` (``time.time()``); None: none is open, or unknown."""
    clock_at: float = 0.0
    chat: list[Json] = []
    """What our seat has heard and said, oldest first: ``player``, ``text``."""


class Live:
    """The live hands of the log. ``watch`` yields whenever something changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.hands: dict[str, LiveHand] = {}
        self.lines: list[Json] = []
        """The list of tables at the present version, for who may know what our seats do."""
        self.public_lines: list[Json] = []
        """The same for everybody."""
        self._scanned_at = -math.inf
        self._newest_us = 0
        self._changes = Changes()
        self._watchers = 0
        self._reading = asyncio.Lock()
        self._current = False
        """Whether the log was read since the first of the present watchers came."""

    async def run(self) -> None:
        """Read the log as long as a browser watches. An error is logged once, with its place if it may be a bug."""
        problem = ""
        while True:
            try:
                if self._watchers:
                    await self._read_and_tell()
                    problem = ""
            except Exception as error:  # a database that is away may come back; a full disk may have room again
                if str(error) != problem:
                    problem = str(error)
                    unexpected = not isinstance(error, BothostError | sa.exc.SQLAlchemyError | OSError)
                    log.warning("live tables cannot be read", error=problem, exc_info=unexpected)
            await asyncio.sleep(PERIOD_S)

    async def _read_and_tell(self) -> None:
        async with self._reading:
            changed = await asyncio.to_thread(self.read)
            self._current = True
        if changed:
            await self._changes.note()

    async def watch(self) -> AsyncIterator[int]:
        """Yields the number of the present version at once, then each later one."""
        self._watchers += 1
        try:
            if not self._current:  # while no one watched, nothing was read
                await self._read_and_tell()
            async for version in self._changes.each():
                yield version
        finally:
            self._watchers -= 1
            self._current = self._current and self._watchers > 0

    def read(self) -> bool:
        """Take what is new in the log; whether anything was."""
        found = self._present()
        gone = self.hands.keys() - found.keys()
        fresh = found.keys() - self.hands.keys()
        for name in gone:
            del self.hands[name]
        for name in fresh:
            self.hands[name] = self._begun(found[name])
        before = sum(live.version for live in self.hands.values())
        self._fold()
        self._read_clocks()
        self._read_chat()
        changed = bool(gone or fresh or sum(live.version for live in self.hands.values()) > before)
        if changed:
            listed = [self.hands[name] for name in sorted(self.hands, reverse=True)]
            self.lines = [line(live, knows_seat=True) for live in listed]
            self.public_lines = [line(live, knows_seat=False) for live in listed]
        return changed

    def _begun(self, hand: LoggedHand) -> LiveHand:
        """A hand before its first event, without a view where the game cannot show it."""
        game = self._site.game(hand.game.game, hand.game.rules)
        if game is None:
            return LiveHand(hand, None)
        try:
            view = game.new_view(hand.game.seat)
            return LiveHand(hand, view, public_view(game.name, view.to_json(), self._site.plugins.boards))
        except Exception:  # the game may be a plugin's, in another version than the host's
            return LiveHand(hand, None)

    def _present(self) -> dict[str, LoggedHand]:
        """The hands that have not ended, by name."""
        now = time.monotonic()  # the clock of the day may be set back
        store, scan = self._site.store, now - self._scanned_at >= SCAN_S
        since_us = int((time.time() - WINDOW_S) * 1e6)
        known: dict[str, LoggedHand] = {}
        if scan:
            self._scanned_at = now
        else:
            since_us = max(since_us, self._newest_us - OVERLAP_US)
            again = read_hands(store, [live.hand.key for live in self.hands.values()])
            known = {name_of(hand): hand for hand in again if hand.end is None}
        query = HandQuery(since_us=since_us, live=True)
        found = {name_of(hand): hand for hand in latest_hands(store, query, MAX_TABLES - len(known))}
        self._newest_us = max((hand.game.started_us for hand in found.values()), default=self._newest_us)
        return known | found

    def _fold(self) -> None:
        """Fold the events that came since."""
        by_key: dict[Key, LiveHand] = {live.hand.key: live for live in self.hands.values() if live.view is not None}
        if not by_key:
            return
        e = events.c
        later = [
            sa.and_(e.game_id == game_id, e.seat == seat, e.seq >= live.seq) for (game_id, seat), live in by_key.items()
        ]
        statement = sa.select(e.game_id, e.seat, e.seq, e.events).where(sa.or_(*later))
        with self._site.store.begin() as connection:
            # What came while nobody watched came with our seat's last decision. Whatever else is new came just now.
            decided = {} if self._current else _decided(connection, by_key)
            for game_id, seat, seq, text in connection.execute(statement.order_by(e.game_id, e.seat, e.seq)).all():
                live = by_key[game_id, seat]
                if live.view is not None:
                    at = decided.get(live.hand.key, time.time())
                    self._observe(connection, live, live.view, seq, text.split("\n"), at)

    def _observe(
        self, connection: sa.Connection, live: LiveHand, view: View, seq: int, lines: list[str], at: float
    ) -> None:
        """Fold one stretch of events. One that is missing or does not fit ends the hand's live view."""
        game = live.hand.game.game
        live.version += 1
        live.view = None
        try:
            if seq != live.seq:  # the connection or the host was lost
                view = _resumed(connection, live.hand.key, view.game, seq)
            view.observe_all(lines)
            known = view.to_json()
            public = public_view(game, known, self._site.plugins.boards)
            if public != live.public and not is_asked_in_secret(game, known):
                live.public, live.last = public, last_move(game, public)
                secret = game in SECRET_QUESTIONS  # when our seat decided shows that it was asked
                live.public_at = time.time() if secret else at
        except Exception:  # the game may be a plugin's
            return
        live.view, live.seq = view, seq + len(lines)
        live.moved_at = at

    def _read_chat(self) -> None:
        """Read what was said."""
        by_key = {live.hand.key: live for live in self.hands.values()}
        if not by_key:
            return
        c = chat.c
        statement = sa.select(c.game_id, c.seat, c.player, c.text).where(c.game_id.in_({key[0] for key in by_key}))
        said: dict[Key, list[Json]] = defaultdict(list)
        with self._site.store.begin() as connection:
            for game_id, seat, player, text in connection.execute(statement.order_by(c.at_us, c.id)):
                said[game_id, seat].append({"player": player, "text": text})
        for key, live in by_key.items():
            lines = said[key][-MOST_CHAT:]
            if lines != live.chat:
                live.chat = lines
                live.version += 1

    def _read_clocks(self) -> None:
        """Ask the running host for its open decisions. A hand has changed if it has one now, or none any more."""
        try:
            open_tables = ask(self._site.settings.host.data_dir, "tables", HOST_S)["tables"]
        except UsageError:  # no host runs here: others may write the log
            open_tables = []
        clocks = {(lobby, account, table): left_ms for lobby, account, table, left_ms in open_tables}
        now = time.time()
        for live in self.hands.values():
            record = live.hand.game
            left_ms = clocks.get((record.lobby, record.account, record.table))
            if (left_ms is None) != (live.left_ms is None):
                live.version += 1
            live.left_ms, live.clock_at = left_ms, now


def _decided(connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, float]:
    """When each seat decided last, as ``time.time()``."""
    d = decisions.c
    here = sa.or_(*(sa.and_(d.game_id == game_id, d.seat == seat) for game_id, seat in keys))
    last = sa.select(d.game_id, d.seat, sa.func.max(d.at_us)).where(here).group_by(d.game_id, d.seat)
    return {(game_id, seat): at_us / 1e6 for game_id, seat, at_us in connection.execute(last).all()}


def _resumed(connection: sa.Connection, key: Key, game: Game, seq: int) -> View:
    """The view of the lobby's snapshot at which the events continue. Raises StoreError where there is none."""
    s = snapshots.c
    here = (s.game_id == key[0], s.seat == key[1], s.seq == seq)
    found = connection.scalar(sa.select(s.view).where(*here).order_by(s.at_us.desc()).limit(1))
    if found is None:
        raise StoreError(f"the events before {seq} are not logged")
    return game.view_from_snapshot(json.loads(found))


def line(live: LiveHand, *, knows_seat: bool) -> Json:
    """A live table in the list. ``knows_seat``: whether the viewer may know when our seat is asked."""
    ends = knows_seat or live.hand.game.game not in SECRET_QUESTIONS
    return {
        **described(live.hand),
        "moved_us": int((live.moved_at if knows_seat else live.public_at) * 1e6) or None,
        "last": live.last,
        "ends_us": int(live.clock_at * 1e6) + 1000 * live.left_ms if ends and live.left_ms is not None else None,
    }


def seen(live: LiveHand, viewer: Viewer) -> Json:
    """The position of a live table as this viewer may know it; ``view`` None where nothing of it is public.

    The lobby sends the chat of a table to its players alone, so only an operator who does not play there reads what our
    seat heard.
    """
    record, view, game = live.hand.game, None, None
    knows_seat = viewer.kind == "operator" and record.table not in viewer.plays_at
    if live.view is not None:
        game = live.view.game
        view = drawn(live.view) if knows_seat else live.public
    shown = line(live, knows_seat=knows_seat)
    return {
        **shown,
        "names": seat_names(live.hand, game),
        "view": view,
        "left_ms": None if shown["ends_us"] is None else live.left_ms,
        "chat": live.chat if knows_seat else [],
    }


def listed(live: Live, viewer: Viewer) -> list[Json]:
    """The list of live tables as this viewer may know it."""
    if viewer.kind != "operator":
        return live.public_lines
    both = zip(live.lines, live.public_lines, strict=True)
    return [public if whole["table"] in viewer.plays_at else whole for whole, public in both]
