"""Every command and its options as Markdown, made from the click commands themselves.

Knows no Sphinx, so that tests can ask the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

PROGRAM = "osmosis"


def commands(
    command: click.Command, name: str = PROGRAM, parent: click.Context | None = None
) -> Iterator[click.Context]:
    """The context of each command, in the order of the help; `command_path` is its whole name."""
    context = click.Context(command, parent, name, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, below, context)


def reference(root: click.Group) -> str:
    """All sections; a command that has two names is described under the first."""
    first: dict[int, str] = {}
    sections = []
    for context in commands(root):
        name = context.command_path
        before = first.setdefault(id(context.command), name)
        same = f"The same as [`{before}`](#{label(before)})."
        level = "##" if name.count(" ") < 2 else "###"
        text = described(context.command, context) if before == name else same
        sections.append(f"({label(name)})=\n{level} `{name}`\n\n{text}\n")
    return "\n".join(sections)


def label(name: str) -> str:
    """What links to the section of a command."""
    return f"command.{name.replace(' ', '.')}"


def described(command: click.Command, context: click.Context) -> str:
    """What the command's own help says."""
    parts = [*paragraphs(command.help or ""), fenced(usage(command, context))]
    if isinstance(command, click.Group):
        parts.append(subcommands(command, context))
    parts += [option(parameter, context) for parameter in command.get_params(context)]
    parts += paragraphs(command.epilog or "")
    return "\n\n".join(part for part in parts if part)


def usage(command: click.Command, context: click.Context) -> str:
    """The usage lines as the help prints them."""
    formatter = click.HelpFormatter(width=100)
    command.format_usage(context, formatter)
    lines = formatter.getvalue().replace("Usage: ", "").splitlines()
    return "\n".join(line.strip() for line in lines)


def subcommands(group: click.Group, context: click.Context) -> str:
    """Links to the commands of a group."""
    names = [f"{context.command_path} {name}" for name in group.list_commands(context)]
    return "Commands: " + ", ".join(f"[`{name}`](#{label(name)})" for name in names) + "."


def option(parameter: click.Parameter, context: click.Context) -> str:
    """An entry of a definition list; nothing for arguments, which the usage line has."""
    spelt, text = parameter.get_help_record(context) or ("", "")
    return f"`{spelt}`\n: {plain(text)}" if text else ""


def paragraphs(text: str) -> list[str]:
    """Help text as Markdown: paragraphs that click must not wrap are examples."""
    found = []
    for part in re.split(r"\n\s*\n", text.strip()):
        if part.startswith("\b\n"):
            title, *lines = part.splitlines()[1:]
            found += [title, fenced("\n".join(line.removeprefix("  ") for line in lines))]
        else:
            found.append(plain(" ".join(part.split())))
    return found


def fenced(text: str) -> str:
    """A block of command lines."""
    return f"```sh\n{text}\n```"


def plain(text: str) -> str:
    """Text that Markdown leaves as it is, with options and commands as code."""

    def marked(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith("`") else f"`{found[0]}`"

    escaped = re.sub(r"[\\*_<>\[\]{}|$#]", r"\\\g<0>", text)
    return re.sub(r"`[^`]*`|(?<![\w-])--?[a-zA-Z][\w-]*", marked, escaped)
