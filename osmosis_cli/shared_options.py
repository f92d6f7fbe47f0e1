"""What the options of several commands share: spelling, help, and what a shell completes."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem | str]]


def complete_files(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem | str]:
    """Leave the value to the shell, which knows the files."""
    return [CompletionItem(incomplete, type="file")]


def complete_folders(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem | str]:
    """Leave the value to the shell, which knows the folders."""
    return [CompletionItem(incomplete, type="dir")]


COMPLETIONS: dict[str, Complete] = {
    "FILE": complete_files,
    "FILE|last": complete_files,
    "DIR": complete_folders,
}
"""By the placeholder of the value in the help."""

agent_option = click.option(
    "-m",
    "--module",
    "--agent",
    "module",
    required=True,
    metavar="MODULE:ATTR",
    help="The agent: module:attribute or path/to/file.py:attribute; an agent loop, as an "
    "instance or a class, or an async function.",
)
"""Gives `module`."""
