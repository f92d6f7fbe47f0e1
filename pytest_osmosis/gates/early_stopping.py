"""Whether any verdict can still change: what stopping early needs to know.

Each gate is followed by a tracker that keeps, run by run, between what its two bounds can end.
A gate is settled when every end gives one outcome; the verdict on what has run so far is then that
outcome too. Never optimistic: a tracker may see a gate settled late, not wrongly.

Two things are taken for granted: scores lie in 0..1 (once one was seen outside, a mean or min
counts as open until the end, except below a min already seen), and costs and tokens are not
negative. Knows no pytest and starts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..analysis.comparison import at_threshold
from ..analysis.metric_values import over_rows, row_values
from ..analysis.row_matching import match_rows
from ..analysis.score_table import ScoreTable
from .evaluate import resolved, slice_rows
from .interval_bounds import Box, widest_limits
from .parser import Gate
from .reach import Reach, Run, Tracker
from .result import holds, outcome_of
from .tracking import tracker_for

CHECKS = 200
"""How often in a session, at most, a gate with a confidence is looked at: that takes all rows."""


class Decider:
    """Follows a session's runs and tells when no verdict can change any more."""

    def __init__(
        self,
        gates: Iterable[Gate],
        tally: ScoreTable,
        *,
        confidence: float | None = None,
        baseline: ScoreTable | None = None,
    ) -> None:
        """`tally` is the session's plan; runs that it holds as finished are taken in.

        Raises:
            GateError: as `gates.evaluate`.
        """
        self._n = tally.n
        self._seen = bytearray(len(tally.row_names) * tally.n)
        self._open = [
            followed
            for gate in gates
            if (followed := _follow(gate, tally, confidence=confidence, baseline=baseline))
        ]
        self._take_in(tally)

    @property
    def left(self) -> int:
        """Runs that have not ended yet: what stopping now saves."""
        return self._seen.count(0)

    def add(
        self,
        row: int,
        run: int,
        *,
        scores: Mapping[str, float | None],
        error: bool = False,
        duration_s: float | None = None,
        tokens: float | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Notes a run that ended, as `TallyBuilder.add` does.

        Raises:
            ValueError: when this run was noted before.
        """
        at = row * self._n + run
        if self._seen[at]:
            raise ValueError(f"run {run} of row {row} was noted before")
        self._seen[at] = 1
        measures = {"duration_s": duration_s, "tokens": tokens, "cost_usd": cost_usd}
        ended = Run(scores, error, measures)
        for followed in self._open:
            followed.add(row, ended)

    def decided(self) -> bool:
        """Whether no outcome of the runs that are left can change any verdict."""
        self._open = [followed for followed in self._open if not followed.is_settled()]
        return not self._open

    def _take_in(self, tally: ScoreTable) -> None:
        for row in tally.rows:
            for run in range(self._n):
                at = row * self._n + run
                if tally.finished[at]:
                    self.add(
                        row,
                        run,
                        scores={name: _known(column[at]) for name, column in tally.scores.items()},
                        error=bool(tally.errors[at]),
                        duration_s=_known(tally.duration_s[at]),
                        tokens=_known(tally.tokens[at]),
                        cost_usd=_known(tally.cost_usd[at]),
                    )


def decided(
    gates: Iterable[Gate],
    tally: ScoreTable,
    *,
    confidence: float | None = None,
    baseline: ScoreTable | None = None,
) -> bool:
    """Whether the runs that a tally has as not finished could still change any verdict."""
    return Decider(gates, tally, confidence=confidence, baseline=baseline).decided()


def is_settled(gate: Gate, reach: Reach) -> bool:
    """Whether every end within reach gives the gate the same outcome."""
    outcomes = {
        outcome_of(at_worst, at_best)
        for at_worst in _possible(gate, *reach.worst)
        for at_best in _possible(gate, *reach.best)
    }
    return len(outcomes) == 1


@dataclass(slots=True)
class _Followed:
    """A gate, its tracker, and the rows that matter to it."""

    gate: Gate
    tracker: Tracker
    rows: frozenset[int]
    confidence: float | None
    shift: tuple[float, float] = (0.0, 0.0)
    """What the baseline takes from the worst and from the best bound."""
    next_check: int = 0

    def add(self, row: int, run: Run) -> None:
        if row in self.rows:
            self.tracker.add(row, run)

    def is_settled(self) -> bool:
        if self.tracker.left == 0:
            return True
        if self.confidence is None:
            return is_settled(self.gate, self.tracker.reach().shifted(*self.shift))
        return self._is_settled_with(self.confidence)

    def _is_settled_with(self, confidence: float) -> bool:
        """Looks now and then only: the limits of an interval take all rows to bound."""
        if self.gate.against_baseline or self.tracker.ended < self.next_check:
            return False
        self.next_check = self.tracker.ended + max(1, self.tracker.runs // CHECKS)
        boxes = self.tracker.boxes()
        return boxes is not None and is_settled(self.gate, self._limits(boxes, confidence))

    def _limits(self, boxes: tuple[Box, Box], confidence: float) -> Reach:
        """Between what the limits of an interval can end, for the worst and the best bound."""
        worst, best = (
            widest_limits(box, confidence=confidence, may_be_undefined=self.gate.metric == "mean")
            for box in boxes
        )
        return Reach((worst.low, boxes[0].highest_mean), (boxes[1].lowest_mean, best.high))


def _follow(
    gate: Gate, tally: ScoreTable, *, confidence: float | None, baseline: ScoreTable | None
) -> _Followed | None:
    """None for a gate that nothing can be measured for: its verdict is inconclusive already."""
    gate = resolved(
        gate,
        eval_fns=tally.eval_fns,
        n=tally.n,
        baseline_n=baseline.n if baseline else None,
        has_baseline=baseline is not None,
    )
    rows, shift = slice_rows(gate, tally), (0.0, 0.0)
    if gate.against_baseline and baseline is not None:
        rows, shift = _against(gate, tally, baseline, rows)
    if not rows:
        return None
    uncertain = gate.metric in ("mean", "pass@", "pass^")
    tracker = tracker_for(gate, tally, rows)
    return _Followed(gate, tracker, frozenset(rows), confidence if uncertain else None, shift)


def _against(
    gate: Gate, tally: ScoreTable, baseline: ScoreTable, rows: Sequence[int]
) -> tuple[list[int], tuple[float, float]]:
    """The rows that match, and what the baseline's best and worst take from worst and best."""
    wanted = set(rows)
    pairs = [pair for pair in match_rows(tally, baseline).pairs if pair[0] in wanted]
    if not pairs or (gate.eval_fn or tally.eval_fns[0]) not in baseline.scores:
        return [], (0.0, 0.0)
    there, held = [other for _, other in pairs], at_threshold(baseline, tally.pass_threshold)
    worst, best = (
        -over_rows(gate, row_values(gate, held, there, fill)) for fill in ("best", "worst")
    )
    return [here for here, _ in pairs], (worst, best)


def _possible(gate: Gate, low: float, high: float) -> set[bool]:
    """Whether the gate holds, for the values from low to high."""
    ends = {holds(gate.operator, low, gate.threshold), holds(gate.operator, high, gate.threshold)}
    if gate.operator == "==" and low < gate.threshold < high:
        return ends | {True, False}
    return ends


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
