"""Report the ladder as plain data and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bothost.errors import printable
from bothost.store.models import rating_history, rating_pairs
from bothost.store.ratings import Contestant, Rating, Scope, all_ratings
from bothost.store.records import short_time
from bothost.store.store import Store

Json = dict[str, Any]


class Pair(msgspec.Struct, frozen=True):
    """The results of two contestants against each other."""

    a: str
    """Label."""
    b: str
    hands: int
    wins: float
    """Wins of ``a``. A draw is half a win."""


class Point(msgspec.Struct, frozen=True):
    """A rating after a number of hands."""

    hands: int
    mu: float
    sigma: float
    at: str


class Standing(msgspec.Struct, frozen=True):
    """A contestant's place."""

    label: str
    who: Contestant
    rating: Rating
    history: tuple[Point, ...]


class GameLadder(msgspec.Struct, frozen=True):
    """The ladder of one game."""

    game: str
    standings: tuple[Standing, ...]
    """Sorted by the lower end of the interval, so that no one leads by luck in a few hands."""
    roles: tuple[Standing, ...]
    """Ratings of roles, which add to the ratings of their players."""
    pairs: tuple[Pair, ...]


def ladders(store: Store, scope: Scope, *, game: str | None = None, min_hands: int = 1) -> list[GameLadder]:
    """Return the ladders of all games, or of one. Contestants with fewer hands are left out."""
    found = []
    for name, known in all_ratings(store, scope=scope, game=game).items():
        history = _history(store, scope, name)
        standings = [
            Standing(who.label, who, rating, _with_last(history.get(who.key, []), rating))
            for who, rating in known.items()
            if rating.hands >= min_hands
        ]
        standings.sort(key=lambda standing: -standing.rating.ci95[0])
        shown = {standing.who.key: standing.label for standing in standings if standing.who.kind != "role"}
        found.append(
            GameLadder(
                name,
                tuple(standing for standing in standings if standing.who.kind != "role"),
                tuple(standing for standing in standings if standing.who.kind == "role"),
                tuple(_pairs(store, scope, name, shown)),
            )
        )
    return found


def _with_last(points: list[Point], rating: Rating) -> tuple[Point, ...]:
    """Append the current rating to a history."""
    if points and points[-1].hands == rating.hands:
        return tuple(points)
    return (*points, Point(rating.hands, rating.mu, rating.sigma, short_time(rating.last_us)))


def _history(store: Store, scope: Scope, game: str) -> dict[str, list[Point]]:
    h = rating_history.c
    query = sa.select(h.contestant, h.hands, h.mu, h.sigma, h.at_us).where(h.scope == scope, h.game == game)
    found: dict[str, list[Point]] = {}
    with store.begin() as connection:
        for row in connection.execute(query.order_by(h.contestant, h.hands)):
            found.setdefault(row.contestant, []).append(Point(row.hands, row.mu, row.sigma, short_time(row.at_us)))
    return found


def _pairs(store: Store, scope: Scope, game: str, shown: dict[str, str]) -> list[Pair]:
    p = rating_pairs.c
    query = sa.select(p.contestant, p.opponent, p.hands, p.wins).where(p.scope == scope, p.game == game)
    with store.begin() as connection:
        rows = connection.execute(query.order_by(p.contestant, p.opponent)).all()
    return [
        Pair(shown[row.contestant], shown[row.opponent], row.hands, row.wins)
        for row in rows
        if row.contestant in shown and row.opponent in shown
    ]


def as_json(ladder: GameLadder) -> Json:
    """Return plain data for ``--json``."""
    return {
        "contestants": [_standing(standing) for standing in ladder.standings],
        "roles": [_standing(standing) for standing in ladder.roles],
        "head_to_head": msgspec.to_builtins(ladder.pairs),
    }


def _standing(standing: Standing) -> Json:
    who, rating = standing.who, standing.rating
    return {
        "label": standing.label,
        **msgspec.structs.asdict(who),
        "mu": rating.mu,
        "sigma": rating.sigma,
        "ci95": list(rating.ci95),
        "hands": rating.hands,
        "last": short_time(rating.last_us),
        "history": msgspec.to_builtins(standing.history),
    }


def rows(standings: Sequence[Standing]) -> list[tuple[object, ...]]:
    """Return rows of a table: place, contestant, rating, interval, hands, last hand."""
    return [
        (
            place,
            standing.label,
            f"{standing.rating.mu:.1f}",
            "{:.1f} … {:.1f}".format(*standing.rating.ci95),
            f"{standing.rating.hands:,}",
            short_time(standing.rating.last_us)[:16],
        )
        for place, standing in enumerate(standings, 1)
    ]


HEADER = ("", "CONTESTANT", "RATING", "95 %", "HANDS", "LAST (UTC)")


def matrix(ladder: GameLadder) -> list[tuple[str, ...]]:
    """Return the matrix of wins: one row per contestant, one column per opponent."""
    won: dict[tuple[str, str], tuple[float, int]] = {}
    for pair in ladder.pairs:
        won[pair.a, pair.b] = pair.wins, pair.hands
        won[pair.b, pair.a] = pair.hands - pair.wins, pair.hands
    labels = [standing.label for standing in ladder.standings]
    return [(f"{place} {a}", *(_share(won.get((a, b))) for b in labels)) for place, a in enumerate(labels, 1)]


def _share(pair: tuple[float, int] | None) -> str:
    return "" if pair is None else f"{100 * pair[0] / pair[1]:.0f} % of {pair[1]:,}"


def markdown(found: Sequence[GameLadder]) -> str:
    """Return a page with every ladder and its matrix."""
    parts = ["# Ladder", ""]
    if not found:
        parts.append("No one is rated yet.")
    for ladder in found:
        parts += [f"## {ladder.game}", ""]
        if not ladder.standings:
            parts += ["No one has enough hands.", ""]
            continue
        parts += [*_table(("#", *HEADER[1:]), rows(ladder.standings)), ""]
        for role in ladder.roles:
            parts += [f"*{role.label}: {role.rating.mu:.1f} (a player starts with 25)*", ""]
        if ladder.pairs:
            columns = [str(place) for place in range(1, len(ladder.standings) + 1)]
            parts += ["Wins of the row against the column:", "", *_table(("", *columns), matrix(ladder)), ""]
    return "\n".join(parts).rstrip() + "\n"


def _table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> list[str]:
    return [_line(header), "|" + " --- |" * len(header), *map(_line, lines)]


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(re.sub(r"[\\`*_\[\]<>|&~]", r"\\\g<0>", printable(cell)) for cell in cells) + " |"
