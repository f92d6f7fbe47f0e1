"""`osmosis platform db`, `key`, `backup` and `restore`: upkeep of what a platform has stored."""

from __future__ import annotations

import os
from pathlib import Path

import click

from .options import show
from .place import DataPlace, connected, opened, place_options


@click.group("db")
def database_group() -> None:
    """Bring the tables of the database up to date.

    \b
    Example:
      osmosis platform db upgrade
    """


@database_group.command("upgrade")
@place_options
def upgrade_command(place: DataPlace, as_json: bool) -> None:
    """Change the tables of an older version to those of this one.

    Back the platform up, and end it, before: the older version cannot use the new tables.

    \b
    Example:
      osmosis platform db upgrade
    """
    from ..database.schema import revision, upgrade

    with connected(place) as database:
        before = revision(database)
        upgrade(database)
        after = revision(database)
    message = f"The database is at revision {after}"
    sentence = f"{message} already." if before == after else f"{message} now; it was at {before}."
    if before is None:
        sentence = f"{message}: its tables were made."
    show({"before": before, "revision": after}, sentence, as_json=as_json)


@click.group("key")
def key_group() -> None:
    """Change the key that encrypts the stored secrets.

    \b
    Example:
      osmosis platform key change
    """


@key_group.command("change")
@place_options
def change_command(place: DataPlace, as_json: bool) -> None:
    """Encrypt all stored secrets by a new key.

    It replaces that of secret.key. End the platform before. A command that was killed is run
    again; until then the platform can be served by both keys. Where the key is in
    OSMOSIS_PLATFORM_SECRET_KEY, put a new one before it, with a space between, run this, and then
    leave the old one out.

    \b
    Example:
      osmosis platform key change
    """
    from ..vault.cipher import FILE_NAME, KEY_VARIABLE, KeyProblem
    from ..vault.key_change import change_key

    keys = os.environ.get(KEY_VARIABLE)
    if keys is not None and len(keys.split()) < 2:
        raise click.UsageError(
            f"{KEY_VARIABLE} has one key: put a new one before it, with a space between"
        )
    with opened(place) as database:
        try:
            count = change_key(database, place.data, keys)
        except KeyProblem as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            message = error.strerror or type(error).__name__
            raise click.ClickException(f"{place.data / FILE_NAME}: {message}") from None
    where = str(place.data / FILE_NAME) if keys is None else KEY_VARIABLE
    values = "1 value is" if count == 1 else f"{count:,} values are"
    rest = "keep a copy" if keys is None else "leave the other keys out"
    message = (
        f"{values} encrypted by the new key of {where}: {rest}. Older backups need the old key."
    )
    show({"key": where, "values": count}, message, as_json=as_json)


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--with-key",
    is_flag=True,
    help="Put secret.key in too: then the file is as secret as all stored secrets.",
)
@place_options
def backup_command(file: Path, with_key: bool, place: DataPlace, as_json: bool) -> None:
    """Write database and files into one archive.

    The platform may serve meanwhile. The key that encrypts the stored secrets is left out: keep
    secret.key elsewhere, once. Work trees and environments are left out too; they are made again.

    \b
    Example:
      osmosis platform backup osmosis-$(date +%F).tar.gz
    """
    from ..backup.archive import BackupProblem, write_backup

    with connected(place) as database:
        try:
            made = write_backup(database, place.data, file, with_key=with_key)
        except BackupProblem as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            raise click.ClickException(f"{file}: {error.strerror}") from None
    key = "with the key" if with_key else "without the key: keep secret.key safe elsewhere"
    message = f"Wrote {file}: {made['rows']:,} rows and {made['files']:,} files, {key}."
    show({"file": str(file), **made}, message, as_json=as_json)


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@place_options
def restore_command(file: Path, place: DataPlace, as_json: bool) -> None:
    """Make a platform of a backup.

    The folder and the database have to be empty. A backup of SQLite can be restored into
    PostgreSQL, and the reverse. End the old platform first: runs that were not finished resume in
    the new one.

    \b
    Example:
      osmosis platform restore osmosis-2026-11-22.tar.gz --data /srv/osmosis
    """
    from ..backup.archive import BackupProblem, read_backup

    with connected(place) as database:
        try:
            found = read_backup(database, place.data, file)
        except BackupProblem as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            message = error.strerror or type(error).__name__
            raise click.ClickException(f"{error.filename or file}: {message}") from None
    message = f"Restored {found['rows']:,} rows and {found['files']:,} files into {place.data}."
    if not found["has_key"]:
        message += f" Put secret.key into {place.data} before you serve it."
    show({"data": str(place.data), **found}, message, as_json=as_json)
