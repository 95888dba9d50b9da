"""The tables of the database, the same on SQLite and PostgreSQL.

The columns of the log tables are the fields of :mod:`bothost.store.records`, in the same order. The log tables are
insert-only, and their primary keys identify rows that are written twice.

Keys are uuid7. They grow with time, so the index entries of live hands stay near the end of the tree. On SQLite the
wide tables keep their hidden rowid: rows are appended densely, and only the small primary-key index is written in
several places. (Measured with 1,000 interleaved hands: 73 k rows/s, against 31 k for WITHOUT ROWID tables.) The narrow
tables are WITHOUT ROWID.
"""

from __future__ import annotations

import uuid
from typing import Any, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from bothost.store.records import (
    ChatRecord,
    DecisionRecord,
    EventsRecord,
    GameEndRecord,
    GameRecord,
    OutcomeRecord,
    SnapshotRecord,
)


class Key(TypeDecorator[bytes]):
    """A uuid as 16 bytes in Python: BLOB on SQLite, uuid on PostgreSQL."""

    impl = sa.LargeBinary(16)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.Uuid(as_uuid=True))
        return dialect.type_descriptor(sa.LargeBinary(16))

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> Any:
        return uuid.UUID(bytes=value) if value is not None and dialect.name == "postgresql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        return value.bytes if isinstance(value, uuid.UUID) else value


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


_BY_NAME: dict[str, Any] = {
    **dict.fromkeys(("id", "game_id", "decision_id", "key"), Key),
    **dict.fromkeys(("seed", "state_hash"), sa.BigInteger),
    "seat": sa.SmallInteger,
}
_BY_TYPE: dict[Any, Any] = {int: sa.Integer, float: sa.Double, bytes: sa.LargeBinary}


def _column(name: str, kind: Any) -> sa.Column[Any]:
    """A column for values of the Python type ``kind``. Times, keys, seats and seeds are known by their names."""
    kinds = get_args(kind)
    null = type(None) in kinds
    sql = sa.BigInteger if name.endswith("_us") else _BY_NAME.get(name)
    return sa.Column(name, sql or _BY_TYPE.get(kinds[0] if null else kind, sa.Text), nullable=null)


def _table(
    name: str,
    columns: dict[str, Any] | type[msgspec.Struct],
    *,
    key: tuple[str, ...],
    indexes: tuple[sa.Index, ...] = (),
    wide: bool = False,
    comment: str | None = None,
) -> sa.Table:
    """``columns`` has the Python type of each column, or is the type of the records that are the rows."""
    if not isinstance(columns, dict):
        columns = {field.name: field.type for field in msgspec.structs.fields(columns)}
    made = [_column(column, kind) for column, kind in columns.items()]
    parts = [*made, sa.PrimaryKeyConstraint(*key), *indexes]
    return sa.Table(name, metadata, *parts, sqlite_with_rowid=wide, comment=comment)


games = _table(
    "games",
    GameRecord,
    key=("game_id", "seat"),
    # A restarted host looks up its hands by name. Not unique: lobbies may use names again.
    indexes=(sa.Index(None, "lobby", "account", "table", "hand"),),
    wide=True,
)
game_ends = _table("game_ends", GameEndRecord, key=("game_id", "seat"))
events = _table("events", EventsRecord, key=("game_id", "seat", "seq"))
snapshots = _table("snapshots", SnapshotRecord, key=("game_id", "seat", "seq", "at_us"), wide=True)
decisions = _table(
    "decisions",
    DecisionRecord,
    key=("game_id", "seat", "seq", "substep", "attempt", "role"),
    indexes=(
        sa.Index(None, "id"),  # BRIN on PostgreSQL; declaring that here would import its dialect in every process
        sa.Index("ix_decisions_fallback", "game_id", "seat", sqlite_where=sa.text("fallback IS NOT NULL")),
    ),
    wide=True,
)
outcomes = _table(
    "outcomes",
    OutcomeRecord,
    key=("decision_id", "kind", "at_us"),
    # The migration declares it for PostgreSQL; here that would import its dialect in every process.
    indexes=(sa.Index("ix_outcomes_rejected", "decision_id", sqlite_where=sa.text("kind = 'rejected'")),),
)
chat = _table("chat", ChatRecord, key=("game_id", "seat", "id"))

notes = _table(
    "notes",
    {"lobby": str, "player": str, "number": int, "text": str, "at_us": int},
    key=("lobby", "player", "number"),
    comment="What an operator noted about an opponent.",
)
memos = _table(
    "memos",
    {"lobby": str, "account": str, "memo": str, "at_us": int},
    key=("lobby", "account"),
    comment="What adapters asked to remember for an account; the one table whose rows are replaced.",
)
leases = _table(
    "leases",
    {"lobby": str, "account": str, "holder": str, "expires_us": int},
    key=("lobby", "account"),
    comment="Which host may connect an account, and until when by the database's clock.",
)

models = _table(
    "models",
    {
        "strategy": str,
        "version": str,
        "sha256": str,
        "files": str,
        "encoder_version": int | None,
        "lineage": str,
        "created_us": int,
    },
    key=("strategy", "version"),
    indexes=(sa.Index("ix_models_strategy_sha256", "strategy", "sha256", unique=True), sa.Index(None, "sha256")),
    wide=True,
)
model_files = _table(
    "model_files",
    {"sha256": str, "part": int, "content": bytes},
    key=("sha256", "part"),
    wide=True,
    comment="The content of models' files by its sha256, in parts: every host of this database can fetch it.",
)
model_aliases = _table(
    "model_aliases",
    {
        "strategy": str,
        "alias": str,
        "number": int,
        "version": str | None,
        "sha256": str | None,
        "share": float | None,
        "kind": str,
        "reason": str,
        "at_us": int,
    },
    key=("strategy", "alias", "number"),
    comment="Insert-only: an alias stands for what its highest number says.",
)
consents = _table(
    "consents",
    {"lobby": str, "player": str, "number": int, "kind": str, "reason": str, "at_us": int},
    key=("lobby", "player", "number"),
    comment="Insert-only: whether a player may be imitated is what the highest number says.",
)

ratings = _table(
    "ratings",
    {"scope": str, "game": str, "contestant": str, "mu": float, "sigma": float, "hands": int, "last_us": int},
    key=("scope", "game", "contestant"),
    comment="What the ladder knows now; its rows are replaced, and can be made again from the log.",
)
rating_history = _table(
    "rating_history",
    {"scope": str, "game": str, "contestant": str, "hands": int, "mu": float, "sigma": float, "at_us": int},
    key=("scope", "game", "contestant", "hands"),
)
rating_pairs = _table(
    "rating_pairs",
    {"scope": str, "game": str, "contestant": str, "opponent": str, "hands": int, "wins": float},
    key=("scope", "game", "contestant", "opponent"),
    comment="Head to head, each pair once; a draw is half a win.",
)
rated = _table(
    "rated",
    {"scope": str, "key": bytes},
    key=("scope", "key"),
    comment="Hands and deals that the ladder has counted.",
)

TABLE_OF: dict[type[msgspec.Struct], sa.Table] = {
    GameRecord: games,
    GameEndRecord: game_ends,
    EventsRecord: events,
    SnapshotRecord: snapshots,
    DecisionRecord: decisions,
    OutcomeRecord: outcomes,
    ChatRecord: chat,
}
"""Record type → its table."""

COLUMNS: dict[str, tuple[str, ...]] = {
    str(table.name): tuple(str(c.name) for c in table.columns) for table in TABLE_OF.values()
}
"""Columns of the log tables, in the order of the records' fields."""
