"""The figures of a suite by the values of a column of its dataset; pure.

Each value has the figures of its rows, as a suite of these rows alone would have them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from ..suite_results import Breakdown, SuiteResult, ValueResult
from .aggregate import aggregate
from .planned_rows import match_column, written

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
    seen: dict[str, None] = dict.fromkeys(NAMED)
    for columns in [NAMED, *rows] if name.casefold() in NAMED else rows:
        if any(column.casefold() == name.casefold() for column in columns):
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
    confidence: float | None,
) -> Breakdown:
    """Return the figures by the values of a column; `rows_of` has the row indices of each."""
    by_index = {row.row_index: row.runs for row in suite.rows}
    values = []
    for value in sorted(rows_of, key=_order(rows_of)):
        indices = tuple(sorted(index for index in rows_of[value] if index in by_index))
        runs = [run for index in indices for run in by_index[index]]
        info = replace(suite.info, rows=len(indices))
        own = aggregate(info, runs, selected=len(runs), confidence=confidence)
        values.append(ValueResult(value, indices, own.finished, own.functions))
    return Breakdown(column, tuple(values))


def at_confidence(suite: SuiteResult, confidence: float) -> tuple[Breakdown, ...]:
    """Return the suite's breakdowns with intervals of this confidence."""
    return tuple(
        breakdown_of(suite, each.column, united([each]), confidence=confidence)
        for each in suite.breakdowns
    )


def united(breakdowns: Sequence[Breakdown]) -> dict[str, set[int]]:
    """Return the row indices by value of several breakdowns by one column."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for breakdown in breakdowns:
        for value in breakdown.values:
            found[value.value].update(value.row_indices)
    return dict(found)


def _by_column(suite: SuiteResult, name: str, confidence: float | None) -> Breakdown | None:
    """The breakdown by one column; None where no row has it."""
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    titles = set()
    for row in suite.rows:
        if row.data is None:
            continue
        cells = {**{each: getattr(row.data, each) for each in NAMED}, **row.data.columns}
        try:
            column = match_column(cells, name)
        except KeyError:
            rows_of[written(None)].append(row.row_index)
        else:
            titles.add(column)
            rows_of[written(cells[column])].append(row.row_index)
    if not titles:
        return None
    return breakdown_of(suite, min(titles), rows_of, confidence=confidence)


def _order(rows_of: Mapping[str, Collection[int]]) -> Callable[[str], float]:
    """Numbers are in order of their size, other values as they first come in the data."""
    try:
        sizes = {value: float(value) for value in rows_of}
    except ValueError:
        sizes = {value: min(rows, default=0) for value, rows in rows_of.items()}
    return sizes.__getitem__
