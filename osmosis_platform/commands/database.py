"""`osmosis platform db`: the tables of the database, brought up to date."""

from __future__ import annotations

import click

from .options import show
from .place import DataPlace, connected, place_options


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
