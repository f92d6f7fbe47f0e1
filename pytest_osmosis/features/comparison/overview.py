"""The tables of candidates: all on one data file, and each against the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from ...escaping import dollars, p_value
from ...reports.highlights import figure_text
from ...reports.tables import (
    Overview,
    Table,
    figure_cells,
    figure_metrics,
    figure_titles,
    interval_title,
    span,
)
from ...suite_results import EvalResult, SuiteResult
from .section import BaselineReport, report_of


def overviews(result: EvalResult) -> Iterator[Overview]:
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


def _candidates(name: str, function: str, labelled: Sequence[tuple[str, SuiteResult]]) -> Overview:
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
        lines.append([label, *figure_cells(own, metrics, suite.deciding), *_used(suite)])
    compared = [
        (label, report) for label, each in labelled if (report := report_of(each)) is not None
    ]
    pairs = [line for label, report in compared for line in _pair(label, function, report)]
    title = f"mean against {compared[0][1].source}" if compared else ""
    found = (each.differences[0] for _, report in compared for each in report.comparisons)
    interval = interval_title(each.paired.interval for each in found)
    return Overview(
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
