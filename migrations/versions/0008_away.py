"""Who was away from a hand: at these seats the lobby may have moved, and such a move is not the player's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("game_ends", sa.Column("away", sa.Text, nullable=True))
