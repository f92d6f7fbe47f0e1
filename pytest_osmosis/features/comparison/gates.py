"""A gate on a difference to a baseline: failed for what is shown, not for luck.

A difference of two samples of one agent misses `>= -0.02` every third time. So the gate is held at
the interval of the paired difference: without a confidence it fails where the whole interval misses
the threshold, and else passes; with one it is inconclusive where the threshold is within; at point
estimates the difference itself decides. The baseline's unknown runs count against each bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.aggregate import CONFIDENCE
from ...analysis.gates.evaluate import (
    CAN_SHOW_NONE,
    Intervals,
    decide,
    holds,
    lower_bound,
    number_of,
    outcome_between,
    too_few,
    unmeasured,
    upper_bound,
)
from ...analysis.gates.names import Gate
from ...analysis.metrics import CASES, Bounds
from ...analysis.score_table import Case, ScoreTable
from ...analysis.statistics.designs import LEAST_AWAY, cheapest
from ...analysis.statistics.estimators import mean
from ...analysis.statistics.paired import Padded, design_of, paired, smallest_fall
from ...escaping import counted
from ...verdicts import POINT_ESTIMATES, GateOutcome, GateResult, Interval
from .compare import differences, paired_values, span_of
from .matched import Matched
from .row_matching import match_rows

FALL = 0.05
"""The fall beyond what a gate allows that the cheapest design is named for."""
RUNS = (1, 3, 5, 10)
"""Numbers of runs a row of such designs."""

if TYPE_CHECKING:
    from ...analysis.statistics.estimators import Floats, Places

_OPPOSITE: dict[Case, Case] = {"value": "value", "worst": "best", "best": "worst"}
MISSED_BY = {">=": "fall", ">": "fall", "<=": "rise", "<": "rise", "==": "difference"}
"""What a gate with this operator fails for."""


def against(
    gate: Gate, table: ScoreTable, baseline: ScoreTable, confidence: float | None
) -> GateResult:
    """Return what becomes of a gate on the paired difference."""
    name, metric = gate.metric.function(table), gate.metric
    if name not in baseline.scores:
        return unmeasured(gate, f"the baseline has no eval function {name}")
    both = Matched.of(table, baseline, match_rows(table.rows, baseline.rows))
    if not len(both):
        return unmeasured(gate, "the baseline has none of these rows")
    sides = [paired_values(metric, both, case, _OPPOSITE[case]) for case in CASES]
    value, worst, best = (differences(here, there) for here, there, _ in sides)
    if not (worst.size and best.size):
        return unmeasured(gate, f"no run here and there has recorded {name}")
    found = Bounds(
        mean(value) if value.size and both.has_score(name) else None,
        mean(worst),
        mean(best),
        both.current.unknown(name) + both.baseline.unknown(name),
    )
    is_bounded = not metric.definition.unit_scores or _are_bounded(both, name)
    if not is_bounded:
        found = replace(found, worst=-math.inf, best=math.inf)
    if confidence == POINT_ESTIMATES or not is_bounded:
        return decide(gate, found, Intervals(confidence=confidence), rows=len(both))
    span, level = span_of(metric, both), gate.level(confidence or CONFIDENCE)
    figure, low, high = (
        paired(side, confidence=level, span=span, clusters=clusters).interval
        for side, (*_, clusters) in zip((value, worst, best), sides, strict=True)
    )
    limits = lower_bound(low, -span), upper_bound(high, span)
    result = decide(gate, found, Intervals(figure, *limits, confidence), rows=len(both))
    result = replace(result, clusters=number_of(both.current.clusters))
    if confidence is not None:
        return replace(result, detail=too_few(result.clusters))
    result = replace(result, outcome=unless_shown(gate, found, (low, high)), more_rows=None)
    return _with_words(gate, result, both, span)


def _are_bounded(both: Matched, name: str) -> bool:
    """Return whether the runs that are left out have known bounds, on both sides."""
    sides = (both.current, both.baseline)
    return not any(each.unknown(name) and math.isinf(each.unknown_range(name)[1]) for each in sides)


def unless_shown(
    gate: Gate, found: Bounds, intervals: tuple[Interval | None, Interval | None]
) -> GateOutcome:
    """Return `failed` where the gate misses the whole interval, whatever the unknown runs score.

    Inconclusive where that is their doing; where no run has a score, the bounds decide.
    """
    if found.value is None:
        ends = sorted((found.worst, found.best))
        return outcome_between(gate.operator, gate.threshold, *ends)
    limits = [(each.low, each.high) for each in intervals if each is not None]
    if not limits:  # too few clusters
        return "passed"
    whole = min(low for low, _ in limits), max(high for _, high in limits)
    missed = [
        outcome_between(gate.operator, gate.threshold, *each) == "failed"
        for each in (*limits, whole)
    ]
    if all(missed):
        return "failed"
    return "inconclusive" if any(missed) else "passed"


def _with_words(gate: Gate, result: GateResult, both: Matched, span: float) -> GateResult:
    """Say of a gate that passed whether it holds, or how large a fall would have been shown."""
    if result.outcome != "passed" or result.figure is None:
        return result
    shown = _sensitivity(gate, both, span)
    size = "" if shown is None else f"{shown:.2g}{_cheapest(gate, both, span, shown)}"
    can_fail = bool(size) or _can_fail(gate, both, span)
    return with_words(gate, result, both, shown, size=size, can_fail=can_fail)


def with_words(
    gate: Gate,
    result: GateResult,
    both: Matched,
    shown: float | None,
    *,
    size: str,
    can_fail: bool,
) -> GateResult:
    """Say of a gate that passed that it holds, or what these rows would have shown.

    `size` writes the change that they would, `shown`; without one, `can_fail` says whether the
    largest change that there can be fails the gate.
    """
    assert result.low is not None and result.high is not None
    if outcome_between(gate.operator, gate.threshold, result.low, result.high) == "passed":
        return replace(result, detail="holds")
    detail = f"no {MISSED_BY[gate.operator]} shown"
    units = counted(result.rows, "row")
    if result.clusters:
        units += f" in {counted(result.clusters, 'cluster')}"
    if size:
        runs = dict.fromkeys((both.current.n, both.baseline.n))
        detail += f": these {units} x {' and '.join(map(str, runs))} would show one of {size}"
    elif not can_fail:
        detail += f": {units} {CAN_SHOW_NONE}"
    elif result.clusters and result.clusters < LEAST_AWAY:
        detail += f": from {LEAST_AWAY} clusters on there is a number of how large a one would be"
    elif gate.operator != "==" and not (
        result.figure is not None and holds(gate.operator, result.figure, gate.threshold)
    ):
        detail += f": {units} say too little of how large one would be"
    return replace(result, detail=detail, sensitivity=shown)


def _can_fail(gate: Gate, both: Matched, span: float) -> bool:
    """Return whether the gate fails where each of these rows differs as much as it can."""
    clusters = both.current.clusters
    ends = (
        paired(
            np.full(len(both), end), confidence=gate.level(CONFIDENCE), span=span, clusters=clusters
        )
        for end in (-span, span)
    )
    intervals = (end.interval for end in ends if end.interval is not None)
    return any(
        outcome_between(gate.operator, gate.threshold, each.low, each.high) == "failed"
        for each in intervals
    )


def _falling(gate: Gate, both: Matched) -> tuple[Floats, Floats, float, Places | None]:
    """Return the values there and here, a rise turned into a fall, and what the gate allows."""
    now, then, clusters = paired_values(gate.metric, both)
    if MISSED_BY[gate.operator] == "fall":
        return then, now, -gate.threshold, clusters
    return 1.0 - then, 1.0 - now, gate.threshold, clusters


def _cheapest(gate: Gate, both: Matched, span: float, shown: float) -> str:
    """Name the design with the fewest runs that would show a fall of `FALL` beyond the gate's.

    None for one part of the rows, such as those of a value: a design is one of all.
    """
    n = both.current.n
    if gate.together > 1:
        return ""
    then, now, margin, clusters = _falling(gate, both)
    fall = FALL + max(0.0, margin)
    padded = Padded.of(now - then, clusters)
    if span != 1.0 or n != both.baseline.n or fall >= shown or padded is None:
        return ""
    design = design_of(then, now, padded, clusters)
    ns = [n] if (gate.metric.k or 1) > 1 else [*RUNS, n]
    found = design and cheapest(
        design, n, fall=fall, margin=margin, confidence=gate.level(CONFIDENCE), ns=ns
    )
    if not found:
        return ""
    found = found.rounded
    units = counted(found.rows, "row")
    if padded.rows < len(now):
        units += f" in {counted(round(padded.rows * found.rows / len(now)), 'cluster')}"
    return f", about {units} x {found.n} one of {fall:.2g}"


def _sensitivity(gate: Gate, both: Matched, span: float) -> float | None:
    if gate.operator == "==":
        return None
    then, now, margin, clusters = _falling(gate, both)
    return smallest_fall(
        then, now, margin=margin, confidence=gate.level(CONFIDENCE), span=span, clusters=clusters
    )
