"""The columns of a dataset that figures can be shown by, and the rows of each value; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches

from ...reports.tables import written
from ...suite_results import SuiteResult
from .results import Breakdown, Breakdowns, breakdown_of

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
    section = Breakdowns(tuple(each for each in found if each is not None))
    return replace(suite, sections={**suite.sections, "by": section})


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
