"""The figures of a suite by the values of a column of its dataset; pure.

Each value has the figures of its rows, as a suite of these rows alone would have them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from ..suite_results import Breakdown, SuiteResult, ValueResult
from .aggregate import aggregate

COLUMNS_SHOWN = 12
"""Columns that a mistake lists."""
NAMED = ("system_prompt", "user_prompt", "ground_truth")
"""Columns that every dataset may be broken down by, besides its own."""


class NoColumn(ValueError):
    """The dataset has no such column; `str()` names those that there are."""

    def __init__(self, name: str, columns: Collection[str]) -> None:
        there = sorted(columns)
        shown = ", ".join(there[:COLUMNS_SHOWN]) + (", …" if len(there) > COLUMNS_SHOWN else "")
        close = get_close_matches(name.casefold(), there, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        super().__init__(f"the data have no column {name!r}, only {shown or 'none'}{hint}")


def check_column(name: str, rows: Iterable[Collection[str]]) -> None:
    """Raise NoColumn unless one of the rows, each given as its columns, has the column."""
    seen = dict.fromkeys(NAMED)
    for columns in [NAMED, *rows] if name.casefold() in NAMED else rows:
        if _match(name, columns) is not None:
            return
        seen.update(dict.fromkeys(columns))
    raise NoColumn(name, seen)


def broken_down(
    suite: SuiteResult, columns: Iterable[str], *, confidence: float | None
) -> SuiteResult:
    """Return the suite with its figures by each column; its rows are with their data."""
    found = (_by_column(suite, name, confidence) for name in columns)
    return replace(suite, breakdowns=tuple(each for each in found if each is not None))


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


def _by_column(suite: SuiteResult, name: str, confidence: float | None) -> Breakdown | None:
    """The breakdown by one column; None where no row has it."""
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    titles: set[str] = set()
    for row in suite.rows:
        if row.data is None:
            continue
        cells = {**{each: getattr(row.data, each) for each in NAMED}, **row.data.columns}
        if (column := _match(name, cells)) is not None:
            titles.add(column)
        rows_of[written(None if column is None else cells[column])].append(row.row_index)
    return breakdown_of(suite, min(titles), rows_of, confidence=confidence) if titles else None


def _match(name: str, columns: Collection[str]) -> str | None:
    """The column of that name, without regard to case; None when there is none."""
    if name in columns:
        return name
    return next((each for each in columns if each.casefold() == name.casefold()), None)


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
