"""A click group whose subcommands are imported when they are run, not when they are listed.

The table holds the one-line help, so `--help` imports no command. An entry whose module is not
installed is neither listed nor found. This module knows no command by name.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Entry:
    """One subcommand: where it is, and the line that the help shows for it."""

    target: str
    """`module:attribute` of a click command, the module in this package."""
    summary: str

    @property
    def module(self) -> str:
        """The full name of the module."""
        return f"osmosis_cli.{self.target.partition(':')[0]}"

    def load(self) -> click.Command:
        """Import the module and give the command."""
        attribute = self.target.partition(":")[2]
        command = getattr(importlib.import_module(self.module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.target} is no click command")
        return command


@cache
def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class LazyGroup(click.Group):
    """A group over a table of entries, in the table's order."""

    def __init__(self, *args: Any, table: Mapping[str, Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands that are installed."""
        return [name for name, entry in self.table.items() if _installed(entry.module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one subcommand; None when there is none of that name."""
        entry = self.table.get(cmd_name)
        return entry.load() if entry and _installed(entry.module) else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; no words at all where a subcommand must come are a wrong use."""
        if not (args or self.invoke_without_command or ctx.resilient_parsing):
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest names when there is no such subcommand."""
        known = self.list_commands(ctx)
        if not ctx.resilient_parsing and args[0] not in known:
            raise click.UsageError(f"No such command {args[0]!r}.{nearest(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands from the table, importing none of them."""
        rows = [(name, self.table[name].summary) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def nearest(word: str, known: list[str]) -> str:
    """` Did you mean 'x'?` for a word close to a known one, else nothing."""
    close = get_close_matches(word, known, n=3)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
