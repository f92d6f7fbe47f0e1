"""The figures of a suite by the values of columns of its dataset, as every report shows them; pure.

First the columns that there are, and the rows of each value.

Each value has the figures of its rows, as a suite of these rows alone would have them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from ...analysis.aggregate import aggregate
from ...analysis.gates.names import EACH
from ...escaping import escape_control_chars, shortened
from ...reports.json_writer import function_document
from ...reports.tables import (
    ColumnTable,
    Table,
    figure_cells,
    figure_metrics,
    figure_titles,
    written,
)
from ...suite_results import FunctionResult, Section, SuiteResult

if TYPE_CHECKING:
    from ...analysis.score_table import ScoreTable
    from ...verdicts import GateResult, Interval

COLUMNS_SHOWN = 12
"""Columns that a mistake lists."""
NAMED = ("system_prompt", "user_prompt", "ground_truth")
"""Columns that every dataset may be broken down by, besides its own."""
VALUES_SHOWN = 20
"""Values of a column in a table."""


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
    suite: SuiteResult,
    columns: Iterable[str],
    *,
    confidence: float | None,
    known: Mapping[str, Mapping[str, Collection[int]]] = {},
) -> SuiteResult:
    """Return the suite with its figures by each column; its rows are with their data.

    `known`: columns of which the rows of each value are known already.
    """
    found = [
        _by_column(suite, name, confidence)
        if name not in known
        else breakdown_of(suite, name, known[name], confidence=confidence)
        for name in dict.fromkeys([*columns, *known])
    ]
    section = Breakdowns(tuple(each for each in found if each is not None))
    return replace(suite, sections={**suite.sections, "by": section})


def _by_column(suite: SuiteResult, name: str, confidence: float | None) -> Breakdown | None:
    """The breakdown by one column; None where no row has it."""
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    titles: set[str] = set()
    for row in suite.rows:
        if row.data is None:
            continue
        cells = {
            **{each: getattr(row.data, each) for each in NAMED},
            **row.data.own_names,
            **row.data.columns,
        }
        if (column := _match(name, cells)) is not None:
            titles.add(column)
        rows_of[written(None if column is None else cells[column])].append(row.row_index)
    return breakdown_of(suite, min(titles), rows_of, confidence=confidence) if titles else None


def _match(name: str, columns: Collection[str]) -> str | None:
    """The column of that name, without regard to case; None when there is none."""
    if name in columns:
        return name
    return next((each for each in columns if each.casefold() == name.casefold()), None)


@dataclass(frozen=True, slots=True)
class ValueResult:
    """The rows that have one value in a column, and their figures."""

    value: str
    row_indices: tuple[int, ...]
    finished: int
    """Their runs that have ended."""
    functions: tuple[FunctionResult, ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The figures of a suite by the values of a column of its dataset."""

    column: str
    values: tuple[ValueResult, ...]


@dataclass(frozen=True, slots=True)
class Breakdowns(Section):
    """The figures by each column that was asked for."""

    columns: tuple[Breakdown, ...]

    def document(self) -> list[dict[str, Any]]:
        """Return the columns in the JSON report."""
        return [
            {
                "column": column.column,
                "values": [
                    {
                        "value": each.value,
                        "row_indices": list(each.row_indices),
                        "total_runs": each.finished,
                        "eval_fns": {one.name: function_document(one) for one in each.functions},
                    }
                    for each in column.values
                ],
            }
            for column in self.columns
        ]

    def joined(self, others: Sequence[Section], whole: SuiteResult) -> Breakdowns:
        """Return the figures of all rows, by each column of one of the parts."""
        rows_of: dict[str, defaultdict[str, set[int]]] = {}
        parts = [self, *cast("Sequence[Breakdowns]", others)]
        for column in chain.from_iterable(part.columns for part in parts):
            for value in column.values:
                found = rows_of.setdefault(column.column, defaultdict(set))
                found[value.value].update(value.row_indices)
        level = whole.confidence
        return Breakdowns(
            tuple(
                breakdown_of(whole, name, found, confidence=level)
                for name, found in rows_of.items()
            )
        )

    def rows_of(self, gate: GateResult) -> Collection[int] | None:
        """Return the rows of the value that a gate on each value names."""
        found = self._value_of(gate)
        return None if found is None else found.row_indices

    def interval(self, gate: GateResult) -> Interval | None:
        """Return the interval of the figure of that value."""
        if (found := self._value_of(gate)) is None:
            return None
        metric = gate.metric.partition(": ")[2]
        figures = (
            each.figures.get(metric) for each in found.functions if each.name == gate.eval_fn
        )
        return next((figure.interval for figure in figures if figure is not None), None)

    def _value_of(self, gate: GateResult) -> ValueResult | None:
        if gate.group is None:
            return None
        column = gate.metric.partition(": ")[0]
        values = (one.values for one in self.columns if f"{EACH} {one.column}" == column)
        return next((each for each in chain(*values) if each.value == gate.group), None)

    def references(self, suite: SuiteResult) -> Mapping[str, ScoreTable]:
        """Return the values of each column as gates on them need these."""
        from ...analysis.planned_rows import ran
        from .gates import table_of

        return {
            f"{EACH} {column.column}": table_of(
                suite.info,
                ran(suite),
                {each.value: each.row_indices for each in column.values},
            )
            for column in self.columns
        }

    def tables(self, suite: SuiteResult) -> Iterator[ColumnTable]:
        """Yield a table for each column and eval function."""
        for column in self.columns:
            for function in suite.functions:
                yield _column_table(column, function, suite)


def breakdown_of(
    suite: SuiteResult,
    column: str,
    rows_of: Mapping[str, Collection[int]],
    *,
    confidence: float | None = None,
) -> Breakdown:
    """Return the figures by the values of a column; `rows_of` has the row indices of each."""
    by_index = {row.row_index: row.runs for row in suite.deciding_rows}
    values = []
    for value in _ordered(rows_of):
        indices = tuple(sorted(index for index in rows_of[value] if index in by_index))
        runs = [run for index in indices for run in by_index[index]]
        info = replace(suite.info, rows=len(indices))
        own = aggregate(info, runs, selected=len(runs), confidence=confidence)
        values.append(ValueResult(value, indices, own.finished, own.functions))
    return Breakdown(column, tuple(values))


def _ordered(rows_of: Mapping[str, Collection[int]]) -> list[str]:
    """Numbers are in order of their size, other values as they first come in the data."""
    try:
        return sorted(rows_of, key=float)
    except ValueError:
        return sorted(rows_of, key=lambda value: min(rows_of[value], default=0))


def _column_table(found: Breakdown, function: FunctionResult, suite: SuiteResult) -> ColumnTable:
    metrics, values = figure_metrics(suite), found.values[:VALUES_SHOWN]
    title = f"by {found.column}"
    rows = []
    for value in values:
        own = next((each for each in value.functions if each.name == function.name), None)
        cells = figure_cells(own, metrics, value.finished)
        rows.append([_short(value.value), str(len(value.row_indices)), *cells])
    return ColumnTable(
        title if len(suite.functions) == 1 else f"{function.name} {title}",
        Table([_short(found.column), "rows", *figure_titles([function], metrics)], rows),
        len(found.values) - len(values),
        found.column,
        [each.value for each in values],
    )


def _short(text: str) -> str:
    return shortened(" ".join(escape_control_chars(text).split()) or '""')
