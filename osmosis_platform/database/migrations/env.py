"""What Alembic runs: the migrations, on the connection that `schema` gives it."""

from __future__ import annotations

from alembic import context

from osmosis_platform.database.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
