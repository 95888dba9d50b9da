"""The ladder: ratings, their history, head-to-head counts, and which hands were counted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

KEY = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "ratings",
        *_contestant(),
        sa.Column("mu", sa.Double, nullable=False),
        sa.Column("sigma", sa.Double, nullable=False),
        sa.Column("hands", sa.Integer, nullable=False),
        sa.Column("last_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("scope", "game", "contestant", name="pk_ratings"),
        sqlite_with_rowid=False,
        comment="What the ladder knows now; its rows are replaced, and can be made again from the log.",
    )
    op.create_table(
        "rating_history",
        *_contestant(),
        sa.Column("hands", sa.Integer, nullable=False),
        sa.Column("mu", sa.Double, nullable=False),
        sa.Column("sigma", sa.Double, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("scope", "game", "contestant", "hands", name="pk_rating_history"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rating_pairs",
        *_contestant(),
        sa.Column("opponent", sa.Text, nullable=False),
        sa.Column("hands", sa.Integer, nullable=False),
        sa.Column("wins", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("scope", "game", "contestant", "opponent", name="pk_rating_pairs"),
        sqlite_with_rowid=False,
        comment="Head to head, each pair once; a draw is half a win.",
    )
    op.create_table(
        "rated",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("key", KEY, nullable=False),
        sa.PrimaryKeyConstraint("scope", "key", name="pk_rated"),
        sqlite_with_rowid=False,
        comment="Hands and deals that the ladder has counted.",
    )


def _contestant() -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in ("scope", "game", "contestant")]
