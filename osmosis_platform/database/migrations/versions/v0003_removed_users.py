"""When a user was removed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column."""
    op.add_column("users", sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True))
