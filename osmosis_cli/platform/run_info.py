"""`osmosis eval info` and `logs`, and those of `osmosis train`: one run, while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import INTERRUPTED, CommandDone, CommandError
from ..shared_options import json_option, print_json
from .run_commands import run_argument, runs_of

if TYPE_CHECKING:
    from osmosis_ai.platform.answers import RunRecord
    from osmosis_ai.platform.runs import Runs


T = TypeVar("T")
POLL_S = 3.0
_TRIES = 10
"""How often in a row a platform may be unreachable before waiting ends."""
_MAX_PAGES = 1000


def patiently(ask: Callable[[], T], *, tell: Callable[[str], None], wait: Callable[[], None]) -> T:
    """Return what a platform answers, asked again while its trouble passes."""
    from osmosis_ai.platform.client import PlatformError

    misses = 0
    while True:
        try:
            return ask()
        except PlatformError as error:
            if not error.is_passing or misses >= _TRIES:
                raise
            misses += 1
            tell(f"{error}; trying again")
        wait()


Seen = tuple[dict[str, Any], dict[str, Any] | None]
"""What the platform says of a run, and its figures, where it has some."""


def _info_command(kind: RunKind) -> click.Command:
    group = kind.group

    @click.command(
        "info",
        help=f"Show {kind.article} {kind.noun}: its state, what it runs and its results.\n\n"
        "With --watch it waits until the run has ended, and its result is the exit status: "
        "0 finished, 1 anything else.",
        epilog=f"\b\nExamples:\n  osmosis {group} info calm-otter-17\n"
        f"  osmosis {group} info calm-otter-17 --watch && echo done",
    )
    @run_argument
    @click.option("--watch", is_flag=True, help="Wait for the end.")
    @json_option
    def command(name: str, watch: bool, as_json: bool) -> None:
        with runs_of(kind) as runs:
            seen = _watch(runs, name, as_json=as_json) if watch else _look(runs, name)
            run = runs.record(seen[0])
        _show(kind, run, *seen, as_json=as_json)
        if watch and run.status != "finished":
            raise CommandDone(1)

    return command


def _look(runs: Runs, name: str) -> Seen:
    from osmosis_ai.platform.client import PlatformError

    answer = runs.detail(name)
    try:
        return answer, runs.metrics(name)
    except PlatformError as error:
        if error.status not in (404, 409):  # a run without figures
            raise
        return answer, None


def _watch(runs: Runs, name: str, *, as_json: bool) -> Seen:
    from ..eval.lines import LiveLine
    from .run_text import progress_text, utc_now

    def wait() -> None:
        sleep(POLL_S)

    try:
        with LiveLine(is_silent=as_json) as live:
            tell = partial(live.show, topic="unreachable")
            while True:
                seen = patiently(partial(_look, runs, name), tell=tell, wait=wait)
                run = runs.record(seen[0])
                if run.has_ended:
                    return seen
                live.show(progress_text(run, seen[1], utc_now()), str(run.status))
                wait()
    except KeyboardInterrupt:
        raise CommandError(
            f"the {runs.kind.noun} continues; end it with: osmosis {runs.kind.group} stop {name}",
            code="interrupted",
            status=INTERRUPTED,
        ) from None


def _show(
    kind: RunKind,
    run: RunRecord,
    answer: dict[str, Any],
    metrics: dict[str, Any] | None,
    *,
    as_json: bool,
) -> None:
    from pytest_osmosis.reports.text_table import columns, wrapped

    from ..eval.lines import say, say_facts
    from .run_text import copyable, metric_lines, render, run_facts, styled, utc_now

    if as_json:
        print_json({**answer, "metrics": metrics})
        return
    say(f"{render(run.label)}  ", styled(run.status), ", local" if run.is_local else "")
    say_facts(dict(run_facts(run, utc_now())))
    figures = [*metric_lines(metrics or {})]
    if figures:
        say("results")
    for figure in figures:
        for line in wrapped(f"  {figure}", columns()):
            say(line)
    if not run.has_ended:
        say(f"wait for its end: osmosis {kind.group} info {copyable(run)} --watch")
    elif run.status != "finished":
        say(f"what happened: osmosis {kind.group} logs {copyable(run)}")


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
        "-n",
        "--lines",
        "--limit",
        "lines",
        type=click.IntRange(1),
        metavar="N",
        help="The last N lines only.",
    )
    @json_option
    def command(name: str, follow: bool, lines: int | None, as_json: bool) -> None:
        if follow and lines is not None:
            raise click.UsageError("--follow prints every line; leave --lines out")
        with runs_of(kind) as runs:
            try:
                found = (
                    _last(runs, name, lines)
                    if lines
                    else _all(runs, name, follow=follow, is_silent=as_json)
                )
                _print(found, as_json=as_json)
            except KeyboardInterrupt:
                raise CommandError(
                    f"the {kind.noun} continues", code="interrupted", status=INTERRUPTED
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
    known, is_last = 0, not follow
    for _ in count() if follow else range(_MAX_PAGES):
        page = ask(partial(runs.logs, name, cursor))
        yield from page.lines[known:]
        if page.next_cursor and page.next_cursor != cursor:
            cursor, known = page.next_cursor, 0
            if page.lines:
                continue
        else:  # the end of what there is: the same page may have more lines later
            known = max(known, len(page.lines))
        if is_last:
            return
        is_last = runs.record(ask(partial(runs.detail, name))).has_ended
        if not is_last:
            sleep(POLL_S)


def _last(runs: Runs, name: str, most: int) -> list[Mapping[str, Any]]:
    """Return the last lines, the oldest first."""
    found: list[Mapping[str, Any]] = []
    cursor: str | None = None
    while len(found) < most:
        page = runs.logs(name, cursor, limit=min(200, most - len(found)), backward=True)
        found += page.lines
        if not page.lines or not page.next_cursor or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    return found[:most][::-1]


def _print(lines: Iterator[Mapping[str, Any]] | list[Mapping[str, Any]], *, as_json: bool) -> None:
    from ..eval.lines import say
    from .run_text import log_lines

    if as_json:
        print_json({"logs": list(lines)})
        return
    for entry in lines:
        for line in log_lines(entry):
            say(line)


eval_info_command, train_info_command = map(_info_command, (EVALUATION, TRAINING))
eval_logs_command, train_logs_command = map(_logs_command, (EVALUATION, TRAINING))
