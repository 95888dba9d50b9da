"""Models: versions with their files and lineage, and what aliases stand for, now and before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("strategy", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("files", sa.Text, nullable=False),
        sa.Column("encoder_version", sa.Integer, nullable=True),
        sa.Column("lineage", sa.Text, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("strategy", "version", name="pk_models"),
    )
    op.create_index("ix_models_strategy_sha256", "models", ["strategy", "sha256"], unique=True)
    op.create_index("ix_models_sha256", "models", ["sha256"])
    op.create_table(
        "model_files",
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("sha256", "part", name="pk_model_files"),
        comment="The content of models' files by its sha256, in parts: every host of this database can fetch it.",
    )
    op.create_table(
        "model_aliases",
        sa.Column("strategy", sa.Text, nullable=False),
        sa.Column("alias", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("version", sa.Text, nullable=True),
        sa.Column("sha256", sa.Text, nullable=True),
        sa.Column("share", sa.Double, nullable=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("strategy", "alias", "number", name="pk_model_aliases"),
        sqlite_with_rowid=False,
        comment="Insert-only: an alias stands for what its highest number says.",
    )
