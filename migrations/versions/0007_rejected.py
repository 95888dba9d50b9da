"""An index of refused moves alone: exports ask for them page by page, and there are few."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    refused = sa.text("kind = 'rejected'")
    op.create_index("ix_outcomes_rejected", "outcomes", ["decision_id"], sqlite_where=refused, postgresql_where=refused)
