"""How often a run was interrupted; those that are under way were handed over by the old version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column."""
    column = sa.Column("interruptions", sa.Integer(), nullable=False, server_default=sa.text("0"))
    op.add_column("runs", column)
    op.execute("UPDATE runs SET executed_by = NULL WHERE status = 'running'")
