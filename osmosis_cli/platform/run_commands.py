"""What the commands about submitted runs share: the name of a run, and the way to the platform."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

if TYPE_CHECKING:
    from osmosis_ai.platform.runs import Runs

__all__ = ["EVALUATION", "TRAINING", "RunKind", "json_option", "may_ask", "run_argument", "runs_of"]


def _checked_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.strip() in ("", ".", ".."):
        raise click.BadParameter(f"{value!r} is neither a name nor an id", ctx, parameter)
    return value


run_argument = click.argument("name", metavar="NAME-OR-ID", callback=_checked_name)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def may_ask(*, yes: bool, as_json: bool) -> None:
    """Raise UsageError where a question is to be asked and there is no place for it."""
    if yes:
        return
    if as_json:
        raise click.UsageError("--json asks no question: give --yes too")
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on: give --yes")


@contextmanager
def runs_of(kind: RunKind) -> Iterator[Runs]:
    """The runs of the workspace around the current directory; CommandError for what fails."""
    from osmosis_ai.platform.runs import Runs

    from .connection import connect_workspace

    with connect_workspace() as client:
        yield Runs(client, kind)
