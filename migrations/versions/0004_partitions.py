"""Partitions of the log by time on PostgreSQL: what is there becomes the first partition, as it is.

Nothing is copied: the old table is attached as the partition of everything before a boundary, the first of the month
after its newest row (and after today). bothost/store/partitions.py makes the months that follow.
"""

from __future__ import annotations

import datetime
import uuid

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = {
    "games": (("game_id", "seat"), ("lobby", "account", "table", "hand")),
    "game_ends": (("game_id", "seat"), ()),
    "events": (("game_id", "seat", "seq"), ()),
    "snapshots": (("game_id", "seat", "seq", "at_us"), ()),
    "decisions": (("game_id", "seat", "seq", "substep", "attempt", "role"), ("id",)),
    "outcomes": (("decision_id", "kind", "at_us"), ()),
}
"""Table → primary key, whose first column is a uuid7 that the partitions go by, and the columns of its index."""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        month = month_after_all()
        boundary = uuid.UUID(int=int(month.timestamp() * 1000) << 80)
        for table, (key, index) in TABLES.items():
            partition(table, f"{table}_until_{month:%Y_%m}", key, index, boundary)


def month_after_all() -> datetime.datetime:
    """The first of the month after today and after every row."""
    newest = [datetime.datetime.now(datetime.UTC)]
    for table, (key, _) in TABLES.items():
        query = f"SELECT {key[0]}::text FROM {table} ORDER BY {key[0]} DESC LIMIT 1"
        found = op.get_bind().exec_driver_sql(query).scalar()
        if found is not None:
            newest.append(datetime.datetime.fromtimestamp((uuid.UUID(found).int >> 80) / 1000.0, datetime.UTC))
    latest = max(newest)
    return datetime.datetime(latest.year + latest.month // 12, latest.month % 12 + 1, 1, tzinfo=datetime.UTC)


def partition(table: str, old: str, key: tuple[str, ...], index: tuple[str, ...], boundary: uuid.UUID) -> None:
    by, columns, indexed = key[0], quoted(key), quoted(index)
    name = f"ix_{table}_{'_'.join(index)}"
    for statement in (
        f"ALTER TABLE {table} RENAME TO {old}",
        f"ALTER TABLE {old} RENAME CONSTRAINT pk_{table} TO pk_{old}",
        *([f"ALTER INDEX {name} RENAME TO ix_{old}"] if index else []),
        f"CREATE TABLE {table} (LIKE {old} INCLUDING DEFAULTS) PARTITION BY RANGE ({by})",
        f"ALTER TABLE {table} ADD CONSTRAINT pk_{table} PRIMARY KEY ({columns})",
        *([f"CREATE INDEX {name} ON {table} ({indexed})"] if index else []),
        f"ALTER TABLE {table} ATTACH PARTITION {old} FOR VALUES FROM (MINVALUE) TO ('{boundary}')",
        f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT",
    ):
        op.execute(statement)


def quoted(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in columns)
