"""A JSON report read back to be rendered: intervals, baseline and conversations as they were.

`json_reader` has the runs, the figures and the gates; here is what a report says beside them. The
conversations are those of the `.trajectories.jsonl` beside the report, if that is there; the
columns of rows those of the dataset, where its file still holds the row by its digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from osmosis_ai.secret import mask_everywhere
from osmosis_ai.secret_variables import secret_variables

from ..analysis.aggregate import CONFIDENCE, aggregate
from ..analysis.breakdown import breakdowns_of
from ..dataset.columns import mapping_of
from ..dataset.dataset import load_dataset
from ..dataset.errors import DatasetError
from ..escaping import counted, shown_path
from ..suite_results import EvalResult, RowResult, SuiteResult
from ..verdicts import (
    BaselineReport,
    Change,
    Comparison,
    Count,
    Difference,
    Paired,
)
from .formats import Sections
from .json_models import BaselineChanges, ChangedRow, FunctionChanges, Report
from .json_models import Difference as SavedDifference
from .json_reader import interval_of, load_report
from .saved_conversations import SavedConversations, beside, saved_sections


@dataclass(frozen=True, slots=True)
class SavedReport:
    """What reports are rendered from."""

    result: EvalResult
    conversations: SavedConversations
    sections: Sections
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
        breakdowns=breakdowns_of(suite, suite.breakdowns, confidence=level),
        baseline=None if changes is None else _baseline(changes),
    )


def _baseline(saved: BaselineChanges) -> BaselineReport:
    return BaselineReport(
        tuple(_comparison(name, each) for name, each in saved.eval_fns.items()),
        tuple(saved.notes),
        saved.source,
    )


def _comparison(name: str, saved: FunctionChanges) -> Comparison:
    return Comparison(
        eval_fn=name,
        rows=saved.rows,
        differences=tuple(map(_difference, saved.differences)),
        changes=tuple(map(_change, saved.changes)),
        tested=saved.tested,
        short=saved.short,
    )


def _difference(saved: SavedDifference) -> Difference:
    paired = Paired(saved.difference.value, interval_of(saved.difference), saved.p, saved.p_method)
    return Difference(saved.metric, saved.current, saved.baseline, paired)


def _change(saved: ChangedRow) -> Change:
    return Change(
        name=saved.name,
        row=0,
        baseline_row=0,
        current=Count(saved.passes, saved.runs, 0),
        baseline=Count(saved.baseline_passes, saved.baseline_runs, 0),
        mean=saved.mean,
        baseline_mean=saved.baseline_mean,
        p=saved.p,
        verdict=saved.verdict,
        answer=saved.answer,
        baseline_answer=saved.baseline_answer,
    )


def with_dataset(result: EvalResult) -> tuple[EvalResult, list[str]]:
    """Return the result, each row with what its dataset holds of it, and what is left out.

    A row is left as it is where the file is not there or holds another row in its place.
    """
    mask_everywhere(*secret_variables())
    notes: list[str] = []
    suites = []
    for suite in result.suites:
        try:
            found = _with_rows(suite)
        except (DatasetError, ValueError) as error:
            found = suite
            notes.append(f"columns of the dataset are left out: {error}")
        else:
            notes.extend(_note_changed(suite, found))
        suites.append(found)
    return replace(result, suites=tuple(suites)), notes


def _with_rows(suite: SuiteResult) -> SuiteResult:
    if not suite.rows:
        return suite
    dataset = load_dataset(
        Path(suite.info.data),
        limit=1 + max(row.row_index for row in suite.rows),
        mapping=mapping_of(suite.info.settings.get("map", ())),
        system_prompt=suite.info.settings.get("system_prompt"),
        validate=False,
    )

    def filled(row: RowResult) -> RowResult:
        is_there = row.row_index < len(dataset)
        if not is_there or dataset.row_digest(row.row_index) != row.digest:
            return row
        return replace(row, data=dataset.row(row.row_index).describe())

    return replace(suite, rows=tuple(map(filled, suite.rows)))


def _note_changed(suite: SuiteResult, found: SuiteResult) -> Iterable[str]:
    """Say of how many rows the file holds something else now."""
    pairs = zip(suite.rows, found.rows, strict=True)
    if rows := sum(before is after for before, after in pairs):
        path = shown_path(Path(suite.info.data))
        yield (
            f"columns of the dataset are left out of {counted(rows, 'row')}: "
            f"{path} has changed since"
        )
