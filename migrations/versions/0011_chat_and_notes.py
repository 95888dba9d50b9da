"""What players at a table said, and what an operator noted about opponents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

KEY = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "chat",
        sa.Column("id", KEY, nullable=False),
        sa.Column("game_id", KEY, nullable=False),
        sa.Column("seat", sa.SmallInteger, nullable=False),
        sa.Column("player", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("game_id", "seat", "id", name="pk_chat"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "notes",
        sa.Column("lobby", sa.Text, nullable=False),
        sa.Column("player", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("lobby", "player", "number", name="pk_notes"),
        sqlite_with_rowid=False,
        comment="What an operator noted about an opponent.",
    )
