"""All runs as one table for analysis, a line a run: CSV or Parquet, by the file's ending.

Scores are columns of their own, `score[<eval function>]`; what is not known is empty (null).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..results import RUN_FIELDS, EvalResult, RunResult
from ..storage.atomic_write import write_whole
from .formats import Sections

_FIRST = (
    "suite", "row_index", "row_id", "run_index", "outcome", "passed", "success", "error_type",
    "error_kind", "error", "answer", "model", "finish_reason",
)  # fmt: skip
_LEFT_OUT = ("fatal", "cached")

COLUMNS: dict[str, type] = {
    name: RUN_FIELDS.get(name, str)
    for name in dict.fromkeys([*_FIRST, *RUN_FIELDS])
    if name not in _LEFT_OUT
}
"""Attributes of a run, and what they are: every field that holds one value."""


def write(result: EvalResult, path: Path, sections: Sections | None = None) -> None:
    """Write the table; OSError when it cannot be written, the old file then untouched."""
    write_whole(path, _parquet(result) if path.suffix.lower() == ".parquet" else _csv(result))


def _runs(result: EvalResult) -> Iterator[RunResult]:
    return (run for suite in result.suites for row in suite.rows for run in row.runs)


def _functions(result: EvalResult) -> list[str]:
    names = (function.name for suite in result.suites for function in suite.functions)
    return list(dict.fromkeys(names))


def _csv(result: EvalResult) -> bytes:
    names = _functions(result)
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, *(f"score[{name}]" for name in names)])
    for run in _runs(result):
        values = [getattr(run, column) for column in COLUMNS]
        rows.writerow([*values, *(run.scores.get(name) for name in names)])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _parquet(result: EvalResult) -> bytes:
    import pyarrow as pa  # only where Parquet is asked for
    from pyarrow import parquet

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    runs = list(_runs(result))
    columns: dict[str, Any] = {
        name: pa.array(_sendable([getattr(run, name) for run in runs]), kinds[kind])
        for name, kind in COLUMNS.items()
    }
    for name in _functions(result):
        scores = [run.scores.get(name) for run in runs]
        columns[f"score[{name}]"] = pa.array(scores, pa.float64())
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _sendable(values: Sequence[Any]) -> list[Any]:
    """Values without the half characters that UTF-8 has no bytes for."""
    return [
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for value in values
    ]
