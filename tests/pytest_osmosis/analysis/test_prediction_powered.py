"""Means corrected by people: how often they hold the truth, and how wide they are."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.verdicts import simulate_people
from pytest_osmosis.analysis.statistics.kappa import kappa_in_units
from pytest_osmosis.analysis.statistics.prediction_powered import corrected_mean


@pytest.mark.parametrize("judge", ["honest", "lenient"])
@pytest.mark.parametrize("marks", [20, 50, 200])
def test_a_corrected_mean_covers_and_is_hardly_wider_than_the_marks(judge: str, marks: int):
    found = simulate_people(judge, 0.7, marks, pairs=300)
    assert found.covered >= 0.93 * 300 - 3 * (300 * 0.93 * 0.07) ** 0.5
    assert found.widest <= 1.1 + 1e-9
    assert found.width / 300 < 1.05


def test_what_marks_say_is_given_where_all_rows_are_marked_or_too_few():
    marks = np.array([1.0, 0.0] * 20)
    whole = corrected_mean(np.ones(40), np.ones(40), marks)
    assert whole is not None and whole.value == pytest.approx(0.5)
    few = np.where(np.arange(40) < 9, marks, np.nan)
    found = corrected_mean(np.ones(40), np.where(np.isnan(few), np.nan, 1.0), few)
    assert found is not None and found.interval is None
    assert corrected_mean(np.ones(40), np.full(40, np.nan), np.full(40, np.nan)) is None


def test_marks_in_few_clusters_have_no_interval_and_clusters_widen_it():
    draw = np.random.default_rng(3)
    clusters = np.repeat(np.arange(20), 10)
    marks = np.repeat((draw.random(20) < 0.6).astype(float), 10)
    scores = np.where(draw.random(200) < 0.5, marks, 1.0)
    by_rows = corrected_mean(scores, scores, marks)
    wide = corrected_mean(scores, scores, marks, clusters=clusters)
    few = corrected_mean(scores, scores, marks, clusters=clusters // 5)
    assert by_rows and wide and few and by_rows.interval and wide.interval
    assert few.interval is None
    assert wide.interval.high - wide.interval.low > 2 * (
        by_rows.interval.high - by_rows.interval.low
    )


def test_the_interval_of_kappa_by_units_holds_the_truth():
    draw = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        right = draw.random(60) < 0.6
        passed = np.where(draw.random(60) < 0.1, ~right, right)
        found = kappa_in_units([*zip(passed.tolist(), right.tolist(), range(60), strict=True)])
        assert found is not None and found.interval is not None
        share = 0.6 * 0.9 + 0.4 * 0.1
        by_chance = share * 0.6 + (1 - share) * 0.4
        held += found.interval.low <= (0.9 - by_chance) / (1 - by_chance) <= found.interval.high
    assert held >= 0.92 * 300
    pairs = [(True, True, 1), (False, False, 1), (True, False, 2), (False, False, 2)]
    assert kappa_in_units([(True, False, 1)] * 2) is not None
    found = kappa_in_units(pairs)
    assert found is not None and found.kappa == pytest.approx(0.5)
