"""Figures in tables of text: which there are, in which order, and how a cell says one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..analysis.aggregate import CONFIDENCE
from ..analysis.metrics import METRICS, Metric
from ..analysis.statistics.estimators import reported_ks
from ..escaping import percent
from ..suite_results import FunctionResult, SuiteResult
from ..verdicts import Interval
from .highlights import figure_text


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text; the first column is names, the others are figures."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def figure_metrics(suite: SuiteResult) -> list[str]:
    """Return the metrics that tables show, in the order of their columns."""
    wanted: list[str] = []
    for definition in METRICS.values():
        ks = reported_ks(suite.info.n) if definition.takes_k else (None,)
        chosen = {"no": (), "yes": ks, "largest k": ks[-1:]}[definition.in_tables]
        wanted += [Metric(definition.name, k).label for k in chosen]
    return wanted


def figures(suite: SuiteResult) -> Table:
    """Return a line for each eval function: the metrics, the mean's interval, what is scored."""
    metrics = figure_metrics(suite)
    return Table(
        ["eval function", *figure_titles(suite.functions, metrics)],
        [[each.name, *figure_cells(each, metrics, suite.deciding)] for each in suite.functions],
    )


def figure_titles(functions: Iterable[FunctionResult], metrics: Sequence[str]) -> Iterator[str]:
    """Yield the titles of the columns that `figure_cells` fills."""
    means = [each.figures["mean"].interval for each in functions]
    for metric in metrics:
        yield metric
        if metric == "mean":
            yield interval_title(means)
    yield "scored"


def figure_cells(
    function: FunctionResult | None, metrics: Sequence[str], finished: int
) -> Iterator[str]:
    """Yield the cells of one eval function over so many runs that have ended."""
    found = {} if function is None else function.figures
    for metric in metrics:
        figure = found.get(metric)
        yield figure_text(None if figure is None else figure.value)
        if metric == "mean":
            yield span(None if figure is None else figure.interval) or "-"
    yield f"{0 if function is None else function.scored}/{finished}"


def interval_title(intervals: Iterable[Interval | None]) -> str:
    """Return the title of a column of intervals."""
    confidence = next((each.confidence for each in intervals if each), CONFIDENCE)
    return f"{percent(confidence)} interval"


def span(interval: Interval | None, *, signed: bool = False) -> str:
    """Both limits, or nothing where they are undefined."""
    if interval is None:
        return ""
    sign = "+" if signed else ""
    return f"{figure_text(interval.low, sign)} .. {figure_text(interval.high, sign)}"


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """The figures of one eval function by the values of a column."""

    title: str
    table: Table
    left_out: int
    """Values that are not in the table."""
    column: str
    values: Sequence[str]
    """The value that each row of the table is of, whole."""


def by_columns(suite: SuiteResult) -> list[ColumnTable]:
    """Return the tables that features show below that of the suite."""
    return [table for section in suite.sections.values() for table in section.tables(suite)]


def written(value: object) -> str:
    """Return a value of the dataset as JSON has it; texts without quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


@dataclass(frozen=True, slots=True)
class Overview:
    """Tables about several suites together."""

    title: str
    table: Table
    pairs: Table
    """Each against another; without lines where they are not compared."""
    notes: Sequence[str]
