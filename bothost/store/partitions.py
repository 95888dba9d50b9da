"""Monthly partitions of the log on PostgreSQL, by the time in the uuid7 keys.

Outcomes are partitioned by ``decision_id``, all other tables by ``game_id``. ``bothost db upgrade`` and every host make
partitions ahead of time. A row without a partition (all hosts were off for long, or a clock is wrong) goes to the
default partition, and moves to its month when that is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

KEY_OF = {
    "games": "game_id",
    "game_ends": "game_id",
    "events": "game_id",
    "snapshots": "game_id",
    "decisions": "game_id",
    "outcomes": "decision_id",
}
"""Table → its partition key."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MONTHS_AHEAD = 3
SETTINGS_OF = {"decisions": "toast_tuple_target = 8160"}
"""Table → storage parameters of its partitions. By default PostgreSQL would compress rows above 2 kB."""
LOCK = 0x626F7468_6F7374
"""Number of the advisory lock that is held while partitions are made."""

_KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
Execute = Callable[[str], Sequence[Sequence[Any]]]
"""Runs a statement inside a transaction and returns its rows."""


def least_key(moment: datetime) -> UUID:
    """Return the smallest uuid7 of a moment; before 1970, the smallest of all."""
    return UUID(int=max(0, (moment - EPOCH) // timedelta(milliseconds=1)) << 80)


def month_of(moment: datetime, later: int = 0) -> datetime:
    """Return the start of a moment's month, or of the month ``later`` months after it, in UTC."""
    moment = moment.astimezone(UTC)
    months = moment.year * 12 + moment.month - 1 + later
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def make_ahead(execute: Execute, now: datetime | None = None) -> list[str]:
    """Make the missing partitions of this month and the next ``MONTHS_AHEAD``. Returns their names.

    ``execute`` must be inside a transaction.
    """
    now = now or datetime.now(UTC)
    execute(f"SELECT pg_advisory_xact_lock({LOCK})")
    made = []
    for table in KEY_OF:
        known = partitions(execute, table)
        for later in range(MONTHS_AHEAD + 1):
            month = month_of(now, later)
            start, end = least_key(month), least_key(month_of(month, 1))
            # A host whose clock was wrong may have made months that are far ahead.
            if not any(part.start < end and start < part.end for part in known):
                made.append(make(execute, table, f"{table}_{month:%Y_%m}", start, end))
    return made


class Partition(NamedTuple):
    """A partition, from the first key to the last, which is excluded."""

    name: str
    start: UUID
    end: UUID


def partitions(execute: Execute, table: str) -> list[Partition]:
    """Return a table's partitions except the default one, oldest first."""
    rows = execute(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        f"WHERE i.inhparent = '{table}'::regclass"
    )
    found = []
    for name, bound in rows:
        if bound != "DEFAULT":
            *first, end = _KEY.findall(bound)  # the oldest partition has no first key
            found.append(Partition(str(name), UUID(first[0]) if first else UUID(int=0), UUID(end)))
    return sorted(found, key=lambda partition: partition.end)


def make(execute: Execute, table: str, name: str, start: UUID, end: UUID) -> str:
    """Create a table, move rows from the default partition into it, and attach it as a partition.

    Unlike CREATE TABLE … PARTITION OF, attaching does not wait for readers and writers of other partitions.
    """
    key = KEY_OF[table]
    settings = f" WITH ({SETTINGS_OF[table]})" if table in SETTINGS_OF else ""
    execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS){settings}")
    strays = f"DELETE FROM {table}_default WHERE {key} >= '{start}' AND {key} < '{end}' RETURNING *"
    execute(f"WITH strays AS ({strays}) INSERT INTO {name} SELECT * FROM strays")
    execute(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ('{start}') TO ('{end}')")
    return name
