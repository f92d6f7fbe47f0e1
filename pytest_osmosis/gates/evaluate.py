"""Gates to verdicts: does a tally pass, fail, or not tell.

A gate is held at two bounds: every unknown run at its worst, every unknown run at its best. It
passes if it holds at both, fails if it holds at neither and is inconclusive otherwise, whatever its
operator. With a confidence, each bound is moved outwards to the limit of its interval. Pure: knows
neither reports nor pytest; `grammar` says what a gate is, `figures` what a metric is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from ..analysis.comparison import at_threshold, differences, is_binary, span_of
from ..analysis.metric_values import Bounds, Fill, bounds, over_rows, row_values
from ..analysis.row_matching import match_rows
from ..analysis.score_table import ScoreTable
from ..analysis.statistics.intervals import Interval, mean_interval, pass_interval
from ..analysis.statistics.paired import paired_interval
from .parser import GRAMMAR, Gate, GateError, Slice, parse_gate, resolved
from .result import EQUAL_WITHIN, GateResult, Outcome, exit_status, holds, outcome_of

__all__ = [
    "GRAMMAR",
    "Gate",
    "GateError",
    "GateResult",
    "Outcome",
    "Slice",
    "evaluate",
    "evaluate_all",
    "exit_status",
    "holds",
    "parse_gate",
    "resolved",
    "unmeasured",
]


def evaluate(
    gate: Gate,
    tally: ScoreTable,
    *,
    confidence: float | None = None,
    baseline: ScoreTable | None = None,
    rows: Sequence[int] | None = None,
    seed: int = 0,
) -> GateResult:
    """The verdict on one gate; `rows`, if given, are the positions of those of its slice.

    Raises:
        GateError: when the gate names no (or an unknown) eval function among several, a K above n,
            an unknown column, or needs a baseline that is not given.
    """
    gate = resolved(
        gate,
        eval_fns=tally.eval_fns,
        n=tally.n,
        baseline_n=baseline.n if baseline else None,
        has_baseline=baseline is not None,
    )
    if rows is None:
        rows = slice_rows(gate, tally)
    if not rows and gate.where:
        return unmeasured(gate, f"no row here has {gate.where.column} = {gate.where.value}")
    if gate.against_baseline and baseline is not None:
        return _against(gate, tally, rows, baseline=baseline, confidence=confidence, seed=seed)
    found = bounds(gate, tally, rows)
    if found is None:
        return unmeasured(gate, "there are no rows to measure")
    intervals = _Intervals(None, None, None)
    confidence = confidence if gate.metric in _UNCERTAIN else None
    if confidence is not None:
        figure, worst, best = (
            _interval(gate, row_values(gate, tally, rows, fill), confidence, seed)
            for fill in _FILLS
        )
        low, high = _scale(gate, tally)
        intervals = _Intervals(figure, _low(worst, low), _high(best, high), confidence)
    unknown = _unknown_runs(gate, tally, rows)
    return _verdict(gate, found, intervals, rows=len(rows), unknown=unknown)


def evaluate_all(
    gates: Iterable[Gate],
    tally: ScoreTable,
    *,
    confidence: float | None = None,
    baseline: ScoreTable | None = None,
    seed: int = 0,
) -> tuple[GateResult, ...]:
    """The verdicts on several gates, in their order."""
    return tuple(
        evaluate(gate, tally, confidence=confidence, baseline=baseline, seed=seed) for gate in gates
    )


def slice_rows(gate: Gate, tally: ScoreTable) -> Sequence[int]:
    """The rows that a gate looks at.

    Raises:
        GateError: when the dataset has no such column.
    """
    if gate.where is None:
        return tally.rows
    try:
        return tally.rows_where(gate.where.column, gate.where.value)
    except KeyError:
        raise GateError(gate.text, f"the data have no column {gate.where.column!r}") from None


_FILLS: tuple[Fill, Fill, Fill] = ("figure", "worst", "best")

_UNCERTAIN = ("mean", "pass@", "pass^")
"""Metrics that estimate something beyond these rows; the others count what happened."""


_FARTHEST = 1_000.0
"""With the interval so many times as far as the threshold, no number of rows is worth naming."""


@dataclass(frozen=True, slots=True)
class _Intervals:
    """What a confidence adds: the figure's interval, and the limits that widen the bounds."""

    figure: Interval | None
    low: float | None
    high: float | None
    confidence: float | None = None


def _against(
    gate: Gate,
    tally: ScoreTable,
    rows: Sequence[int],
    *,
    baseline: ScoreTable,
    confidence: float | None,
    seed: int,
) -> GateResult:
    """A gate on the paired difference; the baseline's unknown runs count against each bound."""
    name = gate.eval_fn or tally.eval_fns[0]
    if name not in baseline.scores:
        return unmeasured(gate, f"the baseline has no eval function {name}")
    wanted = set(rows)
    pairs = [pair for pair in match_rows(tally, baseline).pairs if pair[0] in wanted]
    if not pairs:
        return unmeasured(gate, "the baseline has none of these rows")
    there = at_threshold(baseline, tally.pass_threshold)
    sides = {fill: _differences(gate, tally, there, pairs, fill) for fill in _FILLS}
    found = Bounds(*(over_rows(gate, sides[fill]) for fill in _FILLS))
    intervals = _Intervals(None, None, None)
    if confidence is not None:
        binary = is_binary(tally, there, [[abs(value) for value in sides["figure"]]])
        span = span_of(gate, tally, there)
        figure, worst, best = (
            paired_interval(sides[fill], confidence=confidence, binary=binary, span=span, seed=seed)
            for fill in _FILLS
        )
        intervals = _Intervals(figure, _low(worst, -span), _high(best, span), confidence)
    ours = _unknown_runs(gate, tally, [here for here, _ in pairs])
    theirs = _unknown_runs(gate, there, [other for _, other in pairs])
    return _verdict(gate, found, intervals, rows=len(pairs), unknown=ours + theirs)


def _differences(
    gate: Gate,
    tally: ScoreTable,
    baseline: ScoreTable,
    pairs: Sequence[tuple[int, int]],
    fill: Fill,
) -> list[float]:
    opposite: dict[Fill, Fill] = {"figure": "figure", "worst": "best", "best": "worst"}
    here = row_values(gate, tally, [pair[0] for pair in pairs], fill)
    there = row_values(gate, baseline, [pair[1] for pair in pairs], opposite[fill])
    return differences(here, there)


def _interval(gate: Gate, values: Sequence[float], confidence: float, seed: int) -> Interval | None:
    if gate.metric == "mean":
        return mean_interval(values, confidence=confidence)
    return pass_interval(values, confidence=confidence, seed=seed)


def _scale(gate: Gate, tally: ScoreTable) -> tuple[float, float]:
    """Between what the metric lies: how wide an interval is that is undefined."""
    if gate.metric == "mean":
        return tally.score_range(gate.eval_fn or tally.eval_fns[0])
    return 0.0, 1.0


def _low(interval: Interval | None, undefined: float) -> float:
    return undefined if interval is None else max(interval.low, undefined)


def _high(interval: Interval | None, undefined: float) -> float:
    return undefined if interval is None else min(interval.high, undefined)


def _verdict(
    gate: Gate, found: Bounds, intervals: _Intervals, *, rows: int, unknown: int
) -> GateResult:
    worst = found.worst if intervals.low is None else min(found.worst, intervals.low)
    best = found.best if intervals.high is None else max(found.best, intervals.high)
    outcome = outcome_of(
        holds(gate.operator, worst, gate.threshold), holds(gate.operator, best, gate.threshold)
    )
    low, high = min(worst, best), max(worst, best)
    more = None
    if outcome == "inconclusive" and intervals.figure is not None:
        more = _more_rows(gate, found.figure, intervals.figure, rows)
    return GateResult(
        gate, outcome, found.figure, low, high, intervals.figure, rows, unknown, more,
        confidence=intervals.confidence,
    )  # fmt: skip


def _more_rows(gate: Gate, figure: float, interval: Interval, rows: int) -> int | None:
    """Rows until the interval, narrowing as 1 / sqrt(rows), no longer reaches the threshold.

    As if the figure stayed what it is. None when it is (all but) at the threshold, or when the
    interval does not reach it already and only unknown runs keep the gate open.
    """
    distance = abs(figure - gate.threshold)
    reach = figure - interval.low if gate.threshold <= figure else interval.high - figure
    if distance <= EQUAL_WITHIN or reach <= distance or reach > _FARTHEST * distance:
        return None
    return max(1, math.ceil(rows * (reach / distance) ** 2) - rows)


def _unknown_runs(gate: Gate, tally: ScoreTable, rows: Sequence[int]) -> int:
    """Runs of some rows whose value the gate's metric lacks; 0 for the exact metrics."""
    if gate.metric in ("errors", "scored"):
        return 0
    sums = {"cost_usd": tally.cost_usd, "tokens": tally.tokens, "p95_duration_s": tally.duration_s}
    if gate.metric in sums:
        column = sums[gate.metric]
    else:
        column = tally.scores[gate.eval_fn or tally.eval_fns[0]]
    n = tally.n
    return sum(isnan(value) for row in rows for value in column[row * n : (row + 1) * n])


def unmeasured(gate: Gate, reason: str) -> GateResult:
    """The verdict on a gate that there is nothing to hold at, and why."""
    return GateResult(gate, "inconclusive", None, None, None, None, 0, 0, None, reason)
