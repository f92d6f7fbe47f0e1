"""`osmosis platform`: found by the entry points `osmosis.commands`.

Imports only click: what an extra brings is imported by the commands that need it.
"""

from __future__ import annotations

import click


@click.group("platform")
def platform_group() -> None:
    """Host a platform of your own."""
