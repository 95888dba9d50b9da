"""An index of the decisions of fallbacks alone: lists of hands ask for them, and there are few."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    rare = sa.text("fallback IS NOT NULL")
    op.create_index("ix_decisions_fallback", "decisions", ["game_id", "seat"], sqlite_where=rare, postgresql_where=rare)
