"""Why the database refused: for the log, and as a state. No value is ever in it."""

from __future__ import annotations

import sqlite3
from typing import Literal

from sqlalchemy.exc import OperationalError

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
