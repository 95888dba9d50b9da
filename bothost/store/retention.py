"""Delete all rows of hands that started before a date, in small transactions, while hosts run.

On PostgreSQL, partitions that are entirely older are dropped, which is cheap. Rows are deleted only from the partition
of the date. On SQLite the file keeps its size, and new rows reuse the space.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import sqlalchemy as sa

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable, UsageError
from bothost.store import models, ratings
from bothost.store.partitions import KEY_OF, Partition, least_key, partitions
from bothost.store.query import started_us_of
from bothost.store.store import Store

HAND_OF = {"chat": "game_id", **KEY_OF}
"""Table → the key by which its rows are old. Chat is no partitioned table: its rows are few."""
YOUNGEST = timedelta(days=1)
"""Hands that started more recently may still be running."""
HANDS_AT_ONCE = 100
LOCK_WAIT_MS = 1000
LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code of a lock that could not be had in time."""


class Pruned(msgspec.Struct, frozen=True):
    """What was deleted, or would be in a dry run."""

    before: datetime
    rows: dict[str, int]
    """By table."""
    partitions: tuple[str, ...]
    """Dropped partitions (PostgreSQL)."""


def prune(settings: StoreSettings, before: datetime, *, dry_run: bool = False) -> Pruned:
    """Delete every hand that started before a moment, with its events, decisions and their outcomes.

    ``dry_run``: only count. Raises UsageError if such hands may still be running, StoreUnavailable and SchemaOutdated.
    """
    if before > datetime.now(UTC) - YOUNGEST:
        raise UsageError(
            f"hands that started before {before.isoformat()} may still be running",
            advice="give a time more than a day ago",
        )
    bound = least_key(before)
    with Store.open(settings) as store:
        rows = _count(store, bound)
        old = _old_partitions(store, bound)
        if not dry_run:
            _delete_crossing_outcomes(store, bound)
            _drop(store, old)
            _delete_hands(store, bound)
    return Pruned(before, rows, tuple(part.name for part in old))


def _crossing(bound: UUID) -> Any:
    """Decisions that were made after the bound in hands that started before it. Few hands are still played then."""
    d, g, e = models.decisions, models.games, models.game_ends
    over = sa.exists().where(
        e.c.game_id == g.c.game_id, e.c.seat == g.c.seat, e.c.ended_us < started_us_of(bound.bytes)
    )
    hands = sa.select(g.c.game_id).where(g.c.game_id < bound.bytes, ~over)
    return sa.select(d.c.id).where(d.c.game_id.in_(hands), d.c.id >= bound.bytes)


def _count(store: Store, bound: UUID) -> dict[str, int]:
    counts: dict[str, int] = {}
    with store.begin() as connection:
        for name, key in HAND_OF.items():
            table = models.metadata.tables[name]
            old = table.c[key] < bound.bytes
            if name == "outcomes":
                old = old | table.c.decision_id.in_(_crossing(bound))
            counts[name] = connection.execute(sa.select(sa.func.count()).select_from(table).where(old)).scalar_one()
    return counts


def _old_partitions(store: Store, bound: UUID) -> list[Partition]:
    if store.engine.dialect.name != "postgresql":
        return []
    with store.begin() as connection:
        return [
            part
            for table in KEY_OF
            for part in partitions(lambda query: connection.exec_driver_sql(query).all(), table)
            if part.end <= bound
        ]


def _drop(store: Store, old: list[Partition]) -> None:
    """Drop each partition in its own transaction, so that locks on the table are short.

    While a transaction waits for such a lock, all later ones wait behind it, hosts that write too. So this does not
    wait for a reader that takes hours. Raises StoreError then.
    """
    for name, _, end in old:
        try:
            with store.begin() as connection:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}")
                if name.startswith("games_"):
                    ratings.forget_hands(connection, models.games.c.game_id < end.bytes)
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
        except StoreUnavailable as error:
            if getattr(getattr(error.__cause__, "orig", None), "sqlstate", "") != LOCK_NOT_AVAILABLE:
                raise
            advice = "wait until it is done, as pg_dump is after a while, then run the command again"
            raise StoreError(
                f"another process reads the log, so {name} cannot be dropped now", advice=advice
            ) from error


def _delete_crossing_outcomes(store: Store, bound: UUID) -> None:
    key = models.outcomes.c.decision_id
    with store.begin() as connection:  # the search may take long, so it has no write lock
        ids = connection.execute(_crossing(bound)).scalars().all()
    for at in range(0, len(ids), HANDS_AT_ONCE):
        with store.begin() as connection:
            connection.execute(models.outcomes.delete().where(key.in_(ids[at : at + HANDS_AT_ONCE])))


def _delete_hands(store: Store, bound: UUID) -> None:
    """Delete the oldest hands first, ``HANDS_AT_ONCE`` per transaction. ``games`` comes last: it lists what is left."""
    games = models.games
    oldest = sa.select(games.c.game_id).where(games.c.game_id < bound.bytes).order_by(games.c.game_id)
    while True:
        with store.begin(writes=True) as connection:
            keys = connection.execute(oldest.limit(HANDS_AT_ONCE)).scalars().all()
            upto = keys[-1] if len(keys) == HANDS_AT_ONCE else None
            ratings.forget_hands(connection, _old(games.c.game_id, upto, bound))
            for name in ("chat", "outcomes", "decisions", "snapshots", "events", "game_ends", "games"):
                table = models.metadata.tables[name]
                connection.execute(table.delete().where(_old(table.c[HAND_OF[name]], upto, bound)))
        if upto is None:
            return


def _old(key: sa.Column[bytes], upto: bytes | None, bound: UUID) -> sa.ColumnElement[bool]:
    """Whether a key is at most ``upto``, or less than the bound if that is None."""
    return key < bound.bytes if upto is None else key <= upto
