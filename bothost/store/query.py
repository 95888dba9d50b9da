"""Filters on logged hands, shared by ``games list``, ``export`` and retraining."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from bothost.store.models import decisions, game_ends, games

Result = Literal["won", "lost", "drawn"]
NAMES = ("players", "opponents")
"""The conditions of ``HandQuery`` that name players."""


class _OwnScore(FunctionElement[float]):
    """SQL function (scores, seat) → the seat's entry in a JSON list of numbers, or NULL."""

    inherit_cache = True
    type = sa.Double()


@compiles(_OwnScore)
def _own_score(element: _OwnScore, compiler: Any, **kw: Any) -> str:
    scores, seat = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"CASE WHEN json_valid({scores}) THEN json_extract({scores}, '$[' || {seat} || ']') END"


@compiles(_OwnScore, "postgresql")
def _own_score_postgresql(element: _OwnScore, compiler: Any, **kw: Any) -> str:
    scores, seat = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"CASE WHEN {scores} ~ '^[[][0-9eE.,+ -]*]$' THEN ({scores}::json ->> {seat}::int)::float8 END"


class HandQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on hands. A hand must meet all of them, each by any of its values. Empty: no condition."""

    since_us: int | None = None
    """Started at or after this time, microseconds since 1970, UTC."""
    until_us: int | None = None
    """Started before this time."""
    lobbies: tuple[str, ...] = ()
    games: tuple[str, ...] = ()
    players: tuple[str, ...] = ()
    """Our account, or the id or name of any player at the table."""
    opponents: tuple[str, ...] = ()
    """The id or name of a player at the table, at another seat than ours."""
    strategies: tuple[str, ...] = ()
    """The strategy of the table, or one that decided there as a fallback."""
    results: tuple[Result, ...] = ()
    """Score of our seat: above 0, below 0, or 0. Hands without scores do not match."""
    fallbacks: bool = False
    """Only hands in which a fallback decided at our seat."""
    live: bool = False
    """Only hands that have not ended."""
    closed: bool = False
    """Only hands that have ended."""
    scored: bool = False
    """Only hands that ended with a score; implies ``closed``."""
    game_id: str = ""
    """Hexadecimal prefix of the game id."""

    def within(self) -> tuple[bytes | None, bytes | None]:
        """Return the least and the greatest id of hands that can match; None: no bound. Ids begin with the time."""
        # One second of slack, because the id and the start time are separate clock readings.
        low = None if self.since_us is None else first_id(self.since_us - 1_000_000)
        high = None if self.until_us is None else first_id(self.until_us + 1_000_000)
        if self.game_id:
            least, greatest = id_range(self.game_id)
            low = least if low is None else max(low, least)
            high = greatest if high is None else min(high, greatest)
        return low, high

    def where(self, low: bytes | None = None, high: bytes | None = None) -> list[sa.ColumnElement[bool]]:
        """Return the SQL conditions, except the bounds of ``within``. ``accepts`` checks the rest.

        ``low``, ``high``: range of ids of the query. It is added to subqueries on other tables, because PostgreSQL may
        run those for all hands at once.
        """
        conditions: list[sa.ColumnElement[bool]] = []
        if self.since_us is not None:
            conditions.append(games.c.started_us >= self.since_us)
        if self.until_us is not None:
            conditions.append(games.c.started_us < self.until_us)
        if self.lobbies:
            conditions.append(games.c.lobby.in_(self.lobbies))
        if self.games:
            conditions.append(games.c.game.in_(self.games))
        if self.strategies:
            # Decisions that are not fallbacks have the strategy of their hand.
            decided = _fell_back(low, high, decisions.c.strategy.in_(self.strategies))
            conditions.append(games.c.strategy.in_(self.strategies) | decided)
        if self.players and all(map(_searchable, self.players)):
            conditions.append(sa.or_(games.c.account.in_(self.players), *_named(self.players)))
        if self.opponents and all(map(_searchable, self.opponents)):
            conditions.append(sa.or_(*_named(self.opponents)))
        if self.fallbacks:
            conditions.append(_fell_back(low, high))
        if self.live:
            conditions.append(game_ends.c.game_id.is_(None))
        if self.closed or self.scored or self.results:
            conditions.append(game_ends.c.game_id.is_not(None))
        if self.scored or self.results:
            # Nor NULL; null, NaN and Infinity are no scores: see ``decode_scores``.
            conditions.append(game_ends.c.scores.not_ilike("%n%"))
        if self.results:
            own = _OwnScore(game_ends.c.scores, games.c.seat)
            signs = {"won": own > 0, "lost": own < 0, "drawn": own == 0}
            conditions.append(sa.or_(*(signs[result] for result in self.results)))
        return conditions

    def accepts(self, account: str, seat: int, players: str) -> bool:
        """Whether a hand with this account, at this seat, and these players meets ``players`` and ``opponents``.

        ``players``: JSON, as in ``GameRecord``.
        """
        if not self.names_players:
            return True
        sitting = [(player.get("seat"), {player.get("player"), player.get("name")}) for player in players_of(players)]
        sat = not self.players or account in self.players or any(names & set(self.players) for _, names in sitting)
        # Another player may have our account's name, so the seat says who we are where the lobby reports it.
        others = (names for at, names in sitting if (at != seat if isinstance(at, int) else account not in names))
        return sat and (not self.opponents or any(names & set(self.opponents) for names in others))

    @property
    def names_players(self) -> bool:
        """Whether ``accepts`` needs the players of a hand."""
        return bool(self.players or self.opponents)


def between(column: sa.Column[bytes], low: bytes | None, high: bytes | None) -> list[sa.ColumnElement[bool]]:
    """Return the conditions ``low <= column <= high``; None: no bound."""
    return [] + ([] if low is None else [column >= low]) + ([] if high is None else [column <= high])


def _searchable(name: str) -> bool:
    """Whether JSON writes a name in one of the two ways of ``_named``, so that the database can search for it."""
    return name.isprintable() and not set(name) & set("\"\\/<>&'")


def _named(names: Iterable[str]) -> Iterator[sa.ColumnElement[bool]]:
    """Yield conditions: the players of a hand include this name, written as it is or in ASCII, as in ``\\u5c0f``."""
    for name in names:
        for spelling in {json.dumps(name, ensure_ascii=ascii) for ascii in (False, True)}:
            yield games.c.players.contains(spelling, autoescape=True)


def _fell_back(low: bytes | None, high: bytes | None, *more: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Whether a fallback decided in the hand, meeting ``more``.

    Fallbacks are indexed. Within a range of ids they are read once, and PostgreSQL opens only the partitions of that
    range.
    """
    d, here = decisions.c, sa.tuple_(games.c.game_id, games.c.seat)
    if low is None and high is None:
        return sa.exists().where(d.game_id == games.c.game_id, d.seat == games.c.seat, d.fallback.is_not(None), *more)
    found = sa.select(d.game_id, d.seat).where(d.fallback.is_not(None), *between(d.game_id, low, high), *more)
    return here.in_(found)


_decode = msgspec.json.Decoder().decode
EVERY_HAND = HandQuery()
CLOSED_HANDS = HandQuery(closed=True)


def first_id(us: int) -> bytes:
    """Return the smallest uuid7 of a time in microseconds since 1970."""
    return max(0, min(us // 1000, 2**48 - 1)).to_bytes(6, "big") + bytes(10)


def started_us_of(game_id: bytes) -> int:
    """Return the time of a uuid7 in microseconds since 1970, with millisecond precision."""
    return 1000 * int.from_bytes(game_id[:6], "big")


def id_range(prefix: str) -> tuple[bytes, bytes]:
    """Return the first and last id with a hexadecimal prefix. Dashes are ignored. Raises ValueError."""
    digits = prefix.replace("-", "").lower()
    if not digits or len(digits) > 32 or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(f"{prefix!r} is not an id, which has at most 32 hexadecimal digits")
    return bytes.fromhex(digits.ljust(32, "0")), bytes.fromhex(digits.ljust(32, "f"))


def players_of(text: str) -> list[dict[str, Any]]:
    """Return the players of a hand; [] if the text is not a JSON list."""
    try:
        found = _decode(text)
    except ValueError:
        return []
    return [player for player in found if isinstance(player, dict)] if isinstance(found, list) else []
