"""`osmosis platform key`: the key that encrypts the stored secrets."""

from __future__ import annotations

import os

import click

from .options import show
from .place import Place, opened, place_options


@click.group("key")
def key_group() -> None:
    """Change the key that encrypts the stored secrets.

    \b
    Example:
      osmosis platform key change
    """


@key_group.command("change")
@place_options
def change_command(place: Place, as_json: bool) -> None:
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
            told = error.strerror or type(error).__name__
            raise click.ClickException(f"{place.data / FILE_NAME}: {told}") from None
    where = str(place.data / FILE_NAME) if keys is None else KEY_VARIABLE
    values = "1 value is" if count == 1 else f"{count:,} values are"
    rest = "keep a copy" if keys is None else "leave the other keys out"
    told = f"{values} encrypted by the new key of {where}: {rest}. Older backups need the old key."
    show({"key": where, "values": count}, told, as_json=as_json)
