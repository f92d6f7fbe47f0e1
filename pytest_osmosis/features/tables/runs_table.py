"""All runs as one table for analysis, a line a run: CSV or Parquet, by the file's ending.

Scores are columns of their own, `score[<eval function>]`, and so are the dataset's, under their own
names; what is not known is empty (null).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...reports.formats import Sections, no_sections
from ...run_result import RUN_FIELDS, RunResult
from ...storage.atomic_write import write_whole
from ...suite_results import EvalResult, RowData, RowResult

if TYPE_CHECKING:
    import pyarrow

_FIRST = (
    "suite", "row_index", "row_id", "run_index", "outcome", "passed", "success", "error_type",
    "error_kind", "error", "user_prompt", "ground_truth", "answer", "model", "finish_reason",
)  # fmt: skip
_OF_ROW = ("user_prompt", "ground_truth")
_LEFT_OUT = ("fatal", "cached")

COLUMNS: dict[str, type] = {
    name: RUN_FIELDS.get(name, str)
    for name in dict.fromkeys([*_FIRST, *RUN_FIELDS])
    if name not in _LEFT_OUT
}
"""What a line holds besides the scores and the dataset's columns: every field of a run that is one
value, and two of its row."""


def write(result: EvalResult, path: Path, sections: Sections = no_sections) -> None:
    """Write the table; OSError when it cannot be written, the old file then untouched."""
    data = _parquet(result) if path.suffix.lower() == ".parquet" else _csv(result)
    write_whole(path, data, mode=result.private_mode)


def _columns(result: EvalResult) -> dict[str, tuple[type, list[Any]]]:
    """Return the type and the values, a run each, of every column."""
    lines = [(row, run) for suite in result.suites for row in suite.rows for run in row.runs]
    functions = [each.name for suite in result.suites for each in suite.functions]
    columns = {
        name: (kind, [_value_of(run, row.data, name) for row, run in lines])
        for name, kind in COLUMNS.items()
    }
    for name in dict.fromkeys(functions):
        columns[f"score[{name}]"] = float, [run.scores.get(name) for _, run in lines]
        if any(name in run.reasons for _, run in lines):
            columns[f"reason[{name}]"] = str, [run.reasons.get(name) for _, run in lines]
    own = dict.fromkeys(name for row, _ in lines for name in _own(row))
    for name in own:
        title = name
        while title in columns or (title != name and title in own):
            title = f"column[{title}]"
        columns[title] = _typed([_own(row).get(name) for row, _ in lines])
    return columns


def _value_of(run: RunResult, data: RowData | None, name: str) -> Any:
    if name in _OF_ROW:
        return None if data is None else getattr(data, name)
    return getattr(run, name)


def _own(row: RowResult) -> Mapping[str, Any]:
    return {} if row.data is None else row.data.columns


def _typed(values: list[Any]) -> tuple[type, list[Any]]:
    """Return the one type of a dataset's column, and its values: text where they differ in type."""
    kinds = {type(value) for value in values if value is not None}
    for kind in (bool, int, float):
        if kinds <= {kind} or (kind is float and kinds <= {int, float}):
            return kind, values
    return str, [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]


def _csv(result: EvalResult) -> bytes:
    columns = _columns(result)
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*(values for _, values in columns.values()), strict=True))
    return text.getvalue().encode("utf-8")


def as_arrow(result: EvalResult) -> pyarrow.Table:
    """Return the table."""
    import pyarrow as pa  # only where it is asked for

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    columns = {
        name: pa.array(values, kinds[kind]) for name, (kind, values) in _columns(result).items()
    }
    return pa.table(columns)


def _parquet(result: EvalResult) -> bytes:
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(as_arrow(result), sink)
    return sink.getvalue()
