"""Which scheduler executes a run, and until when that holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("runs", sa.Column("executed_by", sa.String(length=32), nullable=True))
    op.add_column("runs", sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True))
