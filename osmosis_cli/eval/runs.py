"""`osmosis eval runs`: the evaluations that are kept on this machine: list, show, prune.

Reads journals; the plugin writes them. What one run said is `kept_runs`'. Knows nothing of
how an evaluation is run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pytest_osmosis.escaping import counted
from pytest_osmosis.reports.highlights import figure_text, outcome_counts
from pytest_osmosis.reports.summary import suite_lines
from pytest_osmosis.reports.text_table import columns, wrapped
from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.journal import FILE
from pytest_osmosis.suite_results import SuiteResult

from ..errors import CommandError
from ..lazy_group import SuggestingGroup, nearest
from ..shared_options import NumberRange, json_option, print_json
from .kept_runs import Kept, KeptSummary, nearest_runs
from .lines import say, say_facts, say_table, size_text, when_text

EPILOG = """\b
Examples:
  osmosis eval runs list
  osmosis eval runs show test_data-my-model
  osmosis eval runs show test_data-my-model row-3
  osmosis eval runs prune --archived --older-than 30
"""
_DAY_S = 86_400.0
_HEADER = ("name", "result", "runs", "mean", "pass@1", "started", "size")
_LEAST_FIRST = ("size", "pass@1", "started", "runs")
"""Columns that a narrow terminal leaves out, in this order."""
_RUN_DIR = "osmosis_cli.eval.runs.run_dir"


@click.group("runs", cls=SuggestingGroup, epilog=EPILOG)
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where evaluations are kept (default: .osmosis/runs here or in a folder above).",
)
@click.pass_context
def runs_command(ctx: click.Context, run_dir: Path | None) -> None:
    """The evaluations that are kept on this machine."""
    ctx.meta[_RUN_DIR] = run_dir


@runs_command.command("list", epilog="\b\nExample:\n  osmosis eval runs list --json")
@json_option
@click.pass_context
def list_command(ctx: click.Context, as_json: bool) -> None:
    """All of them, the newest first."""
    folder = _runs_folder(ctx)
    found = [Kept(path).summary() for path in run_directory.kept_in(folder)]
    found.sort(key=lambda run: run.started_at, reverse=True)
    if as_json:
        print_json({"folder": str(folder), "runs": [asdict(run) for run in found]})
        return
    if not found:
        say(f"no evaluations are kept in {folder}")
        return
    rows = [_HEADER, *(_row(run) for run in found)]
    say_table(rows, least_first=_LEAST_FIRST, shortest=28)


@runs_command.command(
    "show", epilog="\b\nExample:\n  osmosis eval runs show test_data-my-model row-3"
)
@click.argument("name", metavar="RUN")
@click.argument("row", required=False)
@json_option
@click.pass_context
def show_command(ctx: click.Context, name: str, row: str | None, as_json: bool) -> None:
    """One of them: its figures, or the runs of a ROW.

    Beside the figures stands what was asked, below a row's runs a whole conversation. ROW is a
    name such as row-3, an index, or one run of a row, such as row-3[run-1].
    """
    folder = _named(_runs_folder(ctx), name)
    kept = Kept(folder)
    run = kept.summary()
    if run.problem is not None:
        raise CommandError(run.problem, code="invalid")
    if row is not None:
        from .kept_runs import row_document, row_lines

        if as_json:
            print_json(row_document(kept.journal, row))
            return
        for line in row_lines(kept.journal, row):
            say(line)
        return
    suite = kept.suite
    document = {
        **{key: value for key, value in asdict(run).items() if key != "problem"},
        "sessions": len(kept.journal.sessions),
        "outcomes": dict(outcome_counts(suite)),
        "asked": dict(kept.identity.asked),
        "eval_fns": list(kept.identity.info.eval_fns),
        "sources": dict(kept.identity.sources),
        "journal": str(folder / FILE),
        "figures": {
            function.name: {name: figure.value for name, figure in function.figures.items()}
            for function in kept.suite.functions
        },
    }
    if as_json:
        print_json(document)
        return
    _describe(document, kept.suite)


@runs_command.command(
    "prune", epilog="\b\nExample:\n  osmosis eval runs prune --archived --older-than 30 --dry-run"
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--archived", is_flag=True, help="Those whose place a newer one has taken.")
@click.option(
    "--older-than",
    type=NumberRange(0),
    metavar="DAYS",
    help="Of those, or of all, the ones that were started longer ago.",
)
@click.option("--dry-run", is_flag=True, help="Name them, and delete nothing.")
@json_option
@click.pass_context
def prune_command(
    ctx: click.Context,
    names: Sequence[str],
    archived: bool,
    older_than: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete some of them, with their conversations."""
    if not (names or archived or older_than is not None):
        raise click.UsageError("say which: names, --archived or --older-than DAYS")
    folder = _runs_folder(ctx)
    chosen = [_named(folder, name) for name in names] or list(run_directory.kept_in(folder))
    runs = [(path, Kept(path).summary(with_figures=False)) for path in chosen]
    if not names:
        before = None if older_than is None else time.time() - older_than * _DAY_S
        runs = [
            (path, run)
            for path, run in runs
            if (run.archived or not archived) and (before is None or run.started_at < before)
        ]
    busy = [run for _, run in runs if run.pid is not None]
    if busy and names:
        raise CommandError(f"{busy[0].name} is in use by pid {busy[0].pid}", code="in_use")
    gone = [(path, run) for path, run in runs if run.pid is None]
    for path, _ in [] if dry_run else gone:
        run_directory.remove(path)
    if as_json:
        print_json({"deleted": [run.name for _, run in gone], "dry_run": dry_run})
        return
    for _, run in gone:
        click.echo(f"{'would delete' if dry_run else 'deleted'} {run.name}")
    size = size_text(sum(run.bytes for _, run in gone))
    click.echo(f"{counted(len(gone), 'evaluation')}, {size}")


def _runs_folder(ctx: click.Context) -> Path:
    return ctx.meta[_RUN_DIR] or nearest_runs(Path.cwd())


def _named(folder: Path, name: str) -> Path:
    known = [path.name for path in run_directory.kept_in(folder)]
    head, dots, tail = name.partition("...")  # as a narrow terminal shows it
    like = [each for each in known if dots and each.startswith(head) and each.endswith(tail)]
    if name not in known and len(like) != 1:
        raise CommandError(
            f"no evaluation {name!r} in {folder}.{nearest(name, known)}",
            code="not_found",
        )
    return folder / (name if name in known else like[0])


def _row(run: KeptSummary) -> tuple[str, ...]:
    done = f"{run.done}/{run.total}" if run.state != "damaged" else ""
    result = run.state if run.pid else run.verdict or run.state
    result += f" ({run.pid})" if run.pid else ""
    mean, pass_at_1 = figure_text(run.mean), figure_text(run.pass_at_1)
    began, size = when_text(run.started_at)[5:], size_text(run.bytes)  # without the year
    return run.name, result, done, mean, pass_at_1, began, size


def _describe(kept: dict[str, Any], suite: SuiteResult) -> None:
    state = ", ".join(dict.fromkeys(filter(None, [kept["state"], kept["verdict"]])))
    say(f"{kept['name']}: {state}, {kept['done']}/{kept['total']} runs")
    outcomes = ", ".join(f"{number} {kind}" for kind, number in kept["outcomes"].items())
    facts = {
        "runs": outcomes or "none yet",
        "started": f"{when_text(kept['started_at'])}, sessions: {kept['sessions']}",
        "data": kept["data"],
        **{name: _text(value) for name, value in kept["asked"].items()},
        "journal": f"{kept['journal']} ({size_text(kept['bytes'])})",
    }
    facts.setdefault("eval functions", _text(kept["eval_fns"]))
    say_facts({name: text for name, text in facts.items() if text})
    if suite.finished:
        say("")
        width = columns()
        for line in suite_lines(suite, **({} if width is None else {"width": width})):
            say(line)
        for line in wrapped(f"one row: osmosis eval runs show {kept['name']} ROW", width):
            say(line)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float) and value.is_integer():
        return f"{value:g}"
    return "" if value is None else str(value)
