"""`osmosis eval agreement`: how far eval functions agree with what people say of runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pytest_osmosis.escaping import percent
from pytest_osmosis.features.labels.agreement import (
    FunctionAgreement,
    agreements,
    runs_to_read,
    verdicts_on,
)
from pytest_osmosis.features.labels.run_labels import Labels, UnreadableLabels
from pytest_osmosis.reports.highlights import figure_text
from pytest_osmosis.reports.tables import span
from pytest_osmosis.suite_results import SuiteResult

from ..errors import CommandError, command_errors
from ..lazy_group import nearest
from ..shared_options import json_option, print_json
from .compare import confidence_option
from .lines import say, say_table
from .report import readable
from .viewer.library import Library, ViewEntry

EPILOG = """\b
Examples:
  osmosis eval agreement
  osmosis eval agreement test_data-my-model --json
"""


@click.command("agreement", epilog=EPILOG)
@click.argument("name", metavar="[RUN|FILE]", required=False)
@confidence_option
@click.option(
    "--next",
    "most",
    type=click.IntRange(0),
    default=10,
    metavar="N",
    help="Runs to look at next that are named (default: 10).",
)
@json_option
def agreement_command(name: str | None, confidence: float, most: int, as_json: bool) -> None:
    """Tell how far eval functions and judges agree with people.

    People mark runs as right or wrong in `osmosis eval view`. RUN is a kept evaluation, FILE a JSON
    report (default: the newest one here with marked runs). Agreement is Cohen's kappa with its
    interval: 1 is full agreement, 0 what chance alone gives.
    """
    with readable(), command_errors(UnreadableLabels, code="invalid"):
        entry, labels, suites = _find(name)
        found = [each for suite in suites for each in agreements(suite, labels, confidence)]
        runs = [each for suite in suites for each in runs_to_read(suite, labels)][:most]
    if as_json:
        document: dict[str, Any] = {"evaluation": entry.run.name, "labelled": len(labels.runs)}
        document["eval_fns"] = [asdict(each) for each in found]
        print_json({**document, "next": [asdict(each) for each in runs]})
        return
    marked = Counter(label.is_right for label in labels.runs.values())
    say(f"{entry.run.name}: people call {marked[True]} runs right, {marked[False]} wrong")
    say("")
    interval = f"{percent(confidence)} interval"
    header = ("eval function", "runs", "agree", "kappa", interval, "passes, wrong", "fails, right")
    say_table([header, *map(_row, found)])
    if runs:
        say("")
        say_table([("look at next", "why"), *((each.run, each.why) for each in runs)])


def _find(name: str | None) -> tuple[ViewEntry, Labels, tuple[SuiteResult, ...]]:
    """Return an evaluation with its labels, those of runs that are there no more left out."""
    library = Library(Path(name) if name is not None and Path(name).is_file() else None)
    entries = [library.only] if library.only else library.entries()
    if name is not None and library.only is None:
        near = nearest(name, [title for each in entries for title in each.names])
        entries = [each for each in entries if name in each.names]
        if not entries:
            raise CommandError(f"no evaluation {name!r} here.{near}", code="not_found")
    entry = next((each for each in entries if library.labels(each).runs), None)
    if entry is None:
        raise CommandError(
            f"no run {'here' if name is None else f'of {name}'} is marked as right or wrong: "
            "mark some in osmosis eval view",
            code="no_labels",
        )
    suites = library.view(entry).result.suites
    return entry, verdicts_on(suites, library.labels(entry)), suites


def _row(found: FunctionAgreement) -> tuple[str, ...]:
    agreement, interval = found.agreement, found.agreement.interval
    figures = f"{agreement.observed:.0%}", figure_text(agreement.kappa)
    around = "-" if interval is None else span(interval, signed=True)
    wrong = str(found.passes_but_wrong), str(found.fails_but_right)
    return found.eval_fn, str(found.labelled), *figures, around, *wrong
