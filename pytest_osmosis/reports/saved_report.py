"""A JSON report read back to be rendered: intervals, sections and conversations as they were.

`json_reader` has the runs, the figures and the gates; here is what a report says beside them. The
conversations are those of the `.trajectories.jsonl` beside the report, if that is there; the
columns of rows those of the dataset, where its file still holds the row by its digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from osmosis_ai.secret import mask_everywhere
from osmosis_ai.secret_variables import secret_variables

from ..dataset.columns import mapping_of
from ..dataset.dataset import load_dataset
from ..dataset.errors import DatasetError
from ..escaping import counted, shown_path
from ..suite_results import EvalResult, RowResult, SuiteResult
from .formats import SECTIONS, Sections
from .json_models import Report
from .json_reader import load_report
from .saved_conversations import SavedConversations, beside, saved_sections


@dataclass(frozen=True, slots=True)
class SavedReport:
    """A report with what lies beside it: what other reports are made of."""

    report: Report
    """All that the file says."""
    result: EvalResult
    conversations: SavedConversations
    sections: Sections
    """Of the runs that did not pass, as far as their conversations are there."""


def read_saved(path: Path) -> SavedReport:
    """Return a report and the conversations beside it; UnreadableReport when it is none."""
    report, result = load_report(path)
    said = SavedConversations(beside(path).absolute(), result)
    result = with_sections(report, result).with_suites(partial(_with_questions, said=said))
    return SavedReport(report, result, said, saved_sections(result, said))


def with_sections(report: Report, result: EvalResult) -> EvalResult:
    """Return the result of a report, each suite with the sections of features."""
    parts = {part.name: part for part in report.suites}

    def filled(suite: SuiteResult) -> SuiteResult:
        part = parts.get(suite.info.name, report)
        sections = {
            each.name: each.load_model().read(saved, suite)
            for each in SECTIONS
            if (saved := getattr(part, each.name))
        }
        return replace(suite, sections=sections)

    return result.with_suites(filled)


def _with_questions(suite: SuiteResult, said: SavedConversations) -> SuiteResult:
    name = suite.info.name
    return suite.with_rows(lambda row: replace(row, data=said.row_data(name, row)))


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
        template=suite.info.settings.get("prompt_template"),
        system_prompt=suite.info.settings.get("system_prompt"),
        validate=False,
    )

    def filled(row: RowResult) -> RowResult:
        is_there = row.row_index < len(dataset)
        if not is_there or dataset.row_digest(row.row_index) != row.digest:
            return row
        return replace(row, data=dataset.row(row.row_index).describe())

    return suite.with_rows(filled)


def _note_changed(suite: SuiteResult, found: SuiteResult) -> Iterable[str]:
    """Say of how many rows the file holds something else now."""
    pairs = zip(suite.rows, found.rows, strict=True)
    if rows := sum(before is after for before, after in pairs):
        path = shown_path(Path(suite.info.data))
        yield (
            f"columns of the dataset are left out of {counted(rows, 'row')}: "
            f"{path} has changed since"
        )
