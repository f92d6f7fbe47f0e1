"""Two sessions side by side: what changed, how sure that is, and which rows changed.

A pure function of two score tables. Both use this session's pass threshold; K of pass@K goes
as far as the smaller n. A run without a score counts as 0.0 on both sides; a note
says how many there are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.metrics import Metric, summary_metrics, values_of
from ...analysis.score_table import Case, ScoreTable
from ...analysis.statistics.estimators import finite, mean
from ...analysis.statistics.paired import paired
from ...escaping import counted
from .changed_rows import changed_rows
from .clusters import changed_clusters
from .matched import Matched
from .results import Comparison, Difference
from .row_matching import Matching, match_rows
from .section import BaselineReport

if TYPE_CHECKING:
    from ...analysis.score_table import ScoreTable
    from ...analysis.statistics.estimators import Floats, Places


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
    if both.current.clusters is None:
        return Comparison(eval_fn, len(both), differences, *changed_rows(both, eval_fn))
    clusters, rows, tested = changed_clusters(both, eval_fn)
    return Comparison(eval_fn, len(both), differences, rows, tested, short=0, clusters=clusters)


def paired_values(
    metric: Metric, both: Matched, case: Case = "value", there: Case = "value"
) -> tuple[Floats, Floats, Places | None]:
    """Return the metric's value a row, here and in the baseline, `there` being the case there.

    And the cluster of each of these rows here, where rows belong together.

    A value of pass@K needs K runs on both sides that count.
    """
    name = metric.function(both.current)
    one, other = both.current.row_scores(name, case), both.baseline.row_scores(name, there)
    shared = np.minimum(one.runs, other.runs) >= (metric.k or 1)
    one, other = one.where(shared), other.where(shared)
    return values_of(metric, one), values_of(metric, other), one.clusters


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
        here, there, clusters = paired_values(metric, both)
        if here.size:
            moved, span = differences(here, there), span_of(metric, both)
            found = paired(moved, confidence=confidence, span=span, clusters=clusters)
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
