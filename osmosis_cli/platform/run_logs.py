"""`osmosis eval logs` and `osmosis train logs`: what a platform says of a run's progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import INTERRUPTED, CommandError
from .patience import patiently
from .run_commands import json_option, run_argument, runs_of

if TYPE_CHECKING:
    from osmosis_ai.platform.runs import Runs

T = TypeVar("T")
POLL_S = 3.0
_MAX_PAGES = 1000
_LOOKS_AFTER_STOP = 3


def _logs_command(kind: RunKind) -> click.Command:
    group = kind.group

    @click.command(
        "logs",
        help=f"Print the log of {kind.article} {kind.noun}, the oldest line first.",
        epilog=f"\b\nExamples:\n  osmosis {group} logs calm-otter-17 --lines 50\n"
        f"  osmosis {group} logs calm-otter-17 --follow",
    )
    @run_argument
    @click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
    @click.option(
        "-n", "--lines", type=click.IntRange(1), metavar="N", help="The last N lines only."
    )
    @json_option
    def command(name: str, follow: bool, lines: int | None, as_json: bool) -> None:
        if follow and lines is not None:
            raise click.UsageError("--follow prints every line; leave --lines out")
        with runs_of(kind, name) as runs:
            try:
                found = (
                    _last(runs, name, lines)
                    if lines
                    else _all(runs, name, follow=follow, is_silent=as_json)
                )
                _print(found, as_json=as_json)
            except KeyboardInterrupt:
                raise CommandError(
                    f"the {kind.noun} goes on", code="interrupted", status=INTERRUPTED
                ) from None

    return command


def _all(runs: Runs, name: str, *, follow: bool, is_silent: bool) -> Iterator[Mapping[str, Any]]:
    """Yield every line; with `follow` those that are still to come."""

    def ask(call: Callable[[], T]) -> T:
        return patiently(call, tell=tell, wait=lambda: sleep(POLL_S)) if follow else call()

    def tell(trouble: str) -> None:
        if not is_silent:
            click.echo(trouble, err=True)

    cursor: str | None = None
    known, pages, is_live = 0, 0, False
    looks: int | None = None  # that are left, once the run has ended
    while follow or pages < _MAX_PAGES:
        page = ask(partial(runs.logs, name, cursor))
        yield from page.lines[known:]
        pages += 1
        if page.next_cursor and page.next_cursor != cursor:
            cursor, known = page.next_cursor, 0
            if page.lines:
                continue
        else:  # the end of what there is: the same page may have more lines later
            known = max(known, len(page.lines))
        if not follow or looks == 0:
            return
        if looks is None:
            found = runs.record(ask(partial(runs.detail, name)))
            # To end what runs takes some seconds after a stop.
            after_stop = _LOOKS_AFTER_STOP if is_live and found.status == "stopped" else 1
            looks = after_stop if found.has_ended else None
        if looks is not None:
            looks -= 1
        if looks != 0:
            sleep(POLL_S)
            is_live = True


def _last(runs: Runs, name: str, count: int) -> list[Mapping[str, Any]]:
    """Return the last lines, the oldest first."""
    found: list[Mapping[str, Any]] = []
    cursor: str | None = None
    while len(found) < count:
        page = runs.logs(name, cursor, limit=min(200, count - len(found)), backward=True)
        found += page.lines
        if not page.lines or not page.next_cursor or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    return found[:count][::-1]


def _print(lines: Iterator[Mapping[str, Any]] | list[Mapping[str, Any]], *, as_json: bool) -> None:
    from ..eval.lines import say
    from .run_text import log_lines

    if as_json:
        click.echo(json.dumps({"logs": list(lines)}))
        return
    for entry in lines:
        for line in log_lines(entry):
            say(line)


eval_logs_command = _logs_command(EVALUATION)
train_logs_command = _logs_command(TRAINING)
