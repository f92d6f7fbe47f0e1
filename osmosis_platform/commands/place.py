"""Where a platform has its data: the options `--data` and `--database`, and what they open.

A password is never typed on the command line, which every user of the machine can read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from .options import gathered, json_option, needs_extra

if TYPE_CHECKING:
    from sqlalchemy import URL
    from sqlalchemy.orm import Session

    from ..database.connection import Database

DATA_VARIABLE = "OSMOSIS_PLATFORM_DATA"
DATABASE_VARIABLE = "OSMOSIS_PLATFORM_DATABASE"
PASSWORD_FILE_VARIABLE = "OSMOSIS_PLATFORM_DATABASE_PASSWORD_FILE"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class DataPlace:
    """The data folder of a platform, and its database where that is not in it."""

    data: Path
    url: URL | None = field(default=None, repr=False)

    @property
    def database_shown(self) -> str:
        """What a message calls the database."""
        from ..database.connection import render_url

        return f"--data {self.data}" if self.url is None else f"--database {render_url(self.url)}"

    def connect(self, silence_s: float = inf) -> Database:
        """Return the database, which need not be reachable."""
        from ..database.connection import Database

        if self.url is not None:
            return Database(self.url, silence_s=silence_s)
        try:
            return Database.in_folder(self.data)
        except OSError as error:
            raise click.ClickException(f"--data {self.data}: {error.strerror}") from None


def _place(
    data: Path | None, database: str | None, database_password_file: Path | None
) -> DataPlace:
    url = None if database is None else _address(database, database_password_file)
    if database is None and database_password_file is not None:
        raise click.UsageError("--database-password-file needs --database")
    return DataPlace(data or data_home() / "platform", url)


def data_home() -> Path:
    """Return where the data of a user's platforms are, each in a folder."""
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "osmosis"


_OPTIONS = (
    click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        envvar=DATA_VARIABLE,
        metavar="DIR",
        help=f"The platform's folder: database, datasets, key. Also by {DATA_VARIABLE}; by default "
        "osmosis/platform in the user's data folder.",
    ),
    click.option(
        "--database",
        envvar=DATABASE_VARIABLE,
        metavar="URL",
        help="A PostgreSQL database, as postgresql://osmosis@db.example.com/osmosis, in place of "
        f"the folder's SQLite. Also by {DATABASE_VARIABLE}, where alone the URL may have the "
        "password.",
    ),
    click.option(
        "--database-password-file",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar=PASSWORD_FILE_VARIABLE,
        metavar="FILE",
        help=f"A file with the password of --database. Also by {PASSWORD_FILE_VARIABLE}; "
        "PGPASSFILE and ~/.pgpass serve too.",
    ),
)


def place_options(function: F) -> F:
    """Give a command what all have: where the platform's data is, as `place`, and `--json`."""
    return gathered("place", _place, _OPTIONS)(json_option(needs_extra(function)))


def _address(text: str, password_file: Path | None) -> URL:
    """Return the URL of the database; refuse a password that was typed, without repeating it."""
    if not find_spec("sqlalchemy"):
        raise _no_extra()
    from ..database.connection import AddressProblem, parse_address

    source = click.get_current_context().get_parameter_source("database")
    was_typed = source is ParameterSource.COMMANDLINE
    name = "--database" if was_typed else DATABASE_VARIABLE
    try:
        url = parse_address(text, password_file)
        typed_password = was_typed and ("password" in url.query or parse_address(text).password)
    except AddressProblem as error:
        raise click.UsageError(f"{name}: {error}") from None
    if typed_password:
        raise click.UsageError(
            "--database: every user of this machine can read a password there: write it in the "
            f"file of --database-password-file, or the whole URL in {DATABASE_VARIABLE}"
        )
    if not find_spec("psycopg"):
        raise _no_extra()
    return url


def _no_extra() -> click.ClickException:
    install = "pip install 'pytest-osmosis[platform,postgres]'"
    return click.ClickException(f"--database needs an extra: {install}")


@contextmanager
def connected(place: DataPlace, silence_s: float = inf) -> Iterator[Database]:
    """Open the database as it is; what is wrong with it is one sentence."""
    from sqlalchemy.exc import DBAPIError

    from ..database.schema import SchemaProblem

    database = place.connect(silence_s)
    try:
        yield database
    except SchemaProblem as error:
        raise click.ClickException(f"{place.database_shown}: {error}") from None
    except DBAPIError as error:
        message = next(iter(str(error.orig).splitlines()), type(error.orig).__name__)
        raise click.ClickException(f"{place.database_shown}: the database: {message}") from None
    finally:
        database.close()


@contextmanager
def opened(place: DataPlace, silence_s: float = inf) -> Iterator[Database]:
    """Open the database with its tables, which must be those of this version."""
    with connected(place, silence_s) as database:
        from ..database.schema import prepare

        prepare(database)
        yield database


@contextmanager
def changing(place: DataPlace) -> Iterator[Session]:
    """Open a transaction in which accounts are changed; what they refuse is a usage error."""
    with accounts_opened(place) as database, database.writing() as session:
        yield session


@contextmanager
def looking(place: DataPlace) -> Iterator[Session]:
    """Open a session in which accounts are looked up."""
    with accounts_opened(place) as database, database.reading() as session:
        yield session


@contextmanager
def accounts_opened(place: DataPlace) -> Iterator[Database]:
    """Open the database; what accounts refuse is an error of the command."""
    from ..accounts.registry import AccountError, WrongValue

    try:
        with opened(place) as database:
            yield database
    except WrongValue as error:
        raise click.UsageError(str(error)) from None
    except AccountError as error:
        raise click.ClickException(str(error)) from None
