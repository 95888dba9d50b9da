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
from typing import Any

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


def _column(name: str, kind: Any, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=null)


games = sa.Table(
    "games",
    metadata,
    _column("game_id", Key),
    _column("host", sa.Text),
    _column("lobby", sa.Text),
    _column("account", sa.Text),
    _column("table", sa.Text),
    _column("hand", sa.Text),
    _column("game", sa.Text),
    _column("rules", sa.Text),
    _column("format_version", sa.Integer),
    _column("seat", sa.SmallInteger),
    _column("players", sa.Text),
    _column("seed", sa.BigInteger),
    _column("strategy", sa.Text),
    _column("strategy_version", sa.Text),
    _column("model_sha256", sa.Text, null=True),
    _column("config_hash", sa.Text),
    _column("attributes", sa.Text),
    _column("started_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("game_id", "seat"),
    # A restarted host looks up its hands by name. Not unique: lobbies may use names again.
    sa.Index(None, "lobby", "account", "table", "hand"),
)

game_ends = sa.Table(
    "game_ends",
    metadata,
    _column("game_id", Key),
    _column("seat", sa.SmallInteger),
    _column("reason", sa.Text),
    _column("scores", sa.Text, null=True),
    _column("ended_us", sa.BigInteger),
    _column("away", sa.Text, null=True),
    sa.PrimaryKeyConstraint("game_id", "seat"),
    sqlite_with_rowid=False,
)

events = sa.Table(
    "events",
    metadata,
    _column("game_id", Key),
    _column("seat", sa.SmallInteger),
    _column("seq", sa.Integer),
    _column("events", sa.Text),
    sa.PrimaryKeyConstraint("game_id", "seat", "seq"),
    sqlite_with_rowid=False,
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    _column("game_id", Key),
    _column("seat", sa.SmallInteger),
    _column("seq", sa.Integer),
    _column("view", sa.Text),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("game_id", "seat", "seq", "at_us"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    _column("id", Key),
    _column("game_id", Key),
    _column("seat", sa.SmallInteger),
    _column("seq", sa.Integer),
    _column("substep", sa.Integer),
    _column("attempt", sa.Integer),
    _column("role", sa.Text),
    _column("host", sa.Text),
    _column("lobby", sa.Text),
    _column("table", sa.Text),
    _column("request_id", sa.Text),
    _column("game", sa.Text),
    _column("phase", sa.Text),
    _column("state_hash", sa.BigInteger),
    _column("view", sa.LargeBinary),
    _column("legal", sa.LargeBinary),
    _column("policy", sa.LargeBinary, null=True),
    _column("action_values", sa.LargeBinary, null=True),
    _column("value", sa.Double, null=True),
    _column("action", sa.Integer),
    _column("notation", sa.Text),
    _column("strategy", sa.Text),
    _column("strategy_version", sa.Text),
    _column("model_sha256", sa.Text, null=True),
    _column("encoder_version", sa.Integer, null=True),
    _column("stats", sa.Text, null=True),
    _column("fallback", sa.Text, null=True),
    _column("budget_ms", sa.Double, null=True),
    _column("elapsed_ms", sa.Double),
    _column("config_hash", sa.Text),
    _column("seed", sa.BigInteger),
    _column("raw", sa.LargeBinary, null=True),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("game_id", "seat", "seq", "substep", "attempt", "role"),
    sa.Index(None, "id"),  # BRIN on PostgreSQL; declaring that here would import its dialect in every process
    sa.Index("ix_decisions_fallback", "game_id", "seat", sqlite_where=sa.text("fallback IS NOT NULL")),
)

outcomes = sa.Table(
    "outcomes",
    metadata,
    _column("decision_id", Key),
    _column("kind", sa.Text),
    _column("detail", sa.Text, null=True),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("decision_id", "kind", "at_us"),
    # The migration declares it for PostgreSQL; here that would import its dialect in every process.
    sa.Index("ix_outcomes_rejected", "decision_id", sqlite_where=sa.text("kind = 'rejected'")),
    sqlite_with_rowid=False,
)

chat = sa.Table(
    "chat",
    metadata,
    _column("id", Key),
    _column("game_id", Key),
    _column("seat", sa.SmallInteger),
    _column("player", sa.Text),
    _column("text", sa.Text),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("game_id", "seat", "id"),
    sqlite_with_rowid=False,
)

notes = sa.Table(
    "notes",
    metadata,
    _column("lobby", sa.Text),
    _column("player", sa.Text),
    _column("number", sa.Integer),
    _column("text", sa.Text),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("lobby", "player", "number"),
    sqlite_with_rowid=False,
    comment="What an operator noted about an opponent.",
)

memos = sa.Table(
    "memos",
    metadata,
    _column("lobby", sa.Text),
    _column("account", sa.Text),
    _column("memo", sa.Text),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("lobby", "account"),
    sqlite_with_rowid=False,
    comment="What adapters asked to remember for an account; the one table whose rows are replaced.",
)

leases = sa.Table(
    "leases",
    metadata,
    _column("lobby", sa.Text),
    _column("account", sa.Text),
    _column("holder", sa.Text),
    _column("expires_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("lobby", "account"),
    sqlite_with_rowid=False,
    comment="Which host may connect an account, and until when by the database's clock.",
)

models = sa.Table(
    "models",
    metadata,
    _column("strategy", sa.Text),
    _column("version", sa.Text),
    _column("sha256", sa.Text),
    _column("files", sa.Text),
    _column("encoder_version", sa.Integer, null=True),
    _column("lineage", sa.Text),
    _column("created_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("strategy", "version"),
    sa.Index("ix_models_strategy_sha256", "strategy", "sha256", unique=True),
    sa.Index(None, "sha256"),
)

model_files = sa.Table(
    "model_files",
    metadata,
    _column("sha256", sa.Text),
    _column("part", sa.Integer),
    _column("content", sa.LargeBinary),
    sa.PrimaryKeyConstraint("sha256", "part"),
    comment="The content of models' files by its sha256, in parts: every host of this database can fetch it.",
)

model_aliases = sa.Table(
    "model_aliases",
    metadata,
    _column("strategy", sa.Text),
    _column("alias", sa.Text),
    _column("number", sa.Integer),
    _column("version", sa.Text, null=True),
    _column("sha256", sa.Text, null=True),
    _column("share", sa.Double, null=True),
    _column("kind", sa.Text),
    _column("reason", sa.Text),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("strategy", "alias", "number"),
    sqlite_with_rowid=False,
    comment="Insert-only: an alias stands for what its highest number says.",
)

consents = sa.Table(
    "consents",
    metadata,
    _column("lobby", sa.Text),
    _column("player", sa.Text),
    _column("number", sa.Integer),
    _column("kind", sa.Text),
    _column("reason", sa.Text),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("lobby", "player", "number"),
    sqlite_with_rowid=False,
    comment="Insert-only: whether a player may be imitated is what the highest number says.",
)

ratings = sa.Table(
    "ratings",
    metadata,
    _column("scope", sa.Text),
    _column("game", sa.Text),
    _column("contestant", sa.Text),
    _column("mu", sa.Double),
    _column("sigma", sa.Double),
    _column("hands", sa.Integer),
    _column("last_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("scope", "game", "contestant"),
    sqlite_with_rowid=False,
    comment="What the ladder knows now; its rows are replaced, and can be made again from the log.",
)

rating_history = sa.Table(
    "rating_history",
    metadata,
    _column("scope", sa.Text),
    _column("game", sa.Text),
    _column("contestant", sa.Text),
    _column("hands", sa.Integer),
    _column("mu", sa.Double),
    _column("sigma", sa.Double),
    _column("at_us", sa.BigInteger),
    sa.PrimaryKeyConstraint("scope", "game", "contestant", "hands"),
    sqlite_with_rowid=False,
)

rating_pairs = sa.Table(
    "rating_pairs",
    metadata,
    _column("scope", sa.Text),
    _column("game", sa.Text),
    _column("contestant", sa.Text),
    _column("opponent", sa.Text),
    _column("hands", sa.Integer),
    _column("wins", sa.Double),
    sa.PrimaryKeyConstraint("scope", "game", "contestant", "opponent"),
    sqlite_with_rowid=False,
    comment="Head to head, each pair once; a draw is half a win.",
)

rated = sa.Table(
    "rated",
    metadata,
    _column("scope", sa.Text),
    _column("key", Key),
    sa.PrimaryKeyConstraint("scope", "key"),
    sqlite_with_rowid=False,
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
