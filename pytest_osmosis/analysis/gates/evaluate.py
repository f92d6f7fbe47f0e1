"""Gates to results: does a score table pass a gate, fail it, or neither.

A gate is held at two bounds: every unknown run at its worst, every unknown run at its best. It
passes if it holds at both, fails if it holds at neither and is inconclusive otherwise, whatever its
operator. With a confidence, each bound is moved outwards to the limit of its interval.

A gate on a difference to a baseline has an interval without being given a confidence, and then
fails only where that misses the threshold as a whole (`differences`). Pure: knows neither reports
nor pytest; `parser` says what a gate is, `..metrics` what a metric is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...escaping import counted, shortened
from ...verdicts import GateResult
from ..aggregate import interval_of
from ..metrics import CASES, EACH_ROW, bounds, row_values
from ..score_table import ScoreTable
from .differences import against
from .parser import Gate, resolved
from .result import Intervals, decide, holds, lower_bound, unmeasured, upper_bound

ROWS_NAMED = 5
"""Rows that a gate on each row names."""


def evaluate(
    gate: Gate,
    table: ScoreTable,
    *,
    confidence: float | None = None,
    baseline: ScoreTable | None = None,
) -> GateResult:
    """The verdict on one gate; `confidence` as `GateResult` has it.

    Raises:
        GateError: when the gate names no (or an unknown) eval function among several, a K above n,
            or needs a baseline that is not given.
    """
    gate = resolved(
        gate,
        eval_fns=table.eval_fns,
        n=table.n,
        baseline_n=baseline.n if baseline else None,
        has_baseline=baseline is not None,
    )
    if (problem := _lacks_threshold(gate, table)) is not None:
        return unmeasured(gate, problem)
    if gate.against_baseline and baseline is not None:
        return against(gate, table, baseline, confidence)
    metric, found = gate.metric, bounds(gate.metric, table)
    if found is None:
        return unmeasured(gate, "there are no runs to measure")
    intervals = Intervals()
    if confidence and metric.definition.interval is not None:
        figure, worst, best = (
            interval_of(metric, row_values(metric, table, case), table, confidence)
            for case in CASES
        )
        low, high = metric.scale(table)
        intervals = Intervals(figure, lower_bound(worst, low), upper_bound(best, high), confidence)
    verdict = decide(gate, found, intervals, rows=len(table.rows))
    return replace(verdict, detail=_rows_below(gate, table))


def _rows_below(gate: Gate, table: ScoreTable) -> str:
    """Name the rows that do not reach the threshold of a gate on each row, the lowest first."""
    if gate.metric.kind != EACH_ROW:
        return ""
    scores = table.row_scores(gate.metric.function(table))
    ended = np.flatnonzero(scores.runs)
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
