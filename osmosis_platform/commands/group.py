"""`osmosis platform`: found by the entry points `osmosis.commands`.

Imports only click: `osmosis --help` names the group, and each of its commands is imported when it
is run or listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

COMMANDS: Mapping[str, str] = {
    "db": "database:database_group",
    "member": "members:member_group",
    "serve": "serve:serve_command",
    "token": "tokens:token_group",
    "try": "trial:try_command",
    "user": "users:user_group",
    "workspace": "workspaces:workspace_group",
}
"""Where each command is: `module:attribute`, the module in this package."""


class PlatformGroup(click.Group):
    """A group over the table of commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the names there are where there is none of this name."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. There are {', '.join(COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f".{module}", __package__), attribute)
        return command


@click.group("platform", cls=PlatformGroup)
def platform_group() -> None:
    """Host a platform of your own.

    \b
    Examples:
      osmosis platform try
      osmosis platform user add ann
      osmosis platform workspace add agents --git acme/agents
      osmosis platform member add agents ann --role owner
      osmosis platform serve
    """
