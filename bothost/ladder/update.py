"""Update ratings with OpenSkill's Plackett-Luce model, one outcome after the other.

Ratings, pairs and marks of a batch are written in one transaction, so no hand counts twice after an interruption.

Source: Weng and Lin, "A Bayesian approximation method for online ranking" (JMLR 12, 2011); package ``openskill``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import sqlalchemy as sa

from bothost.errors import StoreError, UsageError
from bothost.ladder.outcome import Outcome, marked
from bothost.store import models
from bothost.store.ratings import Contestant, Rating, Scope, all_ratings
from bothost.store.store import Store

BATCH = 2_000
KEPT = 10
"""The first points of a history are all kept; later ones whenever the number of hands grew by a tenth."""
Place = tuple[str, Contestant]
"""A game and a contestant."""


def clear(store: Store, scope: Scope) -> None:
    """Delete all ratings of a scope, so that they can be computed again."""
    with store.begin() as connection:
        for table in (models.ratings, models.rating_history, models.rating_pairs, models.rated):
            connection.execute(table.delete().where(table.c.scope == scope))


class Ladder:
    """The ratings of a scope. ``count`` updates them."""

    def __init__(self, store: Store, scope: Scope) -> None:
        """Load the ratings. Raises UsageError without the package ``openskill``."""
        try:
            from openskill.models import PlackettLuce
        except ImportError:
            raise UsageError("rating needs openskill", advice='pip install "bothost[ladder]"') from None
        self._model: Any = PlackettLuce()
        self._store = store
        self._scope = scope
        self._ratings: dict[Place, Rating] = {
            (game, who): rating
            for game, known in all_ratings(store, scope=scope).items()
            for who, rating in known.items()
        }
        self.hands = self._total()
        """Hands of all ratings in the database, counted once for each contestant."""

    def count(self, outcomes: Iterable[Outcome], on_counted: Callable[[int], None] = lambda done: None) -> int:
        """Count outcomes that were not counted before. Returns the number of those with teams."""
        counted = 0
        waiting = iter(outcomes)
        while batch := list(islice(waiting, BATCH)):
            fresh = self._fresh(batch)
            changes = _Changes()
            for outcome in fresh:
                if outcome.teams:
                    self._rate(outcome, changes)
                    counted += 1
            self._write(fresh, changes)
            on_counted(counted)
        return counted

    def _fresh(self, batch: list[Outcome]) -> list[Outcome]:
        """Return the outcomes whose first key is not marked as counted."""
        known = marked(self._store, self._scope, [outcome.keys[0] for outcome in batch])
        fresh = []
        for outcome in batch:
            if outcome.keys[0] not in known:
                known.add(outcome.keys[0])
                fresh.append(outcome)
        return fresh

    def _rate(self, outcome: Outcome, changes: _Changes) -> None:
        game = outcome.game
        before = [[self._ratings.get((game, who), Rating()) for who in team] for team in outcome.teams]
        given = [[self._model.rating(mu=each.mu, sigma=each.sigma) for each in team] for team in before]
        after = self._model.rate(given, ranks=outcome.ranks)
        for team, old, new in zip(outcome.teams, before, after, strict=True):
            for who, rating, made in zip(team, old, new, strict=True):
                # If one contestant has both seats of a team, both copies change alike and count once.
                last = max(rating.last_us, outcome.at_us)
                fresh = Rating(float(made.mu), float(made.sigma), rating.hands + 1, last)
                self._ratings[game, who] = changes.ratings[game, who] = fresh
                if _kept(fresh.hands):
                    changes.history[game, who, fresh.hands] = fresh
        for i, team in enumerate(outcome.teams):
            for j in range(i + 1, len(outcome.teams)):
                won = 0.5 * (1 + (outcome.scores[i] > outcome.scores[j]) - (outcome.scores[i] < outcome.scores[j]))
                for a in {who for who in team if who.kind != "role"}:
                    for b in {who for who in outcome.teams[j] if who.kind != "role"}:
                        changes.add_pair(game, a, b, won)

    def _write(self, outcomes: list[Outcome], changes: _Changes) -> None:
        marks = sorted({key for outcome in outcomes for key in outcome.keys})
        with self._store.begin(writes=True) as connection:
            self._check_alone(connection)
            if marks:
                insert = self._store.insert(models.rated).on_conflict_do_nothing()
                connection.execute(insert, [{"scope": self._scope, "key": key} for key in marks])
            self._upsert(connection, models.ratings, changes.rating_rows(self._scope))
            self._upsert(connection, models.rating_history, changes.history_rows(self._scope))
            self._upsert(connection, models.rating_pairs, changes.pair_rows(self._scope), add=("hands", "wins"))
        self.hands = self._total()

    def _check_alone(self, connection: sa.Connection) -> None:
        """Raise StoreError if others changed the ratings since they were loaded: ours would replace theirs."""
        r = models.ratings
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"LOCK TABLE {r.name} IN SHARE ROW EXCLUSIVE MODE")
        counted = connection.execute(sa.select(sa.func.sum(r.c.hands)).where(r.c.scope == self._scope)).scalar() or 0
        if counted != self.hands:
            raise StoreError("another `bothost ladder` is counting, too", advice="run it again")

    def _total(self) -> int:
        return sum(rating.hands for rating in self._ratings.values())

    def _upsert(
        self, connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], add: tuple[str, ...] = ()
    ) -> None:
        if not rows:
            return
        insert = self._store.insert(table)
        key = [column.name for column in table.primary_key.columns]
        new = {
            column.name: table.c[column.name] + insert.excluded[column.name]
            if column.name in add
            else insert.excluded[column.name]
            for column in table.columns
            if column.name not in key
        }
        connection.execute(insert.on_conflict_do_update(index_elements=key, set_=new), rows)


class _Changes:
    """The changes of a batch."""

    def __init__(self) -> None:
        self.ratings: dict[Place, Rating] = {}
        self.history: dict[tuple[str, Contestant, int], Rating] = {}
        self._pairs: dict[tuple[str, Contestant, Contestant], list[float]] = {}

    def add_pair(self, game: str, a: Contestant, b: Contestant, won: float) -> None:
        """Add one hand. ``won``: the share that ``a`` won."""
        if a == b:
            return
        if b < a:
            a, b, won = b, a, 1.0 - won
        pair = self._pairs.setdefault((game, a, b), [0, 0.0])
        pair[0] += 1
        pair[1] += won

    def rating_rows(self, scope: Scope) -> list[dict[str, Any]]:
        return [
            {"scope": scope, "game": game, "contestant": who.key, **_columns(rating), "last_us": rating.last_us}
            for (game, who), rating in self.ratings.items()
        ]

    def history_rows(self, scope: Scope) -> list[dict[str, Any]]:
        return [
            {"scope": scope, "game": game, "contestant": who.key, **_columns(rating), "at_us": rating.last_us}
            for (game, who, _), rating in self.history.items()
        ]

    def pair_rows(self, scope: Scope) -> list[dict[str, Any]]:
        return [
            {"scope": scope, "game": game, "contestant": a.key, "opponent": b.key, "hands": hands, "wins": wins}
            for (game, a, b), (hands, wins) in self._pairs.items()
        ]


def _columns(rating: Rating) -> dict[str, Any]:
    return {"mu": rating.mu, "sigma": rating.sigma, "hands": rating.hands}


def _kept(hands: int) -> bool:
    if hands <= KEPT:
        return True
    return math.floor(math.log(hands, 1.1)) != math.floor(math.log(hands - 1, 1.1))
