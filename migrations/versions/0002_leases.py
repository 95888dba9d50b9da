"""Leases: which host may connect an account."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("lobby", sa.Text, nullable=False),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("lobby", "account", name="pk_leases"),
        sqlite_with_rowid=False,
        comment="Which host may connect an account, and until when by the database's clock.",
    )
