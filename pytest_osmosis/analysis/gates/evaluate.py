"""Gates to verdicts: does a score table pass a gate, fail it, or neither; and the gates of a suite.

A gate is held at two bounds: every unknown run at its worst, every unknown run at its best. It
passes if it holds at both, fails if it holds at neither and is inconclusive otherwise, whatever its
operator. With a confidence, each bound is moved outwards to the limit of its interval.

What decides on a difference is brought with its name (`names.DIFFERENCES`). Pure: knows neither
reports nor pytest; `parser` says what a gate is, `..metrics` what a metric is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from ...escaping import counted, shortened
from ...verdicts import POINT_ESTIMATES, GateOutcome, GateResult, Interval
from ..aggregate import interval_of
from ..metrics import CASES, EACH_ROW, Bounds, Metric, bounds, values_of, with_value
from ..statistics.estimators import FEWEST_CLUSTERS
from .names import DIFFERENCES, OWN_VERDICTS, PREFIXES, Gate
from .parser import resolved

if TYPE_CHECKING:
    from ...suite_results import SuiteResult
    from ..planned_rows import PlannedRows
    from ..score_table import Case, ScoreTable
    from ..statistics.estimators import Places

CAN_SHOW_NONE = "can show none"
"""What the detail of a difference over too few rows says."""
ROWS_NAMED = 5
"""Rows that a gate on each row names."""


def evaluate_suite(
    suite: SuiteResult,
    gates: Sequence[Gate],
    rows: PlannedRows,
    *,
    references: Mapping[str, ScoreTable],
    lacking: str,
    confidence: float | None,
) -> SuiteResult:
    """Return the suite with a verdict for each gate.

    The gates have whole names of eval functions. `references`: what there is to subtract, by name;
    `lacking`: why nothing can be measured of a difference from what is not there. Raises GateError
    when a gate does not suit the suite.
    """
    from ..score_table import score_table_of

    table = score_table_of(suite, rows, [gate.eval_fn for gate in gates if gate.eval_fn])

    def verdict_of(gate: Gate) -> GateResult:
        if gate.minus and gate.minus not in references:
            verdict = unmeasured(gate, lacking)
        else:
            verdict = evaluate(gate, table, confidence=confidence, **references)
        if verdict.low is None or confidence == POINT_ESTIMATES:
            return replace(verdict, confidence=confidence)
        return verdict

    return replace(suite, verdicts=tuple(map(verdict_of, gates)))


def evaluate(
    gate: Gate,
    table: ScoreTable,
    *,
    confidence: float | None = None,
    **references: ScoreTable,
) -> GateResult:
    """The verdict on one gate; `confidence` as `GateResult` has it.

    Raises:
        GateError: when the gate names no (or an unknown) eval function among several, a K above n,
            or subtracts what is not among the references.
    """
    there = {name: other.n for name, other in references.items()}
    gate = resolved(gate, eval_fns=table.eval_fns, n=table.n, references=there)
    if (problem := _lacks_threshold(gate, table)) is not None:
        return unmeasured(gate, problem)
    own = OWN_VERDICTS.get(gate.metric.kind)
    if gate.prefix:
        own = PREFIXES[gate.prefix.partition(" ")[0]]
    if own is not None:
        decided: GateResult = import_module(own).verdict(gate, table, references, confidence)
        return decided
    if gate.minus is not None:
        return DIFFERENCES[gate.minus](gate, table, references[gate.minus], confidence)
    metric, found = gate.metric, bounds(gate.metric, table)
    if found is None:
        return unmeasured(gate, "there are no runs to measure")
    intervals, clusters = Intervals(), None
    if confidence and (metric.definition.interval or metric.definition.limits):
        level = gate.level(confidence)
        figure, worst, best = (_interval(metric, table, case, level) for case in CASES)
        low, high = metric.scale(table)
        intervals = Intervals(figure, lower_bound(worst, low), upper_bound(best, high), confidence)
        if figure is not None and math.isinf(figure.high - figure.low):
            intervals = replace(intervals, figure=None)
        clusters = number_of(table.clusters)
    verdict = decide(gate, found, intervals, rows=len(table.rows))
    verdict = replace(verdict, clusters=clusters)
    detail = too_few(clusters) or _rows_below(gate, table) or _too_few_rows(verdict, gate)
    return replace(verdict, detail=detail)


def _interval(metric: Metric, table: ScoreTable, case: Case, confidence: float) -> Interval | None:
    if metric.definition.limits is not None:
        return metric.definition.limits(table, metric.eval_fn, case, confidence)
    scores = with_value(metric, table.row_scores(metric.function(table), case))
    values = values_of(metric, scores)
    return interval_of(metric, values, table, confidence, clusters=scores.clusters)


def _too_few_rows(verdict: GateResult, gate: Gate) -> str:
    """Say from how many rows on a percentile has limits, where one that is lacking decides."""
    p, confidence = (
        gate.metric.definition.quantile,
        verdict.confidence and gate.level(verdict.confidence),
    )
    if p is None or not confidence or verdict.outcome != "inconclusive" or verdict.interval:
        return ""
    from ..statistics.order import fewest_rows

    enough, units = fewest_rows(p, confidence), verdict.clusters or verdict.rows
    what = "clusters" if verdict.clusters else "rows"
    return f"{enough} {what} have limits of {gate.label}" if units < enough else ""


def number_of(clusters: Places | None) -> int | None:
    """Return how many clusters there are; None where rows are independent."""
    return None if clusters is None else len(set(clusters.tolist()))


def too_few(clusters: int | None) -> str:
    """Say so, where there are too few clusters for an interval."""
    if clusters is None or clusters >= FEWEST_CLUSTERS:
        return ""
    return f"{counted(clusters, 'cluster')}: {FEWEST_CLUSTERS} have an interval"


def _rows_below(gate: Gate, table: ScoreTable) -> str:
    """Name the rows that do not reach the threshold of a gate on each row, the lowest first."""
    if gate.metric.kind != EACH_ROW:
        return ""
    scores = table.row_scores(gate.metric.function(table))
    ended = scores.runs.nonzero()[0]
    shares = scores.passes[ended] / scores.runs[ended]
    order = shares.argsort(kind="stable")
    rising = shares[order].tolist()
    below = sum(not holds(gate.operator, share, gate.threshold) for share in rising)
    if not below:
        return ""
    named = ", ".join(
        f"{shortened(table.rows.names[row])} {scores.passes[row]}/{scores.runs[row]}"
        for row in ended[order][: min(below, ROWS_NAMED)].tolist()
    )
    more = f" and {below - ROWS_NAMED} more" if below > ROWS_NAMED else ""
    return f"{below} of {counted(len(table.rows), 'row')} below: {named}{more}"


def _lacks_threshold(gate: Gate, table: ScoreTable) -> str | None:
    """Say so, where a gate counts the passes of a score that has no pass threshold."""
    if not gate.metric.definition.counts_passes:
        return None
    name = gate.metric.function(table)
    hint = "record_score(…, pass_threshold=…) gives it one"
    return None if table.has_threshold(name) else f"{name} has no pass threshold: {hint}"


EQUAL_WITHIN = 1e-9
"""Figures closer than this (relative to the threshold from 1 up) are equal: 0.1 + 0.2 is 0.3."""

_FARTHEST = 1_000.0
"""With the interval so many times as far as the threshold, no number of rows is worth naming."""

_COMPARE = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}


def holds(compare: str, value: float, threshold: float) -> bool:
    """Whether `value OP threshold`, values within `EQUAL_WITHIN` being equal."""
    if abs(value - threshold) <= EQUAL_WITHIN * max(1.0, abs(threshold)):
        value = threshold
    return bool(_COMPARE[compare](value, threshold))


def outcome_between(compare: str, threshold: float, low: float, high: float) -> GateOutcome:
    """The verdict on a figure that is somewhere from low to high.

    Passed where the gate holds for every value there, failed where it holds for none.
    """
    at_low, at_high = holds(compare, low, threshold), holds(compare, high, threshold)
    if at_low and at_high:
        return "passed"
    may_equal = compare == "==" and low < threshold < high
    return "inconclusive" if at_low or at_high or may_equal else "failed"


@dataclass(frozen=True, slots=True)
class Intervals:
    """What a confidence adds: the figure's interval, and the limits that widen the bounds."""

    figure: Interval | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None


def lower_bound(interval: Interval | None, undefined: float) -> float:
    """Return the lower limit; the end of the scale where the interval is undefined."""
    return undefined if interval is None else max(interval.low, undefined)


def upper_bound(interval: Interval | None, undefined: float) -> float:
    """Return the upper limit; the end of the scale where the interval is undefined."""
    return undefined if interval is None else min(interval.high, undefined)


def decide(gate: Gate, found: Bounds, intervals: Intervals, *, rows: int) -> GateResult:
    """Return what becomes of a gate that is held at these bounds and intervals."""
    worst = found.worst if intervals.low is None else min(found.worst, intervals.low)
    best = found.best if intervals.high is None else max(found.best, intervals.high)
    low, high = min(worst, best), max(worst, best)
    outcome = outcome_between(gate.operator, gate.threshold, low, high)
    more = None
    if outcome == "inconclusive" and intervals.figure is not None and found.value is not None:
        more = _more_rows(gate, found.value, intervals.figure, rows)
    k = gate.metric.k or 1
    lacking = f"no row has {k} runs with a score" if k > 1 else None
    if gate.metric.kind.endswith(")"):
        lacking = "no run has this number"
    return replace(
        unmeasured(gate, lacking if found.value is None else None),
        outcome=outcome,
        figure=found.value,
        low=low,
        high=high,
        interval=intervals.figure,
        rows=rows,
        unknown=found.unknown,
        more_rows=more,
        confidence=intervals.confidence,
    )


def _more_rows(gate: Gate, figure: float, interval: Interval, rows: int) -> int | None:
    """Rows until the interval, narrowing as 1 / sqrt(rows), no longer reaches the threshold.

    As if the figure stayed what it is. None when it is (all but) at the threshold, or when the
    interval does not reach it already and only unknown runs keep the gate open.
    """
    distance = abs(figure - gate.threshold)
    reach = figure - interval.low if gate.threshold <= figure else interval.high - figure
    if distance <= EQUAL_WITHIN or reach <= distance or reach / distance > _FARTHEST:
        return None
    return max(1, math.ceil(rows * (reach / distance) ** 2) - rows)


def unmeasured(gate: Gate, reason: str | None) -> GateResult:
    """Return the result of a gate that there is nothing to hold at, and why."""
    return GateResult(
        gate=gate.text,
        metric=gate.label,
        eval_fn=gate.eval_fn,
        operator=gate.operator,
        threshold=gate.threshold,
        outcome="inconclusive",
        figure=None,
        low=None,
        high=None,
        interval=None,
        rows=0,
        unknown=0,
        more_rows=None,
        is_measure=gate.metric.definition.eval_fn == "none",
        reason=reason,
    )
