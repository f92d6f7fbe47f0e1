"""`osmosis platform`: found by the entry points `osmosis.commands`.

Imports only click: what the extra brings is imported by the commands that need it.
"""

from __future__ import annotations

import click

from .accounts import member_group, token_group, user_group, workspace_group
from .backup import backup_command, restore_command
from .database import database_group
from .serve import serve_command


@click.group("platform")
def platform_group() -> None:
    """Host a platform of your own.

    \b
    Example:
      osmosis platform user add ann
      osmosis platform workspace add agents --git acme/agents
      osmosis platform member add agents ann --role owner
      osmosis platform serve
    """


for _command in (
    serve_command,
    user_group,
    workspace_group,
    member_group,
    token_group,
    database_group,
    backup_command,
    restore_command,
):
    platform_group.add_command(_command)
