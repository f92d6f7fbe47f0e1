"""`osmosis platform backup` and `restore`: a platform in one file, and from it."""

from __future__ import annotations

from pathlib import Path

import click

from .options import show
from .place import Place, connected, place_options


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--with-key",
    is_flag=True,
    help="Put secret.key in too: then the file is as secret as all stored secrets.",
)
@place_options
def backup_command(file: Path, with_key: bool, place: Place, as_json: bool) -> None:
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
    told = f"Wrote {file}: {made['rows']:,} rows and {made['files']:,} files, {key}."
    show({"file": str(file), **made}, told, as_json=as_json)


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@place_options
def restore_command(file: Path, place: Place, as_json: bool) -> None:
    """Make a platform of a backup.

    The folder and the database have to be empty. A backup of SQLite can be restored into
    PostgreSQL, and the reverse. End the old platform first: runs that were not finished go on in
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
            told = error.strerror or type(error).__name__
            raise click.ClickException(f"{error.filename or file}: {told}") from None
    told = f"Restored {found['rows']:,} rows and {found['files']:,} files into {place.data}."
    if not found["has_key"]:
        told += f" Put secret.key into {place.data} before you serve it."
    show({"data": str(place.data), **found}, told, as_json=as_json)
