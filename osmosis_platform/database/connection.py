"""The connection to the database, its address, and why it refuses.

A transaction either reads or writes. On SQLite one that writes has the database to itself. On
PostgreSQL it has what it locks: a row that is changed by what it holds is read with `FOR UPDATE`,
which SQLite does without.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, InvalidRequestError, OperationalError
from sqlalchemy.orm import Session

BUSY_TIMEOUT_MS = 10_000
FILE_NAME = "platform.sqlite3"
_POSTGRESQL: dict[str, Any] = {
    "hide_parameters": True,  # an error would show them
    "pool_pre_ping": True,  # the server may have restarted
    "pool_size": 10,
    "max_overflow": 30,
    "pool_timeout": BUSY_TIMEOUT_MS / 1000,
    "connect_args": {"connect_timeout": 10, "application_name": "osmosis platform"},
}


class Database:
    """What opens sessions."""

    def __init__(self, url: URL | str, *, silence_s: float = inf) -> None:
        """Give up a connection on which a PostgreSQL server has sent nothing for `silence_s`."""
        address = make_url(url)
        if address.get_backend_name() == "sqlite":
            self.engine = create_engine(address, hide_parameters=True)
            _tune_sqlite(self.engine)
        else:
            self.engine = create_engine(address, **_POSTGRESQL)
            _tune_postgresql(self.engine)
            _end_silence(self.engine, silence_s)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file in the data folder."""
        return self.engine.dialect.name == "sqlite"

    @classmethod
    def in_folder(cls, data: Path) -> Database:
        """Return the SQLite database in a data folder; both only for the owner's eyes."""
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = data / FILE_NAME
        # Before SQLite makes it, which would go by the umask.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        return cls(URL.create("sqlite", database=str(path.absolute())))

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a session that changes nothing."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self, wait_ms: int = BUSY_TIMEOUT_MS) -> Iterator[Session]:
        """Open a session that is committed at its end, and rolled back when that is an error.

        On SQLite it waits so long for the transaction before it.
        """
        options = {"osmosis_writes": True, "osmosis_wait_ms": wait_ms}
        with (
            self.engine.connect().execution_options(**options) as connection,
            Session(connection, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def count(session: Session, *conditions: ColumnElement[bool]) -> int:
    """Return how many rows of a table meet conditions."""
    return session.scalar(select(func.count()).where(*conditions)) or 0


def lock(session: Session, row: object) -> bool:
    """Read a row as it is now, and keep it so in this transaction; return whether it is there."""
    try:
        session.refresh(row, with_for_update=True)
    except InvalidRequestError:  # another transaction has deleted it
        return False
    return True


def _tune_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin below, not in the driver
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        options = connection.get_execution_options()
        wait_ms = options.get("osmosis_wait_ms", BUSY_TIMEOUT_MS)
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}")
        # One that reads first and writes later could be refused without waiting.
        writes = options.get("osmosis_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _tune_postgresql(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.execute(f"SET lock_timeout = {BUSY_TIMEOUT_MS}")
        connection.execute("SET TIME ZONE 'UTC'")
        connection.commit()


def _end_silence(engine: Engine, silence_s: float) -> None:
    """Bound each wait for the server: one that hangs, or that the network has lost, closes none of
    its connections, and libpq has no limit.
    """

    class Bounded(engine.dialect.loaded_dbapi.Connection):  # type: ignore[misc, name-defined]
        def wait(self, steps: Generator[Any, Any, Any], *rest: Any, **named: Any) -> Any:
            return super().wait(self._bounded(steps), *rest, **named)

        def _bounded(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            last_answer = time.monotonic()
            try:
                wanted = next(steps)
                while True:
                    if ready := (yield wanted):  # else nothing has come for a moment
                        last_answer = time.monotonic()
                    elif time.monotonic() > last_answer + silence_s:
                        self.pgconn.finish()
                        raise engine.dialect.loaded_dbapi.OperationalError("it does not answer")
                    wanted = steps.send(ready)
            except StopIteration as end:
                return end.value

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, record: Any, words: Any, named: Any) -> Any:
        return Bounded.connect(*words, **named)


State = Literal["locked", "full", "read-only", "unreachable"]
_STATES: dict[str, State] = {
    "database is locked": "locked",
    "LockNotAvailable": "locked",
    "database or disk is full": "full",
    "DiskFull": "full",
    "attempt to write a readonly database": "read-only",
    "ReadOnlySqlTransaction": "read-only",
}
"""By what SQLite says, and by the type of error that psycopg has for it."""


def cause(error: Exception) -> str:
    """Return the type of an error, and what the driver says: its sentence or, of others, its type.

    Sentences of SQLite name what it lacks, as "database or disk is full", and no value.
    """
    found, original = type(error).__name__, getattr(error, "orig", None)
    if isinstance(original, sqlite3.OperationalError):
        return f"{found}: {original}"
    if isinstance(error, OperationalError) and getattr(original, "sqlstate", "") is None:
        return f"{found}: there is no connection to it"
    return found if original is None else f"{found}: {type(original).__name__}"


def state(error: Exception) -> State:
    """Return what keeps the database from serving."""
    return _STATES.get(cause(error).partition(": ")[2], "unreachable")


DRIVER = "postgresql+psycopg"
_SCHEMES = ("postgresql", "postgres", DRIVER)


class AddressProblem(Exception):
    """A URL or a password that cannot be used; a sentence without either."""


def parse_address(text: str, password_file: Path | None = None) -> URL:
    """Return the URL of a PostgreSQL database, with the password that a file has.

    Raises:
        AddressProblem: when it is no such URL, or has two passwords.
    """
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise _not_one() from None
    if url.drivername not in _SCHEMES or not url.database:
        raise _not_one()
    url = url.set(drivername=DRIVER)
    if password_file is None:
        return url
    if url.password is not None:
        raise AddressProblem("has a password, and there is a file with one: keep one of them")
    return url.set(password=_read(password_file))


def render_url(url: URL) -> str:
    """Return the URL without its password, and without what else may hold one."""
    return URL.create(
        "postgresql", username=url.username, host=url.host, port=url.port, database=url.database
    ).render_as_string()


def _not_one() -> AddressProblem:
    return AddressProblem("must be postgresql://USER@HOST/DATABASE")


def _read(path: Path) -> str:
    try:
        text = path.read_text("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise AddressProblem(f"the password file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AddressProblem(f"the password file {path} is not UTF-8") from None
    if not text:
        raise AddressProblem(f"the password file {path} is empty")
    return text
