"""Figures in tables of text: which there are, in which order, and how a cell says one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ..analysis.aggregate import CONFIDENCE
from ..analysis.metrics import METRICS, Metric
from ..analysis.statistics.estimators import reported_ks
from ..escaping import dollars, escape_control_chars, p_value, shortened
from ..suite_results import Breakdown, EvalResult, FunctionResult, SuiteResult
from ..verdicts import BaselineReport, Interval
from .highlights import figure_text

VALUES_SHOWN = 20
"""Values of a column in a table."""


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
        [[each.name, *figure_cells(each, metrics, suite.finished)] for each in suite.functions],
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
    return f"{100 * confidence:g}% interval"


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
    """Return a table for each column and eval function."""
    return [
        _column_table(found, function, suite)
        for found in suite.breakdowns
        for function in suite.functions
    ]


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


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates on one data file, by one eval function."""

    title: str
    table: Table
    pairs: Table
    """Each against the first; without lines where they are not compared."""
    notes: Sequence[str]


def candidates(result: EvalResult) -> Iterator[Candidates]:
    """Yield the tables of each data file that several candidates have run."""
    groups: dict[str, list[SuiteResult]] = {}
    for suite in result.suites:
        group = groups.setdefault(suite.info.group, [])
        group += filter(None, [suite.companion, suite])
    for name, suites in groups.items():
        functions = dict.fromkeys(each.name for suite in suites for each in suite.functions)
        labelled = list(zip(_labels(suites, result), suites, strict=True))
        for function in functions if len(suites) > 1 else ():
            yield _candidates(name, function, labelled)


def _labels(suites: Sequence[SuiteResult], result: EvalResult) -> list[str]:
    """Name the candidates; a baseline that is called like a candidate is marked as one."""
    labels = [each.info.label or each.info.model for each in suites]
    own = {id(each) for each in result.suites}
    return [
        label if id(suite) in own or labels.count(label) == 1 else f"{label} (baseline)"
        for label, suite in zip(labels, suites, strict=True)
    ]


def _candidates(
    name: str, function: str, labelled: Sequence[tuple[str, SuiteResult]]
) -> Candidates:
    first = labelled[0][1]
    metrics = [
        each
        for each in figure_metrics(first)
        if each in ("mean", "pass@1") or each.startswith("pass^")
    ]
    lines, scored = [], []
    for label, suite in labelled:
        own = next((each for each in suite.functions if each.name == function), None)
        scored += [] if own is None else [own]
        lines.append([label, *figure_cells(own, metrics, suite.finished), *_used(suite)])
    compared = [(label, each.baseline) for label, each in labelled if each.baseline is not None]
    pairs = [line for label, report in compared for line in _pair(label, function, report)]
    title = f"mean against {compared[0][1].source}" if compared else ""
    found = (each.differences[0] for _, report in compared for each in report.comparisons)
    interval = interval_title(each.paired.interval for each in found)
    return Candidates(
        f"candidates on {name}, {function}",
        Table(["candidate", *figure_titles(scored, metrics), "cost", "latency"], lines),
        Table([title, "difference", interval, "p", "regressed", "improved"], pairs),
        list(dict.fromkeys(n for _, each in compared for n in each.notes if "Bonferroni" in n)),
    )


def _pair(label: str, function: str, report: BaselineReport) -> Iterator[list[str]]:
    for each in report.comparisons:
        if each.eval_fn == function:
            paired = each.differences[0].paired
            p = "" if paired.p is None else p_value(paired.p)
            counts = [str(len(each.of("regressed"))), str(len(each.of("improved")))]
            change = figure_text(paired.difference, "+")
            yield [label, change, span(paired.interval, signed=True), p, *counts]


def _used(suite: SuiteResult) -> Iterator[str]:
    yield "-" if suite.used.cost_usd is None else dollars(suite.used.cost_usd)
    times = [run.duration_ms for run in suite.runs if run.duration_ms]
    yield f"{median(times) / 1000:.2f} s" if times else "-"
