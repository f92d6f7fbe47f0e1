"""Which clusters of rows have changed between two sessions, and which of their rows with them.

The runs of a cluster are tested together, dealt again within each row. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.gates.evaluate import EQUAL_WITHIN
from ...analysis.statistics.estimators import mean as mean_of
from ...analysis.statistics.permutation import discoveries, stratified_test
from .changed_rows import changed_rows, counts_of_rows, rank, scores_of_rows
from .results import RATE, Change, Count

if TYPE_CHECKING:
    from ...analysis.statistics.estimators import Places
    from .matched import Matched


def changed_clusters(
    both: Matched, eval_fn: str
) -> tuple[tuple[Change, ...], tuple[Change, ...], int]:
    """Return the clusters whose mean differs, by p, then by size; the rows; how many were tested.

    A row has the verdict of its cluster where it has moved the same way; p is the cluster's alone.
    """
    rows, _, _ = changed_rows(both, eval_fn)
    scores: defaultdict[int, list[tuple[int, list[float], list[float]]]] = defaultdict(list)
    assert both.current.clusters is not None
    numbers = both.current.clusters.tolist()
    for found in scores_of_rows(both, eval_fn):
        scores[numbers[found[0]]].append(found)
    moved = {
        number: [change for change in rows if _number(both, change) == number] for number in scores
    }
    tests = [stratified_test((now, then) for _, now, then in each) for each in scores.values()]
    shown, able = discoveries(tests, rate=RATE)
    counts = counts_of_rows(both.current, eval_fn), counts_of_rows(both.baseline, eval_fn)
    clusters: list[Change] = []
    known: dict[int, Change] = {}
    for number, (p, _), is_shown in zip(scores, tests, shown, strict=True):
        if not moved[number]:
            continue
        cluster = replace(_cluster(both, number, scores[number], moved[number], counts), p=p)
        if is_shown and cluster.difference:
            fell = cluster.difference < 0.0
            cluster = replace(cluster, verdict="regressed" if fell else "improved")
        known[number] = cluster
        if cluster.difference:
            clusters.append(cluster)
    own = (_with_verdict(change, known[_number(both, change)]) for change in rows)
    ordered = sorted(own, key=lambda change: (change.verdict == "changed", -abs(change.difference)))
    return tuple(sorted(clusters, key=rank)), tuple(ordered), able


def _number(both: Matched, change: Change) -> int:
    assert both.current.clusters is not None
    return int(both.current.clusters[both.current.rows.place_of[change.row_index]])


def _cluster(
    both: Matched,
    number: int,
    scores: list[tuple[int, list[float], list[float]]],
    moved: list[Change],
    counts: tuple[Places, Places],
) -> Change:
    """Return what changed in a cluster, with the row that moved most in its direction."""
    at = [row for row, _, _ in scores]
    now_of, then_of = ([np.array(each[side]) for each in scores] for side in (1, 2))
    mean, baseline_mean = (mean_of(np.array([*map(mean_of, side)])) for side in (now_of, then_of))
    if abs(mean - baseline_mean) < EQUAL_WITHIN:
        mean = baseline_mean
    sign = 1.0 if mean >= baseline_mean else -1.0
    example = max(moved, key=lambda change: sign * change.difference)
    now, then = (Count(*count[:, at].sum(axis=1).tolist()) for count in counts)
    names = both.current.cluster_names
    return replace(
        example,
        name=names[number] if number >= 0 else example.name,
        current=now,
        baseline=then,
        mean=mean,
        baseline_mean=baseline_mean,
        verdict="changed",
    )


def _with_verdict(change: Change, cluster: Change) -> Change:
    is_same_way = change.difference * cluster.difference > 0.0
    verdict = cluster.verdict if is_same_way else "changed"
    return replace(change, verdict=verdict, p=None)
