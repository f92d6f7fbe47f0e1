"""What commands about submitted runs share: a run's name, lists, the way to the platform."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.platform.run_kinds import RunKind

from ..errors import CommandError
from ..eval.lines import say
from ..lazy_group import nearest

if TYPE_CHECKING:
    from osmosis_ai.platform.client import Listing
    from osmosis_ai.platform.runs import Runs

_LOOKED_AT = 100
"""How many of the newest runs a mistyped name is compared with."""


def _checked_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.strip() in ("", ".", ".."):
        raise click.BadParameter(f"{value!r} is neither a name nor an id", ctx, parameter)
    return value


run_argument = click.argument("name", metavar="NAME-OR-ID", callback=_checked_name)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_LIMIT = 20


def list_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--limit` and `--all`, as one parameter `limit`, None for all, and `--json`."""

    @click.option(
        "--limit",
        type=click.IntRange(1),
        default=_LIMIT,
        show_default=True,
        metavar="N",
        help="How many.",
    )
    @click.option("--all", "is_all", is_flag=True, help="All of them.")
    @json_option
    @functools.wraps(command)
    def limited(limit: int, is_all: bool, as_json: bool) -> None:
        command(None if is_all else limit, as_json=as_json)

    return limited


def list_document(key: str, found: Listing) -> dict[str, Any]:
    """Return the JSON document of a list."""
    return {key: list(found.items), "total_count": found.total_count, "has_more": found.has_more}


def say_more(found: Listing, command: str) -> None:
    """Say how to see all, where a list does not have them."""
    if found.has_more:
        of = "" if found.total_count is None else f" of {found.total_count:,}"
        say(f"{len(found.items):,}{of}; all of them: {command} --all")


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

    from .connection import connect

    with connect() as client:
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
