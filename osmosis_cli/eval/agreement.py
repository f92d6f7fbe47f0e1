"""`osmosis eval agreement`: how far eval functions agree with what people say of runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from pytest_osmosis.analysis.statistics.kappa import Agreement, cohens_kappa
from pytest_osmosis.reports.highlights import figure_text
from pytest_osmosis.reports.tables import span
from pytest_osmosis.run_result import passes
from pytest_osmosis.storage.run_labels import Labels, UnreadableLabels
from pytest_osmosis.suite_results import SuiteResult

from ..errors import CommandError, command_errors
from ..lazy_group import nearest
from .compare import confidence_option
from .lines import say, say_table
from .report import readable
from .viewer.library import Library, ViewEntry

EPILOG = """\b
Examples:
  osmosis eval agreement
  osmosis eval agreement test_data-my-model --json
"""


@dataclass(frozen=True, slots=True)
class FunctionAgreement:
    """One eval function and people, over the runs that both have judged."""

    suite: str
    eval_fn: str
    threshold: float
    labelled: int
    agreement: Agreement
    passes_but_wrong: int
    fails_but_right: int


@click.command("agreement", epilog=EPILOG)
@click.argument("name", metavar="[RUN|FILE]", required=False)
@confidence_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def agreement_command(name: str | None, confidence: float, as_json: bool) -> None:
    """Tell how far eval functions and judges agree with people.

    People mark runs as right or wrong in `osmosis eval view`. RUN is a kept evaluation, FILE a JSON
    report (default: the newest one here with marked runs). Agreement is Cohen's kappa with its
    interval: 1 is full agreement, 0 what chance alone gives.
    """
    with readable(), command_errors(UnreadableLabels, code="invalid"):
        entry, labels, suites = _find(name)
        found = [each for suite in suites for each in _agreements(suite, labels, confidence)]
    if as_json:
        document: dict[str, Any] = {"evaluation": entry.run.name, "labelled": len(labels.runs)}
        click.echo(json.dumps({**document, "eval_fns": [asdict(each) for each in found]}))
        return
    marked = Counter(label.is_right for label in labels.runs.values())
    say(f"{entry.run.name}: people call {marked[True]} runs right, {marked[False]} wrong")
    say("")
    interval = f"{confidence:.0%} interval"
    header = ("eval function", "runs", "agree", "kappa", interval, "passes, wrong", "fails, right")
    say_table([header, *map(_row, found)])


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
    suites, labels = library.view(entry).result.suites, library.labels(entry)
    there = {run.run_id: run for suite in suites for run in suite.runs}
    kept = {
        run: label
        for run, label in labels.runs.items()
        if label.is_right is not None and run in there and label.is_of(there[run])
    }
    return entry, Labels(labels.note, labels.tags, kept), suites


def _agreements(
    suite: SuiteResult, labels: Labels, confidence: float
) -> Iterator[FunctionAgreement]:
    for function in suite.functions:
        threshold = suite.threshold_of(function)
        if threshold is None:
            continue
        pairs = Counter(
            (passes(run.scores[function.name], threshold), labels.runs[run.run_id].is_right)
            for run in suite.runs
            if run.run_id in labels.runs and function.name in run.scores
        )
        table = [[pairs[passed, right] for right in (True, False)] for passed in (True, False)]
        agreement = cohens_kappa(table, confidence=confidence)
        if agreement is not None:
            yield FunctionAgreement(
                *(suite.info.name, function.name, threshold, pairs.total(), agreement),
                *(pairs[True, False], pairs[False, True]),
            )


def _row(found: FunctionAgreement) -> tuple[str, ...]:
    agreement, interval = found.agreement, found.agreement.interval
    figures = f"{agreement.observed:.0%}", figure_text(agreement.kappa)
    around = "-" if interval is None else span(interval, signed=True)
    wrong = str(found.passes_but_wrong), str(found.fails_but_right)
    return found.eval_fn, str(found.labelled), *figures, around, *wrong
