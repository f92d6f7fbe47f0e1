"""The first tables: those of the models, since no version before was released.

The first change of the tables after a release writes out here what `create_all` makes now.
"""

from __future__ import annotations

from alembic import op

from osmosis_platform.database.models import Base

revision = "0006"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    Base.metadata.create_all(op.get_bind())
