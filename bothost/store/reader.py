"""Streaming reads of the log in constant memory: hand by hand, in the order of their ids.

Pages follow the primary key. So no read holds a transaction for long, and nothing is counted or sorted first.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Annotated, Any

import msgspec
import sqlalchemy as sa

from bothost.errors import StoreError
from bothost.rules.game import Game, View
from bothost.store.models import TABLE_OF, decisions, game_ends, games, outcomes
from bothost.store.query import EVERY_HAND, HandQuery, between, players_of
from bothost.store.records import (
    ChatRecord,
    DecisionRecord,
    EventsRecord,
    GameEndRecord,
    GameRecord,
    OutcomeRecord,
    SnapshotRecord,
)
from bothost.store.store import Store

PAGE_HANDS = 500
STRETCH_HANDS = 4000
"""Hands that a time-limited search reads before it checks the clock."""

TOGETHER_US = 60_000_000
"""Rows of our seats at one hand start within this time, in microseconds."""

Key = tuple[bytes, int]
"""Game id and seat: the key of a hand at one of our seats."""


class LoggedHand(msgspec.Struct, frozen=True):
    """A hand at one of our seats."""

    game: GameRecord
    end: GameEndRecord | None

    @property
    def key(self) -> Key:
        return self.game.game_id, self.game.seat

    @property
    def scores(self) -> list[float] | None:
        """One per seat; None if the hand is live, aborted or void."""
        return decode_scores(self.end.scores) if self.end is not None else None

    @property
    def score(self) -> float | None:
        """That of our seat; None if there is none."""
        scores, seat = self.scores or (), self.game.seat
        return scores[seat] if 0 <= seat < len(scores) else None

    @property
    def away(self) -> frozenset[int]:
        """Seats whose moves may not be those of their players: see ``GameEndRecord.away``."""
        return frozenset(decode_away(self.end.away) or () if self.end is not None else ())


def is_same_hand(one: LoggedHand, other: LoggedHand) -> bool:
    """Whether two of our seats are at the same hand of the same table. Lobbies may use a name again, later."""
    first, second = ((hand.game.lobby, hand.game.table, hand.game.hand, hand.game.game) for hand in (one, other))
    return first == second and abs(one.game.started_us - other.game.started_us) <= TOGETHER_US


def together(seats: Iterable[LoggedHand]) -> Iterator[list[LoggedHand]]:
    """Group our seats by hand. They come in the order of time or in the opposite one.

    The hands keep the order of their first seats.
    """
    unfinished: dict[tuple[str, ...], list[LoggedHand]] = {}
    for seat in seats:
        game = seat.game
        while unfinished:
            place, (first, *_) = next(iter(unfinished.items()))
            if abs(game.started_us - first.game.started_us) <= TOGETHER_US:
                break
            yield unfinished.pop(place)
        unfinished.setdefault((game.lobby, game.table, game.hand, game.game), []).append(seat)
    yield from unfinished.values()


_decode_seats = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=0, le=127)]] | None).decode


def decode_scores(text: str | None) -> list[float] | None:
    """Decode ``GameEndRecord.scores``; None if there are none. Raises StoreError.

    Version 0.1.0 could log null or NaN as a score. Such a hand has no scores.
    """
    try:
        scores = json.loads(text or "null")
        found = None if scores is None or None in scores else [float(score) for score in scores]
    except (TypeError, ValueError) as error:
        raise StoreError(f"the column game_ends.scores is invalid: {error}") from error
    return found if found is not None and all(map(math.isfinite, found)) else None


def decode_away(text: str | None) -> list[int] | None:
    """Decode ``GameEndRecord.away``; None if it was not recorded. Raises StoreError."""
    try:
        seats: list[int] | None = _decode_seats(text or "null")
    except msgspec.DecodeError as error:
        raise StoreError(f"the column game_ends.away is invalid: {error}") from error
    return seats


class Timeline(msgspec.Struct, frozen=True):
    """All logged rows of a hand, each kind in order."""

    hand: LoggedHand
    decisions: list[DecisionRecord]
    events: list[EventsRecord]
    snapshots: list[SnapshotRecord]
    outcomes: dict[bytes, list[OutcomeRecord]]
    """By decision id."""
    chat: list[ChatRecord] = []

    def lines(self) -> list[str]:
        """Return all event lines. Raises StoreError if the log has a gap."""
        return join_events([(stretch.seq, stretch.events) for stretch in self.events])


def iter_hands(
    store: Store,
    query: HandQuery = EVERY_HAND,
    *,
    after: Key | None = None,
    page: int = PAGE_HANDS,
    where: Sequence[sa.ColumnElement[bool]] = (),
) -> Iterator[LoggedHand]:
    """Yield the hands that match a query, by id. ``after``: only hands after that key. ``where``: more conditions."""
    while True:
        rows = _hands_page(store, query, page, _Bounds(after=after), where)
        for hand in rows:
            if query.accepts(hand.game.account, hand.game.seat, hand.game.players):
                yield hand
        if len(rows) < page:
            return
        after = rows[-1].key


def iter_keys(store: Store, query: HandQuery = EVERY_HAND, *, page: int = 10 * PAGE_HANDS) -> Iterator[Key]:
    """Yield the keys of the hands that match a query, in order."""
    of_key = (games.c.game_id, games.c.seat)
    columns = (*of_key, games.c.account, games.c.players) if query.names_players else of_key
    after: Key | None = None
    while True:
        with store.begin() as connection:
            rows = connection.execute(_page(columns, query, page, _Bounds(after=after))).all()
        yield from (
            (row[0], row[1]) for row in rows if not query.names_players or query.accepts(row[2], row[1], row[3])
        )
        if len(rows) < page:
            return
        after = rows[-1][0], rows[-1][1]


def iter_latest(store: Store, query: HandQuery) -> Iterator[LoggedHand]:
    """Yield the hands that match a query, newest first."""
    before: Key | None = None
    while True:
        rows = _hands_page(store, query, PAGE_HANDS, _Bounds(before=before, newest_first=True))
        yield from (hand for hand in rows if query.accepts(hand.game.account, hand.game.seat, hand.game.players))
        if len(rows) < PAGE_HANDS:
            return
        before = rows[-1].key


def latest_hands(store: Store, query: HandQuery, limit: int) -> list[LoggedHand]:
    """Return the newest hands that match a query, newest first."""
    return [hand for _, hand in zip(range(limit), iter_latest(store, query), strict=False)]


class Search(msgspec.Struct, frozen=True):
    """The result of a time-limited search."""

    hands: list[LoggedHand]
    """Newest first."""
    beyond: Key | None
    """Hands older than this one were not searched; None: the search is complete."""


def search_hands(
    store: Store,
    query: HandQuery,
    limit: int,
    *,
    before: Key | None = None,
    within_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> Search:
    """Like ``latest_hands``, but stop after about ``within_s`` seconds. A rare condition would read the whole log."""
    found: list[LoggedHand] = []
    ends = clock() + within_s
    while True:
        end = _stretch_end(store, query, before)
        page = PAGE_HANDS if query.names_players else min(PAGE_HANDS, limit - len(found))
        rows = _hands_page(store, query, page, _Bounds(before=before, down_to=end, newest_first=True))
        found += [hand for hand in rows if query.accepts(hand.game.account, hand.game.seat, hand.game.players)]
        if len(found) >= limit:
            return Search(found[:limit], found[limit - 1].key)
        before = rows[-1].key if len(rows) == page else end
        if before is None or clock() >= ends:
            return Search(found, before)


def _stretch_end(store: Store, query: HandQuery, before: Key | None) -> Key | None:
    """Return the last key of the next ``STRETCH_HANDS`` hands; None if fewer are left."""
    statement = (
        sa.select(games.c.game_id, games.c.seat).where(*_Bounds(before=before).where(query)).order_by(*_NEWEST_FIRST)
    )
    with store.begin() as connection:
        rows = connection.execute(statement.offset(STRETCH_HANDS - 1).limit(2)).all()
    return (rows[0][0], rows[0][1]) if len(rows) == 2 else None


class _Bounds(msgspec.Struct, frozen=True):
    """Bounds on the keys of a query."""

    after: Key | None = None
    before: Key | None = None
    down_to: Key | None = None
    newest_first: bool = False

    def ids(self, query: HandQuery) -> tuple[bytes | None, bytes | None]:
        """Return the least and the greatest id; None: no bound."""
        low, high = query.within()
        lows = [low, *(key[0] for key in (self.after, self.down_to) if key)]
        highs = [high, self.before[0] if self.before else None]
        return max(filter(None, lows), default=None), min(filter(None, highs), default=None)

    def where(self, query: HandQuery) -> Iterator[sa.ColumnElement[bool]]:
        """Yield the conditions. Of two bounds only the closer one: SQLite might search by the other one."""
        (low, high), here = self.ids(query), sa.tuple_(games.c.game_id, games.c.seat)
        if self.before is not None and self.before[0] == high:
            yield here < _literal(self.before)
        elif high is not None:
            yield games.c.game_id <= high
        if self.after is not None and self.after[0] == low:
            yield here > _literal(self.after)
        elif self.down_to is not None and self.down_to[0] == low:
            yield here >= _literal(self.down_to)
        elif low is not None:
            yield games.c.game_id >= low


def _literal(key: Key) -> Any:
    """A key as an SQL tuple."""
    return sa.tuple_(sa.literal(key[0], games.c.game_id.type), sa.literal(key[1], sa.SmallInteger))


def read_hands(store: Store, keys: Sequence[Key]) -> list[LoggedHand]:
    """Return the hands with these keys, in the order of keys. Missing ones are left out."""
    statement = _joined(*_OF_HAND).where(games.c.game_id.in_(sorted({game_id for game_id, _ in keys})))
    wanted = set(keys)
    with store.begin() as connection:
        rows = connection.execute(statement.order_by(games.c.game_id, games.c.seat))
        return [hand for hand in map(_hand, rows) if hand.key in wanted]


_OF_END = tuple(name for name in GameEndRecord.__struct_fields__ if name not in ("game_id", "seat"))
_NEWEST_FIRST = (games.c.game_id.desc(), games.c.seat.desc())
_OF_HAND = (games, *(game_ends.c[name] for name in _OF_END))


def _joined(*columns: Any, low: bytes | None = None, high: bytes | None = None) -> sa.Select[Any]:
    same = (game_ends.c.game_id == games.c.game_id, game_ends.c.seat == games.c.seat)
    within = between(game_ends.c.game_id, low, high)
    return sa.select(*columns).select_from(games.outerjoin(game_ends, sa.and_(*same, *within)))


def _hands_page(
    store: Store, query: HandQuery, limit: int, bounds: _Bounds, where: Sequence[sa.ColumnElement[bool]] = ()
) -> list[LoggedHand]:
    with store.begin() as connection:
        return [_hand(row) for row in connection.execute(_page(_OF_HAND, query, limit, bounds).where(*where))]


def _page(columns: Sequence[Any], query: HandQuery, limit: int, bounds: _Bounds) -> sa.Select[Any]:
    low, high = bounds.ids(query)
    order = _NEWEST_FIRST if bounds.newest_first else (games.c.game_id, games.c.seat)
    found = _joined(*columns, low=low, high=high).where(*bounds.where(query), *query.where(low, high))
    # Without an order the database may search by any index, as that of lobbies.
    return found.order_by(*order).limit(limit)


def _hand(row: Sequence[Any]) -> LoggedHand:
    count = len(games.columns)
    game = GameRecord(**dict(zip(GameRecord.__struct_fields__, row[:count], strict=True)))
    of_end = dict(zip(_OF_END, row[count:], strict=True))
    if of_end["ended_us"] is None:
        return LoggedHand(game, None)
    return LoggedHand(game, GameEndRecord(game_id=game.game_id, seat=game.seat, **of_end))


def iter_timelines(store: Store, hands: Iterator[LoggedHand], *, page: int = 64) -> Iterator[Timeline]:
    """Yield all logged rows of each hand. Reads ``page`` hands at a time."""
    while some := list(islice(hands, page)):
        ids = sorted({hand.game.game_id for hand in some})
        parts: dict[type[Any], dict[Key, list[Any]]] = {}
        kept: dict[bytes, list[OutcomeRecord]] = defaultdict(list)
        with store.begin() as connection:
            for kind in (ChatRecord, DecisionRecord, EventsRecord, SnapshotRecord):
                parts[kind] = _by_hand(connection, kind, ids)
            for outcome in _outcomes(connection, ids):
                kept[outcome.decision_id].append(outcome)
        for hand in some:
            made: list[DecisionRecord] = parts[DecisionRecord].get(hand.key, [])
            made.sort(key=lambda row: (row.seq, row.attempt, row.role, row.substep))  # the steps of a move together
            yield Timeline(
                hand=hand,
                decisions=made,
                events=parts[EventsRecord].get(hand.key, []),
                snapshots=parts[SnapshotRecord].get(hand.key, []),
                outcomes={decision.id: kept[decision.id] for decision in made if decision.id in kept},
                chat=parts[ChatRecord].get(hand.key, []),
            )


def iter_timelines_together(store: Store, hands: Iterator[LoggedHand]) -> Iterator[list[Timeline]]:
    """Like ``iter_timelines``, with the timelines of all our seats at a hand together."""
    seats: deque[int] = deque()

    def each() -> Iterator[LoggedHand]:
        for ours in together(hands):
            seats.append(len(ours))
            yield from ours

    timelines = iter_timelines(store, each())
    for first in timelines:
        yield [first, *islice(timelines, seats.popleft() - 1)]


def _by_hand(connection: sa.Connection, kind: type[Any], ids: list[bytes]) -> dict[Key, list[Any]]:
    table = TABLE_OF[kind]
    statement = sa.select(table).where(table.c.game_id.in_(ids)).order_by(*table.primary_key.columns)
    names = kind.__struct_fields__
    rows = (kind(**dict(zip(names, row, strict=True))) for row in connection.execute(statement))
    return {key: list(group) for key, group in groupby(rows, key=lambda row: (row.game_id, row.seat))}


def _outcomes(connection: sa.Connection, ids: list[bytes]) -> Iterator[OutcomeRecord]:
    of_hands = sa.select(decisions.c.id).where(decisions.c.game_id.in_(ids))
    statement = sa.select(outcomes).where(outcomes.c.decision_id.in_(of_hands)).order_by(outcomes.c.at_us)
    for row in connection.execute(statement):
        yield OutcomeRecord(*row)


def join_events(stretches: Sequence[tuple[int, str]]) -> list[str]:
    """Join stretches (number of the first event, lines) to one list of events. Raises StoreError if one is missing."""
    lines: list[str] = []
    for seq, text in stretches:
        if seq != len(lines):
            raise StoreError(f"the event log has a gap: event {seq} follows {len(lines)} events")
        lines += text.split("\n") if text else []
    return lines


def iter_views(game: Game, timeline: Timeline) -> Iterator[tuple[DecisionRecord, View]]:
    """Rebuild the view of every decision by folding the seat's events and snapshots.

    Compare it with ``decision.view`` to check the log. Do not change the view; it is valid only until the next
    iteration. Raises StoreError if the log has a gap.
    """
    fold = _Fold(game, timeline)
    steps: list[DecisionRecord] = []
    for decision in timeline.decisions:
        view = fold.at(decision)
        steps = [s for s in steps if (s.seq, s.attempt, s.role) == (decision.seq, decision.attempt, decision.role)]
        if decision.substep:
            # The steps of a composite move become events only when the whole move is made.
            view = view.clone()
            for step in steps:
                view.apply(step.action)
        steps.append(decision)
        yield decision, view


class _Fold:
    """Folds a seat's view forward through the log."""

    def __init__(self, game: Game, timeline: Timeline) -> None:
        self._game = game
        self._view = game.new_view(timeline.hand.game.seat)
        self._snapshots = list(timeline.snapshots)
        self._lines: dict[int, str] = {}
        for stretch in timeline.events:
            for i, line in enumerate(stretch.events.split("\n") if stretch.events else []):
                self._lines[stretch.seq + i] = line

    def at(self, decision: DecisionRecord) -> View:
        """Return the view after ``decision.seq`` events, with the snapshots that had arrived by then."""
        while self._view.seq < decision.seq:
            if self._snapshots and self._snapshots[0].seq <= self._view.seq:
                self._take_snapshot()
            elif self._view.seq in self._lines:
                self._view.observe(self._lines[self._view.seq])
            elif self._snapshots and self._snapshots[0].seq <= decision.seq:
                self._take_snapshot()  # events before it are missing
            else:
                where = f"{decision.game_id.hex()} seat {decision.seat}"
                raise StoreError(f"event {self._view.seq} of hand {where} is not logged")
        while self._snapshots and self._snapshots[0].seq <= decision.seq and self._snapshots[0].at_us <= decision.at_us:
            self._take_snapshot()
        return self._view

    def _take_snapshot(self) -> None:
        self._view = self._game.view_from_snapshot(json.loads(self._snapshots.pop(0).view))


NOT_PLAYED = ("rejected", "superseded", "server_acted")
"""Outcomes of moves that were not made: refused, never sent, or made by the lobby itself."""


def played(attempts: Sequence[tuple[int, int, bool]]) -> list[bool]:
    """Whether each live decision of a hand was played. ``attempts``: (seq, attempt, dropped) of each.

    ``dropped``: whether it has an outcome of ``NOT_PLAYED``. A later attempt at the same position replaces an earlier
    one, which the lobby rejected or never received.
    """
    last: dict[int, int] = defaultdict(int)
    for seq, attempt, _ in attempts:
        last[seq] = max(last[seq], attempt)
    return [attempt == last[seq] and not dropped for seq, attempt, dropped in attempts]


def decision_counts(store: Store, keys: Sequence[Key]) -> dict[Key, tuple[int, int]]:
    """Return hand → (number of live decisions, number of fallbacks among them)."""
    of_hand = (decisions.c.game_id, decisions.c.seat)
    statement = (
        sa.select(*of_hand, sa.func.count(), sa.func.count(decisions.c.fallback))
        .where(decisions.c.game_id.in_(sorted({game_id for game_id, _ in keys})), decisions.c.role == "live")
        .group_by(*of_hand)
    )
    with store.begin() as connection:
        return {(row[0], row[1]): (row[2], row[3]) for row in connection.execute(statement)}


def decisions_within(store: Store, low: bytes, high: bytes, limit: int) -> list[tuple[bytes, Key]]:
    """Return the first decisions with an id in this range, each with its hand."""
    d = decisions.c
    query = sa.select(d.id, d.game_id, d.seat).where(d.id >= low, d.id <= high).order_by(d.id).limit(limit)
    with store.begin() as connection:
        return [(row[0], (row[1], row[2])) for row in connection.execute(query)]


_SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    "postgresql": "SELECT pg_database_size(current_database())",
}


def size(store: Store) -> int:
    """Return the size of the database in bytes."""
    with store.begin() as connection:
        return int(connection.exec_driver_sql(_SIZE[connection.dialect.name]).scalar() or 0)


def counts(store: Store) -> dict[str, int]:
    """Return the number of rows of each log table."""
    with store.begin() as connection:
        return {
            str(table.name): connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() or 0
            for table in TABLE_OF.values()
        }


def logged_lobbies(store: Store) -> list[str]:
    """Return the names of the lobbies of logged hands, sorted."""
    with store.begin() as connection:
        return list(connection.execute(sa.select(games.c.lobby).distinct().order_by(games.c.lobby)).scalars())


def players_met(store: Store, hands: int) -> list[str]:
    """Return our accounts, and the ids and names of the other players, at the newest hands."""
    met: dict[str, None] = {}
    for hand in latest_hands(store, EVERY_HAND, hands):
        at_table = players_of(hand.game.players)
        names = (player.get(key) for player in at_table for key in ("player", "name"))
        met |= dict.fromkeys([hand.game.account, *(str(name) for name in names if name)])
    return list(met)
