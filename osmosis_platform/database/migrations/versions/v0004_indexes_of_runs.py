"""Indexes by which runs that are under way, and those of a workspace, are found among many."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Replace the index of when runs were submitted, which these two serve."""
    op.drop_index(op.f("ix_runs_created_at"), "runs")
    columns = ["workspace_id", "kind", "created_at", "status"]
    op.create_index("ix_runs_workspace_id", "runs", columns, unique=False)
    under_way = sa.text("completed_at IS NULL")
    op.create_index(
        "ix_runs_under_way",
        "runs",
        ["created_at"],
        unique=False,
        sqlite_where=under_way,
        postgresql_where=under_way,
    )
