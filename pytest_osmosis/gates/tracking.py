"""Trackers: between what a metric's two bounds can end, kept up to date run by run.

Of n runs a row, some have a score, some ended without one (unknown for good), some are left. A
bound's lowest end has every left run at the worst, its highest has every left run at the best.
Adding a run takes constant time, asking for the reach no more than n. Knows no thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from ..analysis.metric_values import quantile_95, row_estimate
from ..analysis.score_table import ScoreTable
from .interval_bounds import Box
from .parser import Gate
from .reach import Reach, Run, Span, Tracker


def tracker_for(gate: Gate, tally: ScoreTable, rows: Sequence[int]) -> Tracker:
    """The tracker of a gate's metric over some rows."""
    runs, name = len(rows) * tally.n, gate.eval_fn or ""
    if gate.metric in ("pass@", "pass^", "rows@0"):
        return _Passes(name, tally, rows, row_estimate(gate, tally.n), gate.metric == "rows@0")
    if gate.metric in ("mean", "min"):
        return _Mean(name, tally, rows) if gate.metric == "mean" else _Lowest(name, runs)
    if gate.metric == "errors":
        return _Errors(gate.eval_fn, runs)
    if gate.metric == "scored":
        return _Scored(name, runs)
    if gate.metric == "p95_duration_s":
        return _Slow(runs)
    return _Sum(gate.metric, runs)


class _Passes(Tracker):
    """pass@K, pass^K and rows@0: how many rows stand at which number of passes."""

    def __init__(
        self,
        name: str,
        tally: ScoreTable,
        rows: Sequence[int],
        estimate: Callable[[int], float],
        is_count: bool,
    ) -> None:
        super().__init__(len(rows) * tally.n)
        self._name, self._threshold, self._n = name, tally.pass_threshold, tally.n
        self._values = [estimate(passes) for passes in range(tally.n + 1)]
        self._states = dict.fromkeys(rows, (0, 0, tally.n))
        """Per row: passes, runs without a score, runs left."""
        self._over = 1 if is_count else len(rows)
        self._levels = [[0] * (tally.n + 1) for _ in range(4)]
        for state in self._states.values():
            self._move(state, 1)

    def _note(self, row: int, run: Run) -> None:
        passes, unknown, left = self._states[row]
        self._move((passes, unknown, left), -1)
        score = run.scores.get(self._name)
        passed = score is not None and score >= self._threshold
        self._states[row] = (passes + passed, unknown + (score is None), left - 1)
        self._move(self._states[row], 1)

    def _move(self, state: tuple[int, int, int], by: int) -> None:
        for level, passes in zip(self._levels, _ends(state), strict=True):
            level[passes] += by

    def reach(self) -> Reach:
        a, b, c, d = (
            math.fsum(value * rows for value, rows in zip(self._values, level, strict=True) if rows)
            / self._over
            for level in self._levels
        )
        return Reach((min(a, b), max(a, b)), (min(c, d), max(c, d)))

    def boxes(self) -> tuple[Box, Box]:
        ends = [[self._values[end] for end in _ends(state)] for state in self._states.values()]
        a, b, c, d = (list(column) for column in zip(*ends, strict=True))
        return Box(a, b), Box(c, d)


def _ends(state: tuple[int, int, int]) -> tuple[int, int, int, int]:
    """Passes that a row can end with: worst bound lowest and highest, best bound likewise."""
    passes, unknown, left = state
    return passes, passes + left, passes + unknown, passes + unknown + left


class _Range:
    """The scores seen, and between what the others are taken to lie."""

    def __init__(self) -> None:
        self.lowest, self.highest = math.inf, -math.inf

    def note(self, score: float) -> None:
        self.lowest, self.highest = min(self.lowest, score), max(self.highest, score)

    @property
    def is_unit(self) -> bool:
        return self.lowest >= 0.0 and self.highest <= 1.0

    @property
    def ends(self) -> Span:
        return min(0.0, self.lowest), max(1.0, self.highest)


class _Mean(Tracker):
    """The mean: exact sums, so that the end does not depend on the order of the runs."""

    def __init__(self, name: str, tally: ScoreTable, rows: Sequence[int]) -> None:
        super().__init__(len(rows) * tally.n)
        self._name, self._n = name, tally.n
        self._range, self._total, self._unknown = _Range(), Fraction(0), 0
        self._states = dict.fromkeys(rows, (0.0, 0, tally.n))
        """Per row: sum of scores, runs without one, runs left."""

    def _note(self, row: int, run: Run) -> None:
        score = run.scores.get(self._name)
        total, unknown, left = self._states[row]
        self._states[row] = (total + (score or 0.0), unknown + (score is None), left - 1)
        if score is None:
            self._unknown += 1
            return
        self._range.note(score)
        self._total += Fraction(score)

    def reach(self) -> Reach:
        if not self._range.is_unit and self.left:
            return Reach((-math.inf, math.inf), (-math.inf, math.inf))
        low, high = (Fraction(end) for end in self._range.ends)
        worst, best = self._total + self._unknown * low, self._total + self._unknown * high
        return Reach(
            (float((worst + self.left * low) / self.runs), float((worst + self.left) / self.runs)),
            (float(best / self.runs), float((best + self.left) / self.runs)),
        )

    def boxes(self) -> tuple[Box, Box] | None:
        if not self._range.is_unit:
            return None
        states = self._states.values()
        return (
            Box(
                [total / self._n for total, _, _ in states],
                [(total + left) / self._n for total, _, left in states],
            ),
            Box(
                [(total + unknown) / self._n for total, unknown, _ in states],
                [(total + unknown + left) / self._n for total, unknown, left in states],
            ),
        )


class _Lowest(Tracker):
    """min: it can only fall."""

    def __init__(self, name: str, runs: int) -> None:
        super().__init__(runs)
        self._name, self._range, self._unknown = name, _Range(), 0

    def _note(self, row: int, run: Run) -> None:
        score = run.scores.get(self._name)
        if score is None:
            self._unknown += 1
        else:
            self._range.note(score)

    def reach(self) -> Reach:
        low, high = self._range.ends
        known = self._range.lowest
        worst = min(known, low) if self._unknown else known
        best = min(known, high) if self._unknown else known
        if not self.left:
            return Reach((worst, worst), (best, best))
        floor, ceiling = (0.0, 1.0) if self._range.is_unit else (-math.inf, math.inf)
        return Reach(
            (min(worst, floor), min(worst, ceiling)), (min(best, floor), min(best, ceiling))
        )


class _Errors(Tracker):
    """errors: exact, and can only grow."""

    def __init__(self, name: str | None, runs: int) -> None:
        super().__init__(runs)
        self._name, self._errors = name, 0

    def _note(self, row: int, run: Run) -> None:
        missing = self._name is not None and run.scores.get(self._name) is None
        self._errors += missing if self._name is not None else run.error

    def reach(self) -> Reach:
        span = float(self._errors), float(self._errors + self.left)
        return Reach(span, span)


class _Scored(Tracker):
    """scored: a run that is not run has no score."""

    def __init__(self, name: str, runs: int) -> None:
        super().__init__(runs)
        self._name, self._scored = name, 0

    def _note(self, row: int, run: Run) -> None:
        self._scored += run.scores.get(self._name) is not None

    def reach(self) -> Reach:
        span = self._scored / self.runs, (self._scored + self.left) / self.runs
        return Reach(span, span)


class _Sum(Tracker):
    """cost_usd and tokens: they can only grow, without limit while a run is left."""

    def __init__(self, measure: str, runs: int) -> None:
        super().__init__(runs)
        self._measure, self._total, self._unknown = measure, Fraction(0), 0

    def _note(self, row: int, run: Run) -> None:
        value = run.measures[self._measure]
        if value is None:
            self._unknown += 1
        else:
            self._total += Fraction(value)

    def reach(self) -> Reach:
        total = float(self._total)
        end = math.inf if self.left else total
        return Reach((total, end), (math.inf if self._unknown else total,
                                    math.inf if self._unknown else end))  # fmt: skip


class _Slow(Tracker):
    """p95_duration_s, looked up after every hundredth of the runs: an older reach still holds."""

    def __init__(self, runs: int) -> None:
        super().__init__(runs)
        self._known: list[float] = []
        self._unknown = 0
        self._last = Reach((0.0, math.inf), (0.0, math.inf))
        self._next = 0

    def _note(self, row: int, run: Run) -> None:
        value = run.measures["duration_s"]
        if value is None:
            self._unknown += 1
        else:
            self._known.append(value)

    def reach(self) -> Reach:
        if self.ended >= self._next or not self.left:
            self._known.sort()
            self._next = self.ended + self.runs // 100
            self._last = Reach(
                (self._at(self._unknown + self.left), self._at(self._unknown)),
                (self._at(self.left), self._at(0)),
            )
        return self._last

    def _at(self, zeros: int) -> float:
        return quantile_95(self._known, zeros=zeros, total=self.runs)
