"""Read the outcomes of logged hands that the ladder has not counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa

from bothost.ladder.outcome import Outcome, marked, teams_of
from bothost.store.models import game_ends, games, rated
from bothost.store.query import players_of
from bothost.store.ratings import Contestant, Scope, hand_key
from bothost.store.reader import TOGETHER_US, decode_away
from bothost.store.records import IMPORT_HOST
from bothost.store.store import Store

PAGE = 5_000
HANDS_AT_ONCE = 300
"""Hands whose marks are looked up at once."""
MADE_UP = "generated"
"""``games.host`` of hands that our strategies played under invented names."""

Place = tuple[str, str, str, str]
"""Lobby, table, hand, game."""


class Hand(msgspec.Struct):
    """Our rows of one hand."""

    place: Place
    started_us: int
    rows: list[Any] = msgspec.field(default_factory=list)


class LoggedOutcomes:
    """Reads the log. ``left_out`` counts the excluded hands by reason."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Outcome]:
        """Yield every hand that has ended and was not counted. An outcome without teams only marks its hand."""
        hands = self._hands()
        while some := list(islice(hands, HANDS_AT_ONCE)):
            named = {id(hand): _names(hand) for hand in some}
            known = marked(self._store, self._scope, [key for keys in named.values() for key in keys])
            for hand in some:
                outcome = self._one(hand, named[id(hand)], known)
                if outcome is not None:
                    yield outcome

    def _one(self, hand: Hand, named: list[bytes], known: set[bytes]) -> Outcome | None:
        """Return the outcome of a hand; None if it has not ended. ``known``: the keys counted before."""
        ended = [row for row in hand.rows if row.ended_us is not None]
        if not ended:
            return None
        keys = tuple({row.game_id for row in hand.rows})
        if not known.isdisjoint(named):  # another seat of ours was logged after the hand was counted
            return Outcome(hand.place[3], (), (), 0, keys)
        why, outcome = self._outcome(hand, ended)
        if outcome is None:
            self.left_out[why] += 1
            outcome = Outcome(hand.place[3], (), (), 0, ())
        return msgspec.structs.replace(outcome, keys=(*keys, named[0]))

    def _hands(self) -> Iterator[Hand]:
        """Group the rows of each hand, oldest first."""
        open_hands: dict[Place, Hand] = {}
        for row in self._rows():
            while open_hands and row.started_us - next(iter(open_hands.values())).started_us > TOGETHER_US:
                yield open_hands.pop(next(iter(open_hands)))
            place = (row.lobby, row.table, row.hand, row.game)
            open_hands.setdefault(place, Hand(place, row.started_us)).rows.append(row)
        yield from open_hands.values()

    def _rows(self) -> Iterator[Any]:
        same = sa.and_(game_ends.c.game_id == games.c.game_id, game_ends.c.seat == games.c.seat)
        of_end = (game_ends.c.scores, game_ends.c.ended_us, game_ends.c.away)
        counted = sa.exists().where(rated.c.scope == self._scope, rated.c.key == games.c.game_id)
        query = sa.select(games, *of_end).select_from(games.outerjoin(game_ends, same)).where(~counted)
        query = query.order_by(games.c.game_id, games.c.seat).limit(PAGE)
        after: tuple[bytes, int] | None = None
        while True:
            page = query
            if after is not None:
                here = games.c.game_id, games.c.seat
                page = query.where((here[0] > after[0]) | ((here[0] == after[0]) & (here[1] > after[1])))
            with self._store.begin() as connection:
                rows = connection.execute(page).all()
            yield from rows
            if len(rows) < PAGE:
                return
            after = rows[-1].game_id, rows[-1].seat

    def _outcome(self, hand: Hand, ended: list[Any]) -> tuple[str, Outcome | None]:
        """Return the reason to exclude the hand, and its outcome or None."""
        first = hand.rows[0]
        scored = next((row for row in ended if row.scores is not None), None)
        if scored is None:
            return "ended without a score", None
        if any(decode_away(row.away) for row in ended):
            return "a player was away", None
        ours = {} if first.host == IMPORT_HOST else {row.seat: row for row in hand.rows}
        if self._scope == "others" and (len(ours) > 1 or first.host == MADE_UP):
            return "among our own accounts", None
        seats = {seat: _strategy(row) for seat, row in ours.items()}
        for player in players_of(scored.players):
            seat, name = player.get("seat"), player.get("player")
            if isinstance(seat, int) and isinstance(name, str) and name and seat not in seats and not _nameless(first):
                seats[seat] = Contestant("player", name, first.lobby)
        found = teams_of(first.game, seats, json.loads(scored.scores))
        if found is None:
            return "nothing to compare", None
        return "", Outcome(first.game, *found, scored.ended_us, ())


def _names(hand: Hand) -> list[bytes]:
    """Return the keys of a hand by its place, for its own minute and the neighbouring ones."""
    return [hand_key(*hand.place, hand.started_us + near * TOGETHER_US) for near in (0, -1, 1)]


def _nameless(row: Any) -> bool:
    """Whether an imported record named no players, so that the names in the log are those of seats."""
    return row.host == IMPORT_HOST and _attributes(row).get("imported", {}).get("named") is False


def _strategy(row: Any) -> Contestant:
    version = row.model_sha256[:8] if row.model_sha256 else row.strategy_version
    level = _attributes(row).get("strategy_level")
    return Contestant("strategy", row.strategy, version=version, level=level if isinstance(level, str) else "")


def _attributes(row: Any) -> dict[str, Any]:
    try:
        found = json.loads(row.attributes)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
