"""What the options of several commands share: spelling, help, completion, the JSON of `-o`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from osmosis_ai.secret import masked, redact

from .errors import CommandError, wrong_use


class NumberRange(click.FloatRange):
    """A range of numbers without NaN, which no comparison refuses, and without infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; `BadParameter` for what is none."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return number


complete_files = click.Path().shell_complete
complete_folders = click.Path(file_okay=False).shell_complete
COMPLETIONS = {
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
    metavar="MODULE:ATTR",
    help="The agent: module:attribute or path/to/file.py:attribute; an agent loop, as an "
    "instance or a class, or an async function.",
)
"""Gives `module`; `agent_named` makes the agent's name of it and of `mcp`."""

MCP_HELP = (
    "Instead of an agent: a folder whose main.py makes an MCP server; its tools are called until "
    "the model answers. Needs the extra mcp."
)
mcp_option = click.option("--mcp", metavar="DIR", shell_complete=complete_folders, help=MCP_HELP)
"""Gives `mcp`."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
"""Gives `as_json`; what is printed then is `print_json`'s."""
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
import_timeout_option = click.option(
    "--import-timeout",
    "import_timeout_s",
    type=NumberRange(0, 86_400),
    default=60.0,
    metavar="S",
    help="Seconds that the import of the agent's module may take; 0 is none (default: 60).",
)


def agent_named(module: str | None, mcp: str | None) -> str | None:
    """Return the agent that one of the two options names; UsageError for both of them."""
    if module is not None and mcp is not None:
        raise click.UsageError("-m/--module and --mcp both name an agent: give one of them")
    return module if mcp is None else f"mcp:{mcp}"


def require_agent(module: str | None, mcp: str | None) -> str:
    """As `agent_named`, where there must be one."""
    named = agent_named(module, mcp)
    if named is None:
        raise click.UsageError("Missing option '-m' / '--module' / '--agent', or '--mcp'.")
    return named


def may_ask(*, yes: bool, as_json: bool) -> None:
    """Raise UsageError where a question is to be asked and there is no place for it."""
    if yes:
        return
    if as_json:
        raise click.UsageError("--json asks no question: give --yes too")
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on: give --yes")


def print_json(document: Any) -> None:
    """Print the one document of a command that succeeded."""
    click.echo(masked_json(document))


def masked_json(document: Any, **options: Any) -> str:
    """Return the document as ASCII JSON, without secrets."""
    text = json.dumps(document, **options)
    return text if redact(text) == text else json.dumps(masked(json.loads(text)), **options)


def check_output(path: Path, option: str) -> None:
    """Refuse a file that cannot be written, before anything is run; make its folder."""
    from pytest_osmosis.storage.atomic_write import check_writable

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(path)
    except OSError as error:
        raise wrong_use(f"{option} {path}: {error.strerror or error}") from None


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write the document whole, for its owner alone: it has answers. Or say that it cannot be."""
    from pytest_osmosis.storage.atomic_write import write_whole

    text = masked_json(document, allow_nan=False, indent=2) + "\n"
    try:
        write_whole(path, text.encode("ascii"), mode=0o600)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}"
        raise CommandError(message, code="not_written") from None
