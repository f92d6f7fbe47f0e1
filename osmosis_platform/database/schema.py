"""Bringing the tables of a database up to date."""

from __future__ import annotations

from sqlalchemy import inspect, text

from .connection import Database

NEWEST = "0002"
"""The revision of the tables that this version uses."""


class SchemaProblem(Exception):
    """Tables that this version cannot use; a sentence for the operator."""


def upgrade(database: Database) -> None:
    """Make the tables, or change those of an older version.

    Raises:
        SchemaProblem: when a newer version has changed them already.
    """
    if _revision(database) == NEWEST:
        return
    from alembic import command  # takes time that only the first start needs
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "osmosis_platform.database:migrations")
    with (
        database.engine.connect().execution_options(osmosis_writes=True) as connection,
        connection.begin(),
    ):
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError:
            raise SchemaProblem(
                "the database is of a newer version of the platform; "
                "upgrade with `pip install --upgrade 'pytest-osmosis[platform]'`"
            ) from None


def _revision(database: Database) -> str | None:
    with database.engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return found
