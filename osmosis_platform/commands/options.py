"""What the commands share: the data folder, `--json`, and a sentence where the extra is missing."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from ..database.connection import Database

NEEDED = ("alembic", "cryptography", "sqlalchemy", "starlette", "uvicorn")
DATA_VARIABLE = "OSMOSIS_PLATFORM_DATA"
F = TypeVar("F", bound=Callable[..., Any])


def default_data() -> Path:
    """Return the folder of a platform that is given none."""
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "osmosis" / "platform"


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar=DATA_VARIABLE,
    metavar="DIR",
    help=f"The platform's folder: database, datasets, key. Also by {DATA_VARIABLE}; by default "
    "osmosis/platform in the user's data folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def needs_extra(function: F) -> F:
    """Say how to install the extra where it is missing."""

    @functools.wraps(function)
    def checked(*args: Any, **values: Any) -> Any:
        if not all(map(find_spec, NEEDED)):
            raise click.ClickException(
                "osmosis platform needs an extra: pip install 'pytest-osmosis[platform]'"
            )
        return function(*args, **values)

    return checked  # type: ignore[return-value]


@contextmanager
def opened(data: Path | None) -> Iterator[Database]:
    """Open the database of a data folder, with its tables up to date."""
    from sqlalchemy.exc import DatabaseError

    from ..database.connection import Database
    from ..database.schema import SchemaProblem, upgrade

    folder = data or default_data()
    try:
        database = Database.in_folder(folder)
    except OSError as error:
        raise click.ClickException(f"--data {folder}: {error.strerror}") from None
    try:
        upgrade(database)
        yield database
    except SchemaProblem as error:
        raise click.ClickException(f"--data {folder}: {error}") from None
    except DatabaseError as error:
        raise click.ClickException(f"--data {folder}: the database: {error.orig}") from None
    finally:
        database.close()


@contextmanager
def changing(data: Path | None) -> Iterator[Session]:
    """Open a transaction in which accounts are changed; what they refuse is a usage error."""
    from ..accounts.registry import AccountError, WrongValue

    with opened(data) as database:
        try:
            with database.writing() as session:
                yield session
        except WrongValue as error:
            raise click.UsageError(str(error)) from None
        except AccountError as error:
            raise click.ClickException(str(error)) from None


def show(document: Mapping[str, Any], sentence: str, *, as_json: bool) -> None:
    """Print what was done."""
    click.echo(json.dumps(document) if as_json else sentence)
