"""A JSON report read back to be rendered: intervals, baseline and conversations as they were.

`json_reader` has the runs, the figures and the gates; here is what a report says beside them. The
conversations are those of the `.trajectories.jsonl` beside the report, if that is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..analysis.aggregate import CONFIDENCE, aggregate
from ..analysis.breakdown import at_confidence
from ..run_result import RunId
from ..suite_results import EvalResult, SuiteResult
from ..verdicts import (
    BaselineReport,
    Change,
    Comparison,
    Count,
    Difference,
    Paired,
)
from .json_models import BaselineChanges, ChangedRow, FunctionChanges, Report
from .json_models import Difference as ToldDifference
from .json_reader import interval_of, load_report
from .saved_conversations import SavedConversations, beside, saved_sections


@dataclass(frozen=True, slots=True)
class SavedReport:
    """What reports are rendered from."""

    result: EvalResult
    conversations: SavedConversations
    sections: Mapping[RunId, str]
    """Of the runs that did not pass, as far as their conversations are there."""


def read_saved(path: Path) -> SavedReport:
    """Return a report and the conversations beside it; UnreadableReport when it is none."""
    report, result = load_report(path)
    said = SavedConversations(beside(path).absolute(), result)
    suites = tuple(_judged(suite, report, said) for suite in result.suites)
    result = replace(result, suites=suites)
    return SavedReport(result, said, saved_sections(result, said))


def _judged(suite: SuiteResult, report: Report, said: SavedConversations) -> SuiteResult:
    """The suite with its verdicts, what changed, and the questions of its rows."""
    name = suite.info.name
    level = next((gate.confidence for gate in report.gates if gate.confidence), CONFIDENCE)
    parts = {part.name: part for part in report.suites}
    changes = parts.get(name, report).baseline
    return replace(
        suite,
        rows=tuple(replace(row, data=said.row_data(name, row)) for row in suite.rows),
        functions=aggregate(
            suite.info, suite.runs, selected=suite.selected, confidence=level
        ).functions,
        breakdowns=at_confidence(suite, level),
        baseline=None if changes is None else _baseline(changes),
    )


def _baseline(told: BaselineChanges) -> BaselineReport:
    return BaselineReport(
        tuple(_comparison(name, each) for name, each in told.eval_fns.items()),
        tuple(told.notes),
        told.source,
    )


def _comparison(name: str, told: FunctionChanges) -> Comparison:
    return Comparison(
        eval_fn=name,
        rows=told.rows,
        differences=tuple(map(_difference, told.differences)),
        changes=tuple(map(_change, told.changes)),
        tested=told.tested,
        short=told.short,
    )


def _difference(told: ToldDifference) -> Difference:
    paired = Paired(told.difference.value, interval_of(told.difference), told.p, told.p_method)
    return Difference(told.metric, told.current, told.baseline, paired)


def _change(told: ChangedRow) -> Change:
    return Change(
        name=told.name,
        row=0,
        baseline_row=0,
        current=Count(told.passes, told.runs, 0),
        baseline=Count(told.baseline_passes, told.baseline_runs, 0),
        mean=told.mean,
        baseline_mean=told.baseline_mean,
        p=told.p,
        verdict=told.verdict,
        answer=told.answer,
        baseline_answer=told.baseline_answer,
    )
