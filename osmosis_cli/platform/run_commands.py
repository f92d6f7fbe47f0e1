"""What the commands about submitted runs share: the name of a run, and the way to the platform."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import CommandError
from ..lazy_group import nearest

if TYPE_CHECKING:
    from osmosis_ai.platform.runs import Runs

__all__ = ["EVALUATION", "TRAINING", "RunKind", "json_option", "may_ask", "run_argument", "runs_of"]


_LOOKED_AT = 100
"""How many of the newest runs a mistyped name is compared with."""


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
def runs_of(kind: RunKind, name: str | None = None) -> Iterator[Runs]:
    """The runs of the workspace around the current directory; CommandError for what fails.

    Where there is no run called `name`, the error has the nearest names.
    """
    from osmosis_ai.platform.client import PlatformError
    from osmosis_ai.platform.runs import Runs

    from .connection import connect_workspace

    with connect_workspace() as client:
        runs = Runs(client, kind)
        try:
            yield runs
        except PlatformError as error:
            if error.status != 404 or name is None:
                raise
            raise CommandError(
                f"{error}.{_nearest_run(runs, name)}", code=error.code, details=error.document()
            ) from None


def _nearest_run(runs: Runs, name: str) -> str:
    from osmosis_ai.platform.client import PlatformError

    try:
        found = runs.newest(_LOOKED_AT)
    except PlatformError:  # then without a hint
        return ""
    return nearest(name, [run.name for run in map(runs.record, found.items) if run.name])
