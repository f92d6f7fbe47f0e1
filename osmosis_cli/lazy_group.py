"""A click group whose subcommands are imported when they are run, not when they are listed.

The table holds the one-line help, so `--help` imports no command of ours. Other packages add
commands by entry points, which come last and replace none of the table. This module knows no
command by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from .instead import instead_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MORE = "More commands"
ON_PLATFORM = "On a platform"
"""Headings of help."""


class StyledHelp(click.HelpFormatter):
    """Help whose headings and names stand out where there is colour; click drops it elsewhere."""

    def write_heading(self, heading: str) -> None:
        """Write a heading in bold."""
        self.write(click.style(f"{'':>{self.current_indent}}{heading}:", bold=True) + "\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write a list of names, coloured, with what they mean."""
        named = [(click.style(name, fg="cyan"), text) for name, text in rows]
        super().write_dl(named, col_max, col_spacing)


@dataclass(frozen=True, slots=True)
class Entry:
    """One subcommand: where it is, and the line that the help shows for it."""

    target: str
    """`module:attribute` of a click command, the module in this package."""
    summary: str
    section: str = MORE
    """The heading that the help lists it under."""

    def load(self) -> click.Command:
        """Import the module and give the command."""
        module, _, attribute = self.target.partition(":")
        found: click.Command = getattr(importlib.import_module(f"osmosis_cli.{module}"), attribute)
        return found


def on_platform(target: str, summary: str) -> Entry:
    """Return the entry of a command that speaks with a platform."""
    return Entry(f"platform.{target}", summary, ON_PLATFORM)


class SuggestingGroup(click.Group):
    """A group that names the nearest of its commands where there is none of a name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with what may be meant when there is no such subcommand."""
        word = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, word) is None:
            if found := instead_of(ctx, word):
                raise click.UsageError(f"There is no command {word!r}: {found}.", ctx)
            raise click.UsageError(f"No such command {word!r}.{self.meant(ctx, word)}", ctx)
        return super().resolve_command(ctx, args)

    def meant(self, ctx: click.Context, word: str) -> str:
        """Return ` Did you mean 'x'?`, else the names there are; the root's stand in its help."""
        known = self.list_commands(ctx)
        listed = f" There are {', '.join(known)}." if ctx.parent is not None else ""
        return nearest(word, known) or listed


class LazyGroup(SuggestingGroup):
    """A group over a table of entries, in the table's order, and over a group of entry points."""

    def __init__(
        self,
        *args: Any,
        table: Mapping[str, Entry],
        examples: Mapping[str, str] | None = None,
        entry_points: str | None = None,
        **kwargs: Any,
    ) -> None:
        """`examples`: a command line for each heading of the help that has one."""
        super().__init__(*args, **kwargs)
        self.table = table
        self._examples = examples or {}
        self._entry_points = entry_points

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return [*self.table, *self._added()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one subcommand; None when there is none of that name."""
        entry = self.table.get(cmd_name) or self._added().get(cmd_name)
        found: click.Command | None = None if entry is None else entry.load()
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; no words at all where a subcommand must come are a wrong use."""
        if not (args or self.invoke_without_command or ctx.resilient_parsing):
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def meant(self, ctx: click.Context, word: str) -> str:
        """Return what `word` is meant for: a command of a group below this one before others."""
        groups = [name for name, entry in self.table.items() if entry.target.endswith("_group")]
        found = [
            f"{ctx.command_path} {name} {word}"
            for name in groups
            if isinstance(group := self.get_command(ctx, name), click.Group)
            and word in group.list_commands(ctx)
        ]
        if not found:
            return super().meant(ctx, word)
        return f" Did you mean {' or '.join(map(repr, found[:3]))}?"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands, importing none of the table's."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            section = self.table[name].section if name in self.table else MORE
            sections.setdefault(section, []).append((name, self._summary(name, ctx)))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)
                if section in self._examples:
                    formatter.write_paragraph()
                    formatter.write_text(f"$ {self._examples[section]}")

    def _summary(self, name: str, ctx: click.Context) -> str:
        if name in self.table:
            return self.table[name].summary
        try:
            command = self.get_command(ctx, name)
        except ImportError:
            return "(cannot be loaded)"
        return "" if command is None else command.get_short_help_str()

    def _added(self) -> dict[str, EntryPoint]:
        """The commands of other packages, by name."""
        if self._entry_points is None:
            return {}
        found = entry_points_of(self._entry_points)
        return {name: point for name, point in found.items() if name not in self.table}


@cache
def entry_points_of(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group, by name."""
    from importlib.metadata import entry_points  # takes time that few commands need

    return {point.name: point for point in sorted(entry_points(group=group))}


def nearest(word: str, known: list[str]) -> str:
    """` Did you mean 'x'?` for a word close to a known one, else nothing."""
    close = get_close_matches(word, known, n=3)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
