"""The tables of a suite's figures by the values of a column; text and numbers formatted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..escaping import escape_control_chars
from ..suite_results import Breakdown, FunctionResult, SuiteResult
from .tables import Table, figure_cells, figure_metrics, figure_titles

VALUES_SHOWN = 20
"""Values of a column in a table."""
VALUE_LIMIT = 40
"""Characters of a value."""


@dataclass(frozen=True, slots=True)
class ByColumn:
    """The figures of one eval function by the values of a column."""

    title: str
    table: Table
    left_out: int
    """Values that are not in the table."""


def by_columns(suite: SuiteResult, metrics: Sequence[str] | None = None) -> list[ByColumn]:
    """Return a table for each column and eval function."""
    metrics = figure_metrics(suite) if metrics is None else metrics
    return [each for found in suite.breakdowns for each in _tables(found, suite, metrics)]


def _tables(found: Breakdown, suite: SuiteResult, metrics: Sequence[str]) -> Iterator[ByColumn]:
    for function in suite.functions:
        title = f"by {found.column}"
        if len(suite.functions) > 1:
            title = f"{function.name} {title}"
        yield ByColumn(
            title,
            _table(found, function, metrics),
            max(0, len(found.values) - VALUES_SHOWN),
        )


def _table(found: Breakdown, function: FunctionResult, metrics: Sequence[str]) -> Table:
    shown = []
    for value in found.values[:VALUES_SHOWN]:
        own = next((each for each in value.functions if each.name == function.name), None)
        cells = figure_cells(own, metrics, value.finished)
        shown.append([_short(value.value), str(len(value.row_indices)), *cells])
    return Table([_short(found.column), "rows", *figure_titles([function], metrics)], shown)


def _short(text: str) -> str:
    flat = " ".join(escape_control_chars(text).split()) or '""'
    return flat if len(flat) <= VALUE_LIMIT else f"{flat[: VALUE_LIMIT - 1]}…"
