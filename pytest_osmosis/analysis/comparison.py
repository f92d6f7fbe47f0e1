"""Two sessions side by side: what changed, how sure that is, and which rows were broken or fixed.

A pure function of two score tables. Both use this session's pass threshold; K of pass@K goes
as far as the smaller n. A run without a score counts as 0.0 on both sides; a note
says how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..escaping import counted
from ..verdicts import BaselineReport, Change, Comparison, Difference
from .metrics import Metric, bounds, row_values, summary_metrics
from .row_matching import Matching, match_rows
from .score_table import Case, ScoreTable
from .statistics.estimators import finite, mean
from .statistics.paired import paired


def compare(
    current: ScoreTable, baseline: ScoreTable, *, confidence: float = 0.95
) -> BaselineReport:
    """Compares the eval functions that both sessions have, over the rows that both have."""
    matching = _with_runs(match_rows(current, baseline), current, baseline)
    held = at_thresholds(baseline, current)
    comparisons = tuple(
        compare_function(current, held, name, matching=own, confidence=confidence)
        for name in current.eval_fns
        if name in baseline.scores and (own := _with_scores(matching, current, baseline, name))
    )
    return BaselineReport(comparisons, tuple(_notes(current, baseline, matching)))


def compare_function(
    current: ScoreTable,
    baseline: ScoreTable,
    eval_fn: str,
    *,
    matching: Matching,
    confidence: float = 0.95,
) -> Comparison:
    """Compares one eval function over matched rows."""
    changes = _changes(current, baseline, eval_fn, matching)
    return Comparison(
        eval_fn,
        len(matching.pairs),
        tuple(
            _difference(metric, current, baseline, matching=matching, confidence=confidence)
            for metric in _compared(min(current.n, baseline.n), eval_fn)
            if current.has_threshold(eval_fn) or not metric.definition.counts_passes
        ),
        regressed=tuple(change for change in changes if change.baseline.is_pass),
        fixed=tuple(sorted((each for each in changes if each.current.is_pass), key=_fall)),
    )


def at_thresholds(tally: ScoreTable, other: ScoreTable) -> ScoreTable:
    """The same runs, judged by another table's pass thresholds."""
    return replace(
        tally,
        pass_threshold=other.pass_threshold,
        thresholds={name: other.thresholds.get(name) for name in tally.thresholds},
    )


def paired_values(
    metric: Metric,
    current: ScoreTable,
    baseline: ScoreTable,
    pairs: Sequence[tuple[int, int]],
    case: Case = "value",
    there: Case = "value",
) -> tuple[list[float], list[float]]:
    """Return the metric's value a row, here and in the baseline, `there` being the case there.

    A value needs a run that has ended on both sides, and has recorded a recorded score.
    """
    name = metric.function(current)
    pairs = [
        pair
        for pair in pairs
        if current.has_value(name, pair[0], case) and baseline.has_value(name, pair[1], there)
    ]
    return (
        row_values(metric, current, [here for here, _ in pairs], case),
        row_values(metric, baseline, [other for _, other in pairs], there),
    )


def rows_of(matching: Matching) -> tuple[list[int], list[int]]:
    """The matched rows' positions, here and there."""
    return [here for here, _ in matching.pairs], [there for _, there in matching.pairs]


def differences(here: Sequence[float], there: Sequence[float]) -> list[float]:
    """One difference a row, here minus there."""
    return [finite(one - other) for one, other in zip(here, there, strict=True)]


def span_of(metric: Metric, current: ScoreTable, baseline: ScoreTable) -> float:
    """How far apart a row's values here and there can lie."""
    if metric.definition.interval == "share":
        return 1.0
    name = metric.function(current)
    (low, high), (other_low, other_high) = (
        tally.score_range(name) for tally in (current, baseline)
    )
    return finite(max(high, other_high) - min(low, other_low))


def _difference(
    metric: Metric,
    current: ScoreTable,
    baseline: ScoreTable,
    *,
    matching: Matching,
    confidence: float,
) -> Difference:
    here, there = paired_values(metric, current, baseline, matching.pairs)
    found = paired(
        differences(here, there), confidence=confidence, span=span_of(metric, current, baseline)
    )
    return Difference(metric.label, mean(here), mean(there), found)


def _changes(
    current: ScoreTable, baseline: ScoreTable, eval_fn: str, matching: Matching
) -> list[Change]:
    """Rows that pass on one side only, the largest fall first; rows without a score stay out."""
    changes = [
        Change(
            current.row_names[here],
            here,
            there,
            current.count(eval_fn, here),
            baseline.count(eval_fn, there),
        )
        for here, there in matching.pairs
    ]
    moved = [
        change
        for change in changes
        if change.current.known
        and change.baseline.known
        and change.current.is_pass != change.baseline.is_pass
    ]
    return sorted(moved, key=lambda change: -_fall(change))


def _fall(change: Change) -> float:
    """By how much fewer of its runs pass than in the baseline."""
    there, here = change.baseline, change.current
    return there.passes / there.known - here.passes / here.known


def _compared(n: int, eval_fn: str) -> list[Metric]:
    """Return what is compared of n runs a row; with one run pass^1 is pass@1, and is left out."""
    if n > 1:
        return [each for each in summary_metrics(n, eval_fn) if each.definition.is_comparable]
    return [Metric("mean", None, eval_fn), Metric("pass@", 1, eval_fn)]


def _with_runs(matching: Matching, current: ScoreTable, baseline: ScoreTable) -> Matching:
    """Leave out the rows of which no run has ended on one side."""
    pairs = (pair for pair in matching.pairs if current.has_run(pair[0]))
    return replace(matching, pairs=tuple(pair for pair in pairs if baseline.has_run(pair[1])))


def _with_scores(
    matching: Matching, current: ScoreTable, baseline: ScoreTable, eval_fn: str
) -> Matching:
    """Leave out the rows that did not record a score; all, where a side has none at all."""
    pairs = tuple(
        pair
        for pair in matching.pairs
        if current.has_value(eval_fn, pair[0], "value")
        and baseline.has_value(eval_fn, pair[1], "value")
    )
    own = replace(matching, pairs=pairs)
    here, there = rows_of(own)
    is_scored = current.has_score(eval_fn, here) and baseline.has_score(eval_fn, there)
    return own if is_scored else replace(matching, pairs=())


def _notes(current: ScoreTable, baseline: ScoreTable, matching: Matching) -> list[str]:
    notes = []
    if not matching:
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
    missing = [name for name in current.eval_fns if name not in baseline.scores]
    if missing:
        notes.append(f"the baseline has no eval function {', '.join(missing)}")
    return [*notes, *matching.notes(), *_missing_notes(current, baseline, matching)]


def _missing_notes(current: ScoreTable, baseline: ScoreTable, matching: Matching) -> list[str]:
    notes = []
    for tally, rows, where in zip(
        (current, baseline), rows_of(matching), ("here", "in the baseline"), strict=True
    ):
        for name in current.eval_fns:
            if name in tally.scores:
                missing = bounds(Metric("errors", None, name), tally, rows)
                if rows and not tally.has_score(name, rows):
                    notes.append(f"no run {where} has a score for {name}: it is not compared")
                elif missing is not None and missing.value:
                    runs = counted(int(missing.value), "run")
                    notes.append(f"{runs} {where} without a score for {name}: counted as 0.0")
    return notes
