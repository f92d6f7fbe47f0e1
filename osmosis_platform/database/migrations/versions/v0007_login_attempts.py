"""The attempts at logins: a table of its own, which the first tables may have already."""

from __future__ import annotations

from alembic import op

from osmosis_platform.database.models import Base, LoginAttempts

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the table."""
    found = Base.metadata.tables[LoginAttempts.__tablename__]
    found.create(op.get_bind(), checkfirst=True)
