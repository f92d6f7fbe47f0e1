"""How far eval functions agree with what people say of runs, and which runs to look at next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from ...analysis.statistics.kappa import Agreement, kappa_in_units
from ...reports.highlights import run_name
from ...run_result import RunResult, passes
from ...suite_results import SuiteResult
from .run_labels import Labels


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


def verdicts_on(suites: Iterable[SuiteResult], labels: Labels) -> Labels:
    """Return the labels that call a run right or wrong, of the runs that are there."""
    there = {run.run_id: run for suite in suites for run in suite.runs}
    kept = {
        run: label
        for run, label in labels.runs.items()
        if label.is_right is not None and run in there and label.is_of(there[run])
    }
    return replace(labels, runs=kept)


def agreements(
    suite: SuiteResult, labels: Labels, confidence: float
) -> Iterator[FunctionAgreement]:
    """Yield the agreement of each eval function of a suite, where there is one."""
    for function in suite.functions:
        threshold = suite.threshold_of(function)
        if threshold is None:
            continue
        cluster_of = suite.info.cluster_of
        said = [
            (
                passes(run.scores[function.name], threshold),
                bool(labels.runs[run.run_id].is_right),
                cluster_of.get(run.row_index, run.row_index),
            )
            for run in suite.deciding_runs
            if run.run_id in labels.runs
            and function.name in run.scores
            and labels.runs[run.run_id].is_about(run, function.name)
        ]
        pairs = Counter((passed, is_right) for passed, is_right, _ in said)
        agreement = kappa_in_units(said, confidence=confidence)
        if agreement is not None:
            yield FunctionAgreement(
                *(suite.info.name, function.name, threshold, pairs.total(), agreement),
                *(pairs[True, False], pairs[False, True]),
            )


def runs_to_read(suite: SuiteResult, labels: Labels) -> Iterator[RunToRead]:
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
