"""`osmosis eval agreement`: how far eval functions agree with what people say of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import click

from pytest_osmosis.analysis.statistics.kappa import Agreement, cohens_kappa
from pytest_osmosis.reports.highlights import figure_text, run_name
from pytest_osmosis.reports.tables import span
from pytest_osmosis.run_result import RunResult, passes
from pytest_osmosis.storage.run_labels import Labels, UnreadableLabels
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


@dataclass(frozen=True, slots=True)
class RunToRead:
    """A run to look at next, and why."""

    run: str
    why: str


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
        found = [each for suite in suites for each in _agreements(suite, labels, confidence)]
        runs = [each for suite in suites for each in _next(suite, labels)][:most]
    if as_json:
        document: dict[str, Any] = {"evaluation": entry.run.name, "labelled": len(labels.runs)}
        document["eval_fns"] = [asdict(each) for each in found]
        print_json({**document, "next": [asdict(each) for each in runs]})
        return
    marked = Counter(label.is_right for label in labels.runs.values())
    say(f"{entry.run.name}: people call {marked[True]} runs right, {marked[False]} wrong")
    say("")
    interval = f"{confidence:.0%} interval"
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


def _next(suite: SuiteResult, labels: Labels) -> Iterator[RunToRead]:
    """Yield where people and eval functions differ, then runs whose label would tell most."""
    limits = {each.name: suite.threshold_of(each) for each in suite.functions}
    unmarked: dict[bool, list[tuple[float, int, str, str]]] = {True: [], False: []}
    rows = {row.row_index: row for row in suite.rows}
    for run in suite.runs:
        name = run_name(rows[run.row_index], run, n=suite.info.n)
        verdicts = {
            function: (passes(run.scores[function], limit), limit)
            for function, limit in limits.items()
            if limit is not None and function in run.scores
        }
        if (label := labels.runs.get(run.run_id)) is not None:
            note = f": {label.note.splitlines()[0]}" if label.note else ""
            for function, (passed, _) in verdicts.items():
                if passed != label.is_right:
                    said = (
                        "passes what people call wrong" if passed else "fails what they call right"
                    )
                    yield RunToRead(name, f"{function} {said}{note}")
        elif verdicts:
            rank, why = _doubt(run, verdicts, run.outcome)
            unmarked[run.passed].append((rank, run.run_index, name, why))
    marked = Counter(run.passed for run in suite.runs if run.run_id in labels.runs)
    first = marked[True] <= marked[False]
    orders = [sorted(unmarked[each])[:100] for each in (first, not first)]
    for found in chain.from_iterable(zip_longest(*orders)):
        if found is not None:
            yield RunToRead(*found[2:])


def _doubt(run: RunResult, held: dict[str, tuple[bool, float]], outcome: str) -> tuple[float, str]:
    """Return how sure the eval functions are of a run, less being first, and it in words."""
    if len({passed for passed, _ in held.values()}) > 1:
        return -1.0, "not marked; eval functions differ"
    if all(run.scores[name] in (0.0, 1.0) for name in held):
        return 1.0, f"not marked; {outcome}"
    near, name = min((abs(run.scores[name] - limit), name) for name, (_, limit) in held.items())
    return near, f"not marked; {name} {run.scores[name]:g}"
