"""A gate on how the mean of a number differs: `mean(cost_usd) - baseline <= 10%`. Pure.

Each row has one number here and one there, the means of its runs. Their difference is that of
`paired`, the largest number being as far as a row can move: none is negative. A percentage is one
of the baseline's mean: the interval has every ratio r for which that of `here - r there` holds 0
(Fieller 1954, Journal of the Royal Statistical Society B 16:175). What is not known of a run could
be anything from 0 up, so a gate that it could decide is inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.aggregate import CONFIDENCE
from ...analysis.gates.evaluate import (
    Intervals,
    decide,
    lower_bound,
    number_of,
    too_few,
    unmeasured,
    upper_bound,
)
from ...analysis.metrics import Bounds
from ...analysis.statistics import student_t
from ...analysis.statistics.designs import LEAST_AWAY, POWER
from ...analysis.statistics.estimators import mean
from ...analysis.statistics.paired import METHOD, Padded
from ...escaping import number_text
from ...verdicts import POINT_ESTIMATES, Interval
from ..numbers.summaries import numbers_of
from .gates import MISSED_BY, unless_shown, with_words
from .matched import Matched
from .row_matching import match_rows

if TYPE_CHECKING:
    from ...analysis.gates.names import Gate
    from ...analysis.score_table import ScoreTable
    from ...analysis.statistics.estimators import Floats, Places
    from ...verdicts import GateResult

_CLOSE = 1e-9
"""How near a limit of a ratio is found, over itself."""
_CHANGED = 10
"""How often a number is doubled until no change of it is called one that would be shown."""
_DOUBLED = 60
"""How often a ratio is doubled until it is called one without an upper limit."""


def against(
    gate: Gate, table: ScoreTable, baseline: ScoreTable, confidence: float | None
) -> GateResult:
    """Return what becomes of a gate on the paired difference of a number's means."""
    measure = gate.metric.definition.measure
    assert measure is not None
    both = Matched.of(table, baseline, match_rows(table.rows, baseline.rows))
    if not len(both):
        return unmeasured(gate, "the baseline has none of these rows")
    here, there = (numbers_of(side, measure) for side in (both.current, both.baseline))
    known = ~(np.isnan(here).all(axis=1) | np.isnan(there).all(axis=1))
    if not known.any():
        return unmeasured(gate, "no row has this number here and in the baseline")
    clusters = both.current.clusters
    numbers = _Numbers(
        np.nanmean(here[known], axis=1),
        np.nanmean(there[known], axis=1),
        None if clusters is None else clusters[known],
        gate.is_relative,
    )
    if gate.is_relative and not numbers.there.any():
        return unmeasured(gate, "the baseline's mean is 0: give a number, no percentage")
    low, high = (
        _Numbers(_filled(here, fill), _filled(there, other), clusters, gate.is_relative)
        for fill, other in ((0.0, math.inf), (math.inf, 0.0))
    )
    unknown = int(np.isnan(here).sum() + np.isnan(there).sum())
    found = Bounds(numbers.difference, low.difference, high.difference, unknown)
    rows = len(numbers.here)
    now, then = map(mean, (numbers.here, numbers.there))
    means = f"{number_text(now)} here, {number_text(then)} in the baseline"
    if confidence == POINT_ESTIMATES:
        return replace(
            decide(gate, found, Intervals(confidence=confidence), rows=rows), detail=means
        )
    level = gate.level(confidence or CONFIDENCE)
    figure, least, most = (each.interval(level) for each in (numbers, low, high))
    if figure is not None and math.isinf(figure.high):
        figure = None  # a ratio without an upper limit: reports hold finite intervals
    limits = lower_bound(least, -math.inf), upper_bound(most, math.inf)
    result = decide(gate, found, Intervals(figure, *limits, confidence), rows=rows)
    result = replace(result, clusters=number_of(clusters))
    if confidence is not None:
        result = replace(result, detail=too_few(result.clusters))
    else:
        outcome = unless_shown(gate, found, (least, most))
        result = replace(result, outcome=outcome, more_rows=None)
        result = _with_words(gate, result, both, numbers, level)
    return replace(result, detail="; ".join(filter(None, [means, result.detail])))


class _Numbers:
    """One number a row, here and there, and the cluster of each row."""

    def __init__(
        self, here: Floats, there: Floats, clusters: Places | None, is_relative: bool
    ) -> None:
        self.here, self.there, self.clusters = here, there, clusters
        self.is_relative = is_relative

    @property
    def difference(self) -> float:
        """Of the means; relative: over the mean there."""
        if math.isinf(self.there.max(initial=0.0)):
            return -1.0 if self.is_relative else -math.inf
        if math.isinf(self.here.max(initial=0.0)):
            return math.inf
        if not self.is_relative:
            return mean(self.here - self.there)
        return self._ratio - 1.0

    @property
    def _ratio(self) -> float:
        under = mean(self.there)
        return mean(self.here) / under if under else math.inf

    def interval(self, level: float) -> Interval | None:
        """Return the interval of the difference, infinite where that is; None: undefined."""
        found = self.difference
        if math.isinf(found) or math.isinf(self.there.max()):
            return Interval(found, found, METHOD, level)
        if not self.is_relative:
            limits = self.limits(1.0, level)
            return limits and Interval(*limits, METHOD, level)
        if self.limits(self._ratio, level) is None:
            return None
        low, high = self._ratios(level)
        return Interval(low - 1.0, high - 1.0, METHOD, level)

    def padded(self, ratio: float) -> tuple[Padded | None, float]:
        """Return `here - ratio there` over how far it can lie, rows added, and how far that is."""
        there = ratio * self.there
        span = float(max(self.here.max(), there.max()))
        return (Padded.of((self.here - there) / span, self.clusters) if span else None), span

    def limits(self, ratio: float, level: float) -> tuple[float, float] | None:
        """Return the limits of the mean of `here - ratio there`; None: all are 0, few clusters."""
        padded, span = self.padded(ratio)
        if padded is None:
            return None
        reach = student_t.two_sided(level, padded.freedom) * padded.error
        found = mean(self.here - ratio * self.there)
        low, high = (span * (padded.centre + side * reach) for side in (-1.0, 1.0))
        return min(found, low), max(found, high)

    def _ratios(self, level: float) -> tuple[float, float]:
        """Return the limits of the ratio of the means: from 0 up, the upper one may be infinite.

        Between whole numbers many differences are equal at the ratio 1 alone, where `Padded` then
        adds more rows: it is looked at by itself.
        """
        ratio = self._ratio

        def is_below(tried: float) -> bool:
            limits = self.limits(tried, level)
            return limits is not None and limits[0] > 0.0

        def is_above(tried: float) -> bool:
            limits = self.limits(tried, level)
            return limits is not None and limits[1] < 0.0

        low = _last(is_below, 0.0, ratio) if is_below(0.0) else 0.0
        low = low if is_below(1.0) else min(low, 1.0)
        above = max(ratio, _CLOSE)
        for _ in range(_DOUBLED):
            above *= 2.0
            if is_above(above):
                high = _last(is_above, above, ratio)
                return low, high if is_above(1.0) else max(high, 1.0)
        return low, math.inf


def _last(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where it ceases to hold between two ratios, by bisection."""
    while abs(outside - inside) > _CLOSE * max(inside, outside):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def _filled(numbers: Floats, fill: float) -> Floats:
    return np.asarray(np.where(np.isnan(numbers), fill, numbers).mean(axis=1), dtype=np.float64)


def _with_words(
    gate: Gate, result: GateResult, both: Matched, numbers: _Numbers, level: float
) -> GateResult:
    """Say of a gate that passed whether it holds, or how large a rise would have been shown."""
    if result.outcome != "passed":
        return result
    most = _Numbers(np.ones(result.rows), np.zeros(result.rows), numbers.clusters, False)
    limits = most.limits(1.0, level)
    can_fail = limits is not None and limits[0] > 0.0
    shown = _sensitivity(gate, numbers, level) if can_fail else None
    size = ""
    if shown is not None:
        size = f"{100.0 * shown:.0f}%" if gate.is_relative else f"{shown:.2g}"
    return with_words(gate, result, both, shown, size=size, can_fail=can_fail)


def _sensitivity(gate: Gate, numbers: _Numbers, level: float) -> float | None:
    """Return the smallest true change that fails the gate 4 times of 5; None: none is known.

    As `smallest_fall` has it, from the numbers here as if they were at the threshold, each changed
    by the same part of itself: with their mean, their spread changes too.
    """
    here, there = mean(numbers.here), mean(numbers.there)
    plain, _ = numbers.padded(1.0)
    if gate.operator == "==" or plain is None or min(plain.away, plain.rows) < LEAST_AWAY:
        return None
    ratio = 1.0 + (gate.threshold if gate.is_relative or not there else gate.threshold / there)
    if not (here and there and ratio > 0.0):
        return None
    weight, offset = (ratio, 0.0) if gate.is_relative else (1.0, gate.threshold)
    sign = 1.0 if MISSED_BY[gate.operator] == "rise" else -1.0
    at_threshold = numbers.here * (ratio * there / here)

    def shows(part: float) -> bool:
        changed = _Numbers(part * at_threshold, numbers.there, numbers.clusters, True)
        padded, span = changed.padded(weight)
        if padded is None:
            return False
        t = student_t.two_sided(level, padded.freedom) + student_t.quantile(POWER, padded.freedom)
        return sign * (padded.centre * span - offset) > t * padded.error * span

    tried = [2.0**at for at in range(1, _CHANGED)] if sign > 0.0 else [0.0]
    far = next(filter(shows, tried), None)
    if far is None:
        return None
    change = abs(_last(shows, far, 1.0) * ratio - 1.0)
    return change if gate.is_relative else change * there
