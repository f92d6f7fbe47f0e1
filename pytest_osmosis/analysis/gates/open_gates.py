"""The gates of a suite whose runs continue, and whether a result of the rest could change them.

The runs that are left are unknown, so a gate's worst and best case tell whether it can still
change; they are looked at after each 1 % of a suite's runs. Where an interval decides, the limits
of any that can still come about are looked at too.

Two things are assumed: scores lie in 0..1 (once one was seen outside, unknown scores are taken for
anything), and costs and tokens are not negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...run_result import RunResult
from ...verdicts import POINT_ESTIMATES
from ..aggregate import CONFIDENCE
from ..comparison import span_of
from ..matched_rows import Matched
from ..metrics import CASES, row_values
from ..row_matching import match_rows
from ..score_table import ScoreTable
from ..statistics import student_t
from ..statistics.estimators import mean
from ..statistics.intervals import agresti_coull
from ..statistics.paired import widest_paired
from .evaluate import slice_rows
from .parser import Gate, resolved
from .result import outcome_between

if TYPE_CHECKING:
    from ..statistics.estimators import Floats, Places

CHECKS = 100
"""How often in a session, at most, the gates of a suite are looked at."""

_ANY = (-math.inf, math.inf)
_UNIT = (0.0, 1.0)


def is_settled(gate: Gate, one: float, other: float) -> bool:
    """Return whether the gate holds for every value from one to the other, or for none."""
    low, high = sorted((one, other))
    return outcome_between(gate.operator, gate.threshold, low, high) != "inconclusive"


def widest_limits(lows: Floats, highs: Floats, *, confidence: float) -> tuple[float, float]:
    """Return limits that no interval passes while each row's value is in its span within 0..1.

    An interval is the wider, the fewer rows its values are worth, and rises with their mean: it is
    widest where each row is worth one.
    """
    rows = len(lows)
    z = student_t.two_sided(confidence, rows - 1 if rows > 1 else math.inf)
    return agresti_coull(mean(lows), rows, z)[0], agresti_coull(mean(highs), rows, z)[1]


class OpenGate:
    """One gate, and the worst and best value of each of its rows so far."""

    def __init__(
        self,
        gate: Gate,
        table: ScoreTable,
        *,
        confidence: float | None = None,
        baseline: ScoreTable | None = None,
    ) -> None:
        """Take the runs in that the table holds; raise GateError as `evaluate` does."""
        self._gate = gate = resolved(
            gate,
            eval_fns=table.eval_fns,
            n=table.n,
            baseline_n=baseline.n if baseline else None,
            has_baseline=baseline is not None,
        )
        self._definition = gate.metric.definition
        self._confidence = confidence if self._definition.interval else None
        self._table = table
        self._is_comparable = self._spans_unit = True
        self._places = np.arange(len(table.rows))
        if gate.where is not None:
            self._places = np.array(slice_rows(gate, gate.where, table), dtype=np.intp)
        self._there = np.zeros((2, self._places.size))
        if gate.against_baseline and baseline is not None:
            self._match(baseline)
        self._lows, self._highs = np.zeros((2, self._places.size))
        self._bound(_UNIT)
        self.update(self._places)

    def _match(self, baseline: ScoreTable) -> None:
        """Look at the rows that match; their best and worst in the baseline go off."""
        metric, part = self._gate.metric, self._table.take(self._places)
        both = Matched.of(part, baseline, match_rows(part.rows, baseline.rows))
        self._places = self._places[both.here]
        if metric.function(part) not in baseline.scores:
            self._places = self._places[:0]
        elif len(both):
            worst, best = (row_values(metric, both.baseline, case) for case in CASES[1:])
            self._is_comparable = worst.size == best.size == len(both)
            if self._is_comparable:
                self._there = np.stack([best, worst])
            self._spans_unit = span_of(metric, both) == 1.0

    def _bound(self, limits: tuple[float, float]) -> None:
        self._table = replace(self._table, score_limits=dict.fromkeys(self._table.scores, limits))
        self._is_unit = limits == _UNIT

    def update(self, places: Places) -> None:
        """Compute the rows anew of which a run has ended."""
        at = np.flatnonzero(np.isin(self._places, places))
        part = self._table.take(self._places[at])
        if self._definition.unit_scores and self._is_unit and self._leaves_unit(part):
            self._bound(_ANY)
            self.update(self._places)
        elif self._definition.of_rows is not None:
            for values, case in ((self._lows, CASES[1]), (self._highs, CASES[2])):
                values[at] = row_values(self._gate.metric, part, case)

    def _leaves_unit(self, part: ScoreTable) -> bool:
        seen = replace(part, score_limits=None)
        return seen.score_range(self._gate.metric.function(part)) != _UNIT

    def is_settled(self) -> bool:
        """Return whether no result of the runs that are left can change the gate's.

        An interval of scores outside of 0..1 is not bounded before the end.
        """
        gate = self._gate
        if not self._places.size:
            return True  # nothing can be measured: it is inconclusive already
        if self._definition.of_table is not None:
            found = self._definition.of_table(self._table.take(self._places), gate.eval_fn)
            return is_settled(gate, found.worst, found.best)
        if gate.against_baseline:
            return self._is_comparable and self._is_difference_settled()
        worst, best = (
            self._definition.over_rows(self._lows),
            self._definition.over_rows(self._highs),
        )
        if not self._confidence or not is_settled(gate, worst, best):
            return is_settled(gate, worst, best)
        if not self._is_unit:
            return False
        limits = widest_limits(self._lows, self._highs, confidence=self._confidence)
        return is_settled(gate, *limits)

    def _is_difference_settled(self) -> bool:
        """Return whether the gate holds at every difference, or misses every interval.

        Without a confidence, a difference that meets the threshold has an interval that does not
        miss it.
        """
        gate, lows, highs = self._gate, self._lows - self._there[0], self._highs - self._there[1]
        outcome = outcome_between(gate.operator, gate.threshold, *sorted((mean(lows), mean(highs))))
        if self._confidence == POINT_ESTIMATES:
            return outcome != "inconclusive"
        if self._confidence is None and outcome == "passed":
            return True
        if outcome == "inconclusive" or not (self._is_unit and self._spans_unit):
            return False
        widest = widest_paired(lows, highs, confidence=self._confidence or CONFIDENCE)
        outcome = outcome_between(gate.operator, gate.threshold, *widest)
        return outcome == "failed" or (outcome == "passed" and self._confidence is not None)


class SuiteGates:
    """The gates of one suite, and its runs so far."""

    def __init__(
        self,
        gates: Iterable[Gate],
        table: ScoreTable,
        *,
        confidence: float | None = None,
        baseline: ScoreTable | None = None,
    ) -> None:
        """`table` has the suite's rows, and the runs that have ended already."""
        self._table = table
        self._new: list[RunResult] = []
        """Runs that the table's scores do not have yet."""
        self.left = self._next_check = int((~table.finished).sum())
        """Runs that have not ended: what stopping now saves."""
        self._step = max(1, table.finished.size // CHECKS)
        self._open = [
            OpenGate(gate, table, confidence=confidence, baseline=baseline) for gate in gates
        ]

    def add(self, run: RunResult) -> None:
        """Take a run in that ended; a second time, and one that was not planned, is ignored."""
        place = self._table.rows.place_of.get(run.row_index)
        if place is None or run.run_index >= self._table.n:
            return
        if self._table.runs[place, run.run_index] is None:
            self._table.runs[place, run.run_index] = run
            self._new.append(run)
            self.left -= 1

    def are_settled(self) -> bool:
        """Return whether no gate can change any more; it is looked at now and then."""
        if not self.left or self.left <= self._next_check:
            self._next_check = self.left - self._step
            self._table.record(self._new)
            places = np.array([self._table.rows.place_of[run.row_index] for run in self._new], int)
            self._new.clear()
            for gate in self._open:
                gate.update(places)
            self._open = [gate for gate in self._open if self.left and not gate.is_settled()]
        return not self._open
