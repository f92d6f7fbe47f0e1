"""Why the database refused: for the log, and whether its disk is full. No value is ever in it."""

from __future__ import annotations

import sqlite3


def cause(error: Exception) -> str:
    """Return the type of an error, and what the driver says: its sentence or, of others, its type.

    Sentences of SQLite name what it lacks, as "database or disk is full", and no value.
    """
    found, original = type(error).__name__, getattr(error, "orig", None)
    if isinstance(original, sqlite3.OperationalError):
        return f"{found}: {original}"
    return found if original is None else f"{found}: {type(original).__name__}"


def is_disk_full(error: Exception) -> bool:
    """Return whether there is no room to write."""
    return cause(error).endswith((": database or disk is full", ": DiskFull"))
