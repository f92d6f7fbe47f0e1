"""The figures of a suite by the values of a column of its dataset; pure.

Each value has the figures of its rows, as a suite of these rows alone would have them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ..suite_results import Breakdown, SuiteResult, ValueResult
from .aggregate import aggregate


def breakdown_of(
    suite: SuiteResult,
    column: str,
    rows_of: Mapping[str, Collection[int]],
    *,
    confidence: float | None = None,
) -> Breakdown:
    """Return the figures by the values of a column; `rows_of` has the row indices of each."""
    by_index = {row.row_index: row.runs for row in suite.rows}
    values = []
    for value in _ordered(rows_of):
        indices = tuple(sorted(index for index in rows_of[value] if index in by_index))
        runs = [run for index in indices for run in by_index[index]]
        info = replace(suite.info, rows=len(indices))
        own = aggregate(info, runs, selected=len(runs), confidence=confidence)
        values.append(ValueResult(value, indices, own.finished, own.functions))
    return Breakdown(column, tuple(values))


def breakdowns_of(
    suite: SuiteResult, parts: Iterable[Breakdown], *, confidence: float
) -> tuple[Breakdown, ...]:
    """Return the suite's figures by each column of breakdowns, of itself or of its shards."""
    rows_of: dict[str, defaultdict[str, set[int]]] = {}
    for part in parts:
        for value in part.values:
            found = rows_of.setdefault(part.column, defaultdict(set))
            found[value.value].update(value.row_indices)
    return tuple(
        breakdown_of(suite, column, found, confidence=confidence)
        for column, found in rows_of.items()
    )


def written(value: object) -> str:
    """A value of the dataset as JSON has it; texts without quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _ordered(rows_of: Mapping[str, Collection[int]]) -> list[str]:
    """Numbers are in order of their size, other values as they first come in the data."""
    try:
        return sorted(rows_of, key=float)
    except ValueError:
        return sorted(rows_of, key=lambda value: min(rows_of[value], default=0))
