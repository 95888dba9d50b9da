"""Who agreed to be imitated: what was granted and revoked, player by player."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "consents",
        sa.Column("lobby", sa.Text, nullable=False),
        sa.Column("player", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("lobby", "player", "number", name="pk_consents"),
        sqlite_with_rowid=False,
        comment="Insert-only: whether a player may be imitated is what the highest number says.",
    )
