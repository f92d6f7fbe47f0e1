"""The tables of a database: made, checked, and brought up to date."""

from __future__ import annotations

from sqlalchemy import Connection, String, column, func, inspect, select, table

from .connection import Database

NEWEST = "0007"
"""The revision of the tables that this version uses."""
_SCRIPTS = "osmosis_platform.database:migrations"
_LOCK = 0x05105150
"""The advisory lock of PostgreSQL under which tables are changed."""
_VERSION = table("alembic_version", column("version_num", String))


class SchemaProblem(Exception):
    """Tables that this version cannot use; a sentence for the operator."""


def prepare(database: Database) -> None:
    """Make the tables of an empty database; change those of no other.

    Raises:
        SchemaProblem: when they are those of another version.
    """
    found = revision(database)
    if found == NEWEST:
        return
    if found is not None and found < NEWEST:
        raise SchemaProblem(
            f"the database is at revision {found}, and this version needs {NEWEST}: back it up, "
            "then run `osmosis platform db upgrade`"
        )
    upgrade(database)


def upgrade(database: Database) -> None:
    """Make the tables, or change those of an older version.

    Raises:
        SchemaProblem: when a newer version has changed them already.
    """
    with (
        database.engine.connect().execution_options(osmosis_writes=True) as connection,
        connection.begin(),
    ):
        _upgrade(connection)


def _upgrade(connection: Connection) -> None:
    from alembic import command  # takes time that only the first start needs
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", _SCRIPTS)
    if connection.dialect.name == "postgresql":  # another process may do the same
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError:
        raise SchemaProblem(
            "the database is of a newer version of the platform, or of one before the first "
            "release; upgrade with `pip install --upgrade 'pytest-osmosis[platform]'`"
        ) from None


def revision(database: Database) -> str | None:
    """Return the revision of the tables; None where there are none."""
    with database.reading() as session:
        has_one = inspect(session.connection()).has_table(_VERSION.name)
        return session.scalar(select(_VERSION.c.version_num)) if has_one else None


def writable_revision(database: Database, wait_ms: int) -> str | None:
    """Return it where the tables can be written too; else the error says what prevents it."""
    with database.writing(wait_ms) as session:
        return session.scalar(select(_VERSION.c.version_num).with_for_update())
