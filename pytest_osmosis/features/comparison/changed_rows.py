"""Which rows have changed between two sessions, by the runs of each. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.statistics.estimators import mean
from ...analysis.statistics.permutation import discoveries, permutation_test
from .results import FEWEST_RUNS, RATE, Change, Count

if TYPE_CHECKING:
    from ...analysis.score_table import ScoreTable
    from ...analysis.statistics.estimators import Places
    from .matched import Matched


def changed_rows(both: Matched, eval_fn: str) -> tuple[tuple[Change, ...], int, int]:
    """Return the rows whose mean differs, by p, then by size; how many could show that.

    And how many could not, for having fewer than three runs with a score on a side.
    """
    pairs = list(scores_of_rows(both, eval_fn))
    enough = [pair for pair in pairs if min(map(len, pair[1:])) >= FEWEST_RUNS]
    tests = [permutation_test(now, then) for _, now, then in enough]
    shown, able = discoveries(tests, rate=RATE)
    found = {
        pair[0]: (test[0], is_shown)
        for pair, test, is_shown in zip(enough, tests, shown, strict=True)
    }
    counts = counts_of_rows(both.current, eval_fn), counts_of_rows(both.baseline, eval_fn)
    changes = (
        _change(both, row, (mean(np.array(now)), mean(np.array(then))), counts, found.get(row))
        for row, now, then in pairs
        if now != then
    )
    moved = (change for change in changes if change.difference)
    return tuple(sorted(moved, key=rank)), able, len(pairs) - len(enough)


def scores_of_rows(both: Matched, eval_fn: str) -> Iterator[tuple[int, list[float], list[float]]]:
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


def counts_of_rows(table: ScoreTable, eval_fn: str) -> Places:
    """Return each row's runs that pass, that count and that do not, as `Count` has them."""
    scores = table.row_scores(eval_fn)
    left_out = (table.finished & ~table.counted(eval_fn)).sum(axis=1)
    return np.stack([scores.passes, scores.runs, left_out])


def rank(change: Change) -> tuple[float, float]:
    """Return by what changes are sorted: p, then size."""
    return 2.0 if change.p is None else change.p, -abs(change.difference)
