"""Two sessions side by side: what changed, how sure that is, and which rows changed.

A pure function of two score tables. Both use this session's pass threshold; K of pass@K goes
as far as the smaller n. A run without a score counts as 0.0 on both sides; a note
says how many there are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.metrics import Metric, summary_metrics, values_of
from ...analysis.score_table import Case, ScoreTable
from ...analysis.statistics.estimators import finite, mean
from ...analysis.statistics.paired import paired
from ...analysis.statistics.permutation import discoveries, permutation_test
from ...escaping import counted
from .results import FEWEST_RUNS, RATE, Change, Comparison, Count, Difference
from .row_matching import Matching, match_rows
from .section import BaselineReport

if TYPE_CHECKING:
    from ...analysis.score_table import ScoreTable
    from ...analysis.statistics.estimators import Flags, Floats, Places


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows that two sessions have in common, in one order; both judged by one's thresholds."""

    current: ScoreTable
    baseline: ScoreTable

    @classmethod
    def of(cls, current: ScoreTable, baseline: ScoreTable, matching: Matching) -> Matched:
        """Return these rows of two sessions."""
        here, there = np.array(matching.pairs, dtype=np.intp).reshape(-1, 2).T
        return cls(current.take(here), at_thresholds(baseline, current).take(there))

    def __len__(self) -> int:
        """How many there are."""
        return len(self.current.rows)

    def where(self, rows: Flags) -> Matched:
        """Return these rows alone."""
        at = np.flatnonzero(rows)
        return Matched(self.current.take(at), self.baseline.take(at))

    def with_values(self, eval_fn: str) -> Matched:
        """Return the rows that a function has values of on both sides."""
        one, other = (table.row_scores(eval_fn).runs for table in (self.current, self.baseline))
        return self.where(np.minimum(one, other) > 0)

    def has_score(self, eval_fn: str) -> bool:
        """Return whether the function has a score on both sides."""
        return self.current.has_score(eval_fn) and self.baseline.has_score(eval_fn)


def at_thresholds(tally: ScoreTable, other: ScoreTable) -> ScoreTable:
    """The same runs, judged by another table's pass thresholds."""
    return replace(
        tally,
        pass_threshold=other.pass_threshold,
        own=other.own,
        thresholds={name: other.thresholds.get(name) for name in tally.thresholds},
    )


def compare(
    current: ScoreTable, baseline: ScoreTable, *, confidence: float = 0.95
) -> BaselineReport:
    """Compares the eval functions that both sessions have, over the rows that both have."""
    matching = match_rows(current.rows, baseline.rows)
    both = Matched.of(current, baseline, matching)
    ended = (table.finished.sum(axis=1) for table in (both.current, both.baseline))
    both = both.where(np.minimum(*ended) > 0)
    own = {name: both.with_values(name) for name in current.eval_fns if name in baseline.scores}
    comparisons = tuple(
        _compare_function(own[name], name, confidence) for name in own if own[name].has_score(name)
    )
    return BaselineReport(comparisons, tuple(_notes(current, baseline, matching, both)))


def _compare_function(both: Matched, eval_fn: str, confidence: float) -> Comparison:
    differences = tuple(_differences(both, eval_fn, confidence))
    return Comparison(eval_fn, len(both), differences, *changed_rows(both, eval_fn))


def paired_values(
    metric: Metric, both: Matched, case: Case = "value", there: Case = "value"
) -> tuple[Floats, Floats]:
    """Return the metric's value a row, here and in the baseline, `there` being the case there.

    A value of pass@K needs K runs on both sides that count.
    """
    name = metric.function(both.current)
    one, other = both.current.row_scores(name, case), both.baseline.row_scores(name, there)
    shared = np.minimum(one.runs, other.runs) >= (metric.k or 1)
    return values_of(metric, one.where(shared)), values_of(metric, other.where(shared))


def differences(here: Floats, there: Floats) -> Floats:
    """One difference a row, here minus there; huge scores can be farther apart than floats go."""
    half = sys.float_info.max / 2.0
    return np.clip(here / 2.0 - there / 2.0, -half, half) * 2.0


def span_of(metric: Metric, both: Matched) -> float:
    """How far apart a row's values here and there can lie."""
    if metric.definition.interval == "share":
        return 1.0
    name = metric.function(both.current)
    (low, high), (other_low, other_high) = (
        tally.score_range(name) for tally in (both.current, both.baseline)
    )
    return finite(max(high, other_high) - min(low, other_low))


def _differences(both: Matched, eval_fn: str, confidence: float) -> Iterator[Difference]:
    """Yield the difference of each metric that has a value of some row on both sides."""
    for metric in _compared(min(both.current.n, both.baseline.n), eval_fn):
        if metric.definition.counts_passes and not both.current.has_threshold(eval_fn):
            continue
        here, there = paired_values(metric, both)
        if here.size:
            span = span_of(metric, both)
            found = paired(differences(here, there), confidence=confidence, span=span)
            yield Difference(metric.label, mean(here), mean(there), found)


def _compared(n: int, eval_fn: str) -> list[Metric]:
    """Return what is compared of n runs a row; with one run pass^1 is pass@1, and is left out."""
    if n > 1:
        return [each for each in summary_metrics(n, eval_fn) if each.definition.interval]
    return [Metric("mean", None, eval_fn), Metric("pass@", 1, eval_fn)]


def _notes(
    current: ScoreTable, baseline: ScoreTable, matching: Matching, both: Matched
) -> list[str]:
    notes = []
    if not len(both):
        notes.append("the baseline has no row in common with this session")
    if current.n != baseline.n:
        notes.append(
            f"n is {current.n}, in the baseline {baseline.n}: pass@k is compared up to "
            f"k = {min(current.n, baseline.n)}"
        )
    if current.pass_threshold != baseline.pass_threshold:
        notes.append(
            f"the pass threshold is {current.pass_threshold:g}, in the baseline "
            f"{baseline.pass_threshold:g}: both are held to {current.pass_threshold:g}"
        )
    if current.own != baseline.own:
        notes.append("thresholds of single eval functions differ: both are held to this session's")
    missing = [name for name in current.eval_fns if name not in baseline.scores]
    if missing:
        notes.append(f"the baseline has no eval function {', '.join(missing)}")
    return [*notes, *matching.notes(), *_missing_notes(both)]


def _missing_notes(both: Matched) -> Iterator[str]:
    sides = (both.current, "here"), (both.baseline, "in the baseline")
    for tally, where in sides if len(both) else ():
        for name in (name for name in both.current.eval_fns if name in tally.scores):
            missing = int((tally.finished & ~tally.counted(name)).sum())
            if not tally.has_score(name):
                yield f"no run {where} has a score for {name}: it is not compared"
            elif missing and name not in tally.thresholds:
                runs = counted(missing, "run")
                yield f"{runs} {where} without a score for {name} left out"


def changed_rows(both: Matched, eval_fn: str) -> tuple[tuple[Change, ...], int, int]:
    """Return the rows whose mean differs, by p, then by size; how many could show that.

    And how many could not, for having fewer than three runs with a score on a side.
    """
    pairs = list(_scores(both, eval_fn))
    enough = [pair for pair in pairs if min(map(len, pair[1:])) >= FEWEST_RUNS]
    tests = [permutation_test(now, then) for _, now, then in enough]
    shown, able = discoveries(tests, rate=RATE)
    found = {
        pair[0]: (test[0], is_shown)
        for pair, test, is_shown in zip(enough, tests, shown, strict=True)
    }
    counts = _counts(both.current, eval_fn), _counts(both.baseline, eval_fn)
    changes = (
        _change(both, row, (mean(np.array(now)), mean(np.array(then))), counts, found.get(row))
        for row, now, then in pairs
        if now != then
    )
    moved = (change for change in changes if change.difference)
    return tuple(sorted(moved, key=_rank)), able, len(pairs) - len(enough)


def _scores(both: Matched, eval_fn: str) -> Iterator[tuple[int, list[float], list[float]]]:
    """Yield each row's scores here and in the baseline; rows without any on a side stay out."""
    sides = both.current.scores[eval_fn], both.baseline.scores[eval_fn]
    for row, (here, there) in enumerate(
        zip(*(np.sort(side, axis=1) for side in sides), strict=True)
    ):
        now, then = here[~np.isnan(here)].tolist(), there[~np.isnan(there)].tolist()
        if now and then:
            yield row, now, then


def _change(
    both: Matched,
    row: int,
    means: tuple[float, float],
    counts: tuple[Places, Places],
    test: tuple[float, bool] | None,
) -> Change:
    p, is_shown = test or (None, False)
    now, then = (Count(*count[:, row].tolist()) for count in counts)
    change = Change(
        both.current.rows.names[row],
        both.current.rows.indices[row],
        both.baseline.rows.indices[row],
        current=now,
        baseline=then,
        mean=means[0],
        baseline_mean=means[1],
        p=p,
    )
    if not is_shown or not change.difference:
        return change
    return replace(change, verdict="regressed" if change.difference < 0.0 else "improved")


def _counts(table: ScoreTable, eval_fn: str) -> Places:
    """Return each row's runs that pass, that count and that do not, as `Count` has them."""
    scores = table.row_scores(eval_fn)
    left_out = (table.finished & ~table.counted(eval_fn)).sum(axis=1)
    return np.stack([scores.passes, scores.runs, left_out])


def _rank(change: Change) -> tuple[float, float]:
    return 2.0 if change.p is None else change.p, -abs(change.difference)
