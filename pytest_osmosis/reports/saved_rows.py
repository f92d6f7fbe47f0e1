"""The rows of a saved report: what the dataset that it names still holds of them.

A JSON report has no columns of its dataset, but the place of the file and a digest of each row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from osmosis_ai.secret import Redactor
from osmosis_ai.secret_variables import secret_variables

from ..dataset.columns import mapping_of
from ..dataset.dataset import load_dataset
from ..dataset.errors import DatasetError
from ..dataset.row_data import Redact, row_data
from ..escaping import counted, shown_path
from ..suite_results import EvalResult, RowResult, SuiteResult


def with_dataset(result: EvalResult) -> tuple[EvalResult, list[str]]:
    """Return the result, each row with what its dataset holds of it, and what is left out.

    A row is left as it is where the file is not there or holds another row in its place.
    """
    redact = Redactor(secret_variables())
    notes: list[str] = []
    suites = []
    for suite in result.suites:
        try:
            found = _with_dataset(suite, redact)
        except (DatasetError, ValueError) as error:
            found = suite
            notes.append(f"columns of the dataset are left out: {error}")
        else:
            notes.extend(_changed(suite, found))
        suites.append(found)
    return replace(result, suites=tuple(suites)), notes


def _with_dataset(suite: SuiteResult, redact: Redact) -> SuiteResult:
    if not suite.rows:
        return suite
    dataset = load_dataset(
        Path(suite.info.data),
        limit=1 + max(row.row_index for row in suite.rows),
        mapping=mapping_of(suite.info.settings.get("map", ())),
        validate=False,
    )

    def filled(row: RowResult) -> RowResult:
        is_there = row.row_index < len(dataset)
        if not is_there or dataset.row_digest(row.row_index) != row.digest:
            return row
        return replace(row, data=row_data(dataset, row.row_index, redact))

    return replace(suite, rows=tuple(map(filled, suite.rows)))


def _changed(suite: SuiteResult, found: SuiteResult) -> Iterable[str]:
    """Say of how many rows the file holds something else now."""
    pairs = zip(suite.rows, found.rows, strict=True)
    if rows := sum(before is after for before, after in pairs):
        path = shown_path(Path(suite.info.data))
        yield (
            f"columns of the dataset are left out of {counted(rows, 'row')}: "
            f"{path} has changed since"
        )
