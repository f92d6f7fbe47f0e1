"""`osmosis eval info` and `osmosis train info`: one run, and waiting for its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import INTERRUPTED, CommandDone, CommandError
from .patience import patiently
from .run_commands import json_option, run_argument, runs_of

if TYPE_CHECKING:
    from osmosis_ai.platform.answers import RunMetrics, RunRecord
    from osmosis_ai.platform.runs import Runs

POLL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the platform says of a run: as it came, and as values."""

    answer: Mapping[str, Any]
    figures: Mapping[str, Any] | None
    run: RunRecord
    metrics: RunMetrics | None


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
        with runs_of(kind, name) as runs:
            seen = _watched(runs, name, as_json=as_json) if watch else _look(runs, name)
        _show(kind, seen, as_json=as_json)
        if watch and seen.run.status != "finished":
            raise CommandDone(1)

    return command


def _look(runs: Runs, name: str) -> Seen:
    from osmosis_ai.platform.answers import run_metrics
    from osmosis_ai.platform.client import PlatformError

    answer = runs.detail(name)
    figures: Mapping[str, Any] | None = None
    try:
        figures = runs.metrics(name)
    except PlatformError as error:
        if error.status not in (404, 409):  # a run without figures
            raise
    metrics = run_metrics(figures) if figures is not None else None
    return Seen(answer=answer, figures=figures, run=runs.record(answer), metrics=metrics)


def _watched(runs: Runs, name: str, *, as_json: bool) -> Seen:
    from .live_line import LiveLine
    from .run_text import progress_text, utc_now

    def wait() -> None:
        sleep(POLL_S)

    try:
        with LiveLine(is_silent=as_json) as live:
            tell = partial(live.show, topic="unreachable")
            while True:
                seen = patiently(partial(_look, runs, name), tell=tell, wait=wait)
                if seen.run.has_ended:
                    return seen
                live.show(progress_text(seen.run, seen.metrics, utc_now()), str(seen.run.status))
                wait()
    except KeyboardInterrupt:
        raise CommandError(
            f"the {runs.kind.noun} goes on; end it with: osmosis {runs.kind.group} stop {name}",
            code="interrupted",
            status=INTERRUPTED,
        ) from None


def _show(kind: RunKind, seen: Seen, *, as_json: bool) -> None:
    from pytest_osmosis.reports.text_table import columns, wrapped

    from ..eval.lines import say, say_facts
    from .run_text import coloured, copyable, metric_lines, run_facts, shown, utc_now

    if as_json:
        click.echo(json.dumps({**seen.answer, "metrics": seen.figures}))
        return
    say(f"{shown(seen.run.label)}  {coloured(seen.run.status)}")
    say_facts(dict(run_facts(seen.run, utc_now())))
    figures = [*metric_lines(seen.metrics)] if seen.metrics else []
    if figures:
        say("results")
    for figure in figures:
        for line in wrapped(f"  {figure}", columns()):
            say(line)
    if not seen.run.has_ended:
        say(f"wait for its end: osmosis {kind.group} info {copyable(seen.run)} --watch")
    elif seen.run.status != "finished":
        say(f"what happened: osmosis {kind.group} logs {copyable(seen.run)}")


eval_info_command = _info_command(EVALUATION)
train_info_command = _info_command(TRAINING)
