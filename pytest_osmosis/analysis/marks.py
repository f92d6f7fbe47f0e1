"""What people said of runs, as an array beside a score table: corrected means, and agreement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .statistics.estimators import FEWEST_CLUSTERS
from .statistics.kappa import Agreement, kappa_in_units
from .statistics.prediction_powered import FEWEST_MARKED, CorrectedMean, corrected_mean

if TYPE_CHECKING:
    from .score_table import ScoreTable
    from .statistics.estimators import Floats

Mark = tuple[int, int, bool]
"""Row, run, and whether a person called it right."""


def marks_in(table: ScoreTable, marks: Iterable[Mark]) -> Floats:
    """Return what people said of each run; NaN where nothing."""
    found = np.full((len(table.rows), table.n), np.nan)
    for row, run, is_right in marks:
        place = table.rows.place_of.get(row)
        if place is not None and run < table.n:
            found[place, run] = float(is_right)
    return found


def corrected(
    table: ScoreTable, name: str, marked: Floats, confidence: float
) -> CorrectedMean | None:
    """Return a function's mean as people would have it; None where no run counts and is marked."""
    scores = np.where(table.counted(name), table.scores[name], np.nan)
    there = ~np.isnan(scores).all(axis=1)
    scores, marks = scores[there], marked[there]
    judged = np.where(np.isnan(marks), np.nan, scores)
    marks = np.where(np.isnan(judged), np.nan, marks)
    return corrected_mean(
        _means(scores),
        _means(judged),
        _means(marks),
        scale=table.score_range(name),
        clusters=None if table.clusters is None else table.clusters[there],
        confidence=confidence,
    )


def _means(values: Floats) -> Floats:
    """Return each row's mean of what is there; NaN where nothing is."""
    known = ~np.isnan(values)
    sums = np.where(known, values, 0.0).sum(axis=1)
    found: Floats = np.where(known.any(axis=1), sums / np.maximum(known.sum(axis=1), 1), np.nan)
    return found


def agreement(table: ScoreTable, name: str, marked: Floats, confidence: float) -> Agreement | None:
    """Return the agreement of a function's verdicts with marks, by row or cluster.

    Without an interval where fewer than FEWEST_MARKED rows are marked, or too few clusters.
    """
    if not table.has_threshold(name):
        return None
    both = ~np.isnan(marked) & table.counted(name)
    passed = table.scores[name] >= table.threshold(name)
    places = np.nonzero(both)
    units = places[0] if table.clusters is None else table.clusters[places[0]]
    pairs = zip(
        passed[places].tolist(), (marked[places] > 0.5).tolist(), units.tolist(), strict=True
    )
    found = kappa_in_units([*pairs], confidence=confidence)
    is_few = len(set(places[0].tolist())) < FEWEST_MARKED
    of_few = table.clusters is not None and len(set(units.tolist())) < FEWEST_CLUSTERS
    return found and (replace(found, interval=None) if is_few or of_few else found)


def marked_rows(marked: Floats) -> int:
    """Return how many rows have a mark."""
    return int((~np.isnan(marked)).any(axis=1).sum())
