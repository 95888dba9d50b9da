"""The decision log: hands, their events and snapshots, decisions, outcomes; and the adapters' memos."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")


def column(name: str, kind: Any, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=null)


def upgrade() -> None:
    create_games()
    create_events()
    create_decisions()
    create_memos()


def create_games() -> None:
    op.create_table(
        "games",
        column("game_id", KEY),
        column("host", sa.Text),
        column("lobby", sa.Text),
        column("account", sa.Text),
        column("table", sa.Text),
        column("hand", sa.Text),
        column("game", sa.Text),
        column("rules", sa.Text),
        column("format_version", sa.Integer),
        column("seat", sa.SmallInteger),
        column("players", sa.Text),
        column("seed", sa.BigInteger),
        column("strategy", sa.Text),
        column("strategy_version", sa.Text),
        column("model_sha256", sa.Text, null=True),
        column("config_hash", sa.Text),
        column("attributes", sa.Text),
        column("started_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("game_id", "seat", name="pk_games"),
    )
    op.create_index("ix_games_lobby_account_table_hand", "games", ["lobby", "account", "table", "hand"])
    op.create_table(
        "game_ends",
        column("game_id", KEY),
        column("seat", sa.SmallInteger),
        column("reason", sa.Text),
        column("scores", sa.Text, null=True),
        column("ended_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("game_id", "seat", name="pk_game_ends"),
        sqlite_with_rowid=False,
    )


def create_events() -> None:
    op.create_table(
        "events",
        column("game_id", KEY),
        column("seat", sa.SmallInteger),
        column("seq", sa.Integer),
        column("events", sa.Text),
        sa.PrimaryKeyConstraint("game_id", "seat", "seq", name="pk_events"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "snapshots",
        column("game_id", KEY),
        column("seat", sa.SmallInteger),
        column("seq", sa.Integer),
        column("view", sa.Text),
        column("at_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("game_id", "seat", "seq", "at_us", name="pk_snapshots"),
    )


def create_decisions() -> None:
    op.create_table(
        "decisions",
        column("id", KEY),
        column("game_id", KEY),
        column("seat", sa.SmallInteger),
        column("seq", sa.Integer),
        column("substep", sa.Integer),
        column("attempt", sa.Integer),
        column("role", sa.Text),
        column("host", sa.Text),
        column("lobby", sa.Text),
        column("table", sa.Text),
        column("request_id", sa.Text),
        column("game", sa.Text),
        column("phase", sa.Text),
        column("state_hash", sa.BigInteger),
        column("view", sa.LargeBinary),
        column("legal", sa.LargeBinary),
        column("policy", sa.LargeBinary, null=True),
        column("action_values", sa.LargeBinary, null=True),
        column("value", sa.Double, null=True),
        column("action", sa.Integer),
        column("notation", sa.Text),
        column("strategy", sa.Text),
        column("strategy_version", sa.Text),
        column("model_sha256", sa.Text, null=True),
        column("encoder_version", sa.Integer, null=True),
        column("stats", sa.Text, null=True),
        column("fallback", sa.Text, null=True),
        column("budget_ms", sa.Double, null=True),
        column("elapsed_ms", sa.Double),
        column("config_hash", sa.Text),
        column("seed", sa.BigInteger),
        column("raw", sa.LargeBinary, null=True),
        column("at_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("game_id", "seat", "seq", "substep", "attempt", "role", name="pk_decisions"),
    )
    op.create_index("ix_decisions_id", "decisions", ["id"])
    op.create_table(
        "outcomes",
        column("decision_id", KEY),
        column("kind", sa.Text),
        column("detail", sa.Text, null=True),
        column("at_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("decision_id", "kind", "at_us", name="pk_outcomes"),
        sqlite_with_rowid=False,
    )


def create_memos() -> None:
    op.create_table(
        "memos",
        column("lobby", sa.Text),
        column("account", sa.Text),
        column("memo", sa.Text),
        column("at_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("lobby", "account", name="pk_memos"),
        sqlite_with_rowid=False,
        comment="What adapters asked to remember for an account; the one table whose rows are replaced.",
    )
