"""What a session is compared with: an earlier report, the last evaluation that was kept, or another
model's runs in the same session.

Pure: knows neither files nor options nor pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..run_result import RunResult, SuiteInfo, passes
from ..suite_results import EvalResult, RowResult, SuiteResult
from ..verdicts import BaselineReport, Change, Difference
from .planned_rows import PlannedRows, ran

if TYPE_CHECKING:
    from .score_table import ScoreTable


@dataclass(frozen=True)
class Baseline:
    """What one suite is compared with."""

    source: str
    """Where it is from, as people see it."""
    suite: SuiteResult
    rows: PlannedRows

    @cached_property
    def table(self) -> ScoreTable:
        """Its scores; made when it is compared, since no request waits for that."""
        from .score_table import score_table_of

        return score_table_of(self.suite, self.rows)


def baseline_of(suite: SuiteResult, source: str, rows: PlannedRows | None = None) -> Baseline:
    """A suite as a baseline; `rows` where those that never ran are known too."""
    return Baseline(source, suite, ran(suite) if rows is None else rows)


def baselines_of(
    report: EvalResult, infos: Iterable[SuiteInfo], *, source: str, alone: bool
) -> dict[str, Baseline]:
    """Return, by suite, its part of a report; a suite that the report does not have is left out.

    `source` is the report's path as people see it. `alone`: the session has one suite; a report of
    one is then compared whatever that is called.
    """
    there = {suite.info.name: suite for suite in report.suites}
    found = {info.name: _match(info, there, alone=alone) for info in infos}
    return {name: baseline_of(suite, source) for name, suite in found.items() if suite is not None}


def _match(info: SuiteInfo, there: Mapping[str, SuiteResult], *, alone: bool) -> SuiteResult | None:
    """By name, by the data file's name, or because there is nothing else to compare."""
    if info.name in there:
        return there[info.name]
    same = [s for s in there.values() if Path(s.info.data).name == Path(info.data).name]
    if len(same) == 1:
        return same[0]
    return next(iter(there.values())) if alone and len(there) == 1 else None


def compared(
    suite: SuiteResult, table: ScoreTable, *, baseline: Baseline, confidence: float, pairs: int = 1
) -> BaselineReport:
    """The comparison of a suite with its baseline, with what both answered where a row changed.

    Intervals and p hold for all of so many `pairs` together (Bonferroni).
    """
    from .comparison import compare

    report = compare(table, baseline.table, confidence=1.0 - (1.0 - confidence) / pairs)
    here, there = _rows_by_place(suite, table.rows), _rows_by_place(baseline.suite, baseline.rows)

    def with_answers(eval_fn: str) -> Callable[[Change], Change]:
        return lambda change: _with_answers(change, eval_fn, table, here, there)

    comparisons = tuple(
        replace(
            each,
            changes=tuple(map(with_answers(each.eval_fn), each.changes)),
            differences=tuple(_adjusted(found, pairs) for found in each.differences),
        )
        for each in report.comparisons
    )
    notes = (*_whole_data(suite.info, baseline, table), *report.notes)
    if pairs > 1:
        notes += (f"intervals and p hold for all {pairs} pairs together (Bonferroni)",)
    return replace(report, comparisons=comparisons, notes=notes, source=baseline.source)


def _adjusted(found: Difference, pairs: int) -> Difference:
    p = found.paired.p
    if pairs == 1 or p is None:
        return found
    return replace(found, paired=replace(found.paired, p=min(1.0, pairs * p)))


def _whole_data(info: SuiteInfo, baseline: Baseline, table: ScoreTable) -> Sequence[str]:
    """Say that the data differ, where the baseline does not say in which rows."""
    there = baseline.suite.info.digest
    if all(baseline.rows.digests) or not there or there == info.digest:
        return ()
    by = "id" if all(key.startswith("id ") for key in table.rows.keys) else "index"
    return (
        "the data differ, and the baseline does not say in which rows: "
        f"they are compared by {by} only",
    )


def _rows_by_place(suite: SuiteResult, rows: PlannedRows) -> dict[int, RowResult]:
    by_index = {row.row_index: row for row in suite.rows}
    return {place: by_index[index] for place, index in enumerate(rows.indices) if index in by_index}


def _with_answers(
    change: Change,
    eval_fn: str,
    table: ScoreTable,
    here: Mapping[int, RowResult],
    there: Mapping[int, RowResult],
) -> Change:
    if change.verdict == "changed" and not change.is_flip:
        return change

    def answer(row: RowResult | None, passing: bool) -> str | None:
        runs = row.runs if row is not None else ()
        return _answer(runs, eval_fn, threshold=table.threshold(eval_fn), passing=passing)

    return replace(
        change,
        answer=answer(here.get(change.row), change.difference > 0.0),
        baseline_answer=answer(there.get(change.baseline_row), change.difference < 0.0),
    )


def _answer(
    runs: Sequence[RunResult], eval_fn: str, *, threshold: float, passing: bool
) -> str | None:
    """What the first run answered that passed, or did not; else the error that it ended in."""
    for run in runs:
        if passes(run.scores.get(eval_fn), threshold) == passing:
            return run.answer if run.error is None else run.error
    return None
