"""Where the database is: a file in the data folder, or a PostgreSQL server by its URL.

The password of a URL is in no text that is shown.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

DRIVER = "postgresql+psycopg"
_SCHEMES = ("postgresql", "postgres", DRIVER)


class AddressProblem(Exception):
    """A URL or a password that cannot be used; a sentence without either."""


def parse_address(text: str, password_file: Path | None = None) -> URL:
    """Return the URL of a PostgreSQL database, with the password that a file has.

    Raises:
        AddressProblem: when it is no such URL, or has a password besides.
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


def shown(url: URL) -> str:
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
