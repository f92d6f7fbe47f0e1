"""Comparisons with a baseline: which rows, what difference, how sure."""

from __future__ import annotations

import json
import random
import sys

import numpy as np
import pytest

from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.planned_rows import planned
from pytest_osmosis.analysis.statistics import student_t
from pytest_osmosis.analysis.statistics.paired import paired as paired_rows
from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.escaping import number_text
from pytest_osmosis.features.comparison.compare import compare
from pytest_osmosis.features.comparison.row_matching import match_rows
from pytest_osmosis.reports.highlights import figure_text
from tests.support.score_tables import LOST, empty_table, run_of, table_of


def tally_of(rows, *, name="f", **settings):
    return table_of(rows, names=(name,), **settings)


def paired(differences, **settings):
    return paired_rows(np.array(differences, dtype=float), **settings)


# --- which rows ---------------------------------------------------------------------------------


def test_rows_are_matched_by_key_and_content():
    here = tally_of([[1.0]] * 4, keys=["a", "b", "c", "d"], digests=["1", "2", "3", ""])
    there = tally_of([[1.0]] * 4, keys=["d", "c", "b", "z"], digests=["9", "X", "2", "8"])
    found = match_rows(here.rows, there.rows)
    assert found.pairs == ((1, 2), (3, 0))
    assert (found.changed, found.added, found.removed) == (("row-2",), ("row-0",), ("row-3",))


def test_rows_without_ids_are_matched_by_content_wherever_they_stand():
    there = tally_of([[1.0]] * 5, keys=["#0", "#1", "#2", "#3", "#4"], digests=list("abbcd"))
    here = tally_of([[1.0]] * 5, keys=["#0", "#1", "#2", "#3", "#4"], digests=list("bbxcn"))
    found = match_rows(here.rows, there.rows)
    assert found.pairs == ((0, 2), (1, 1), (3, 3))
    assert (found.changed, found.added, found.removed) == (("row-4",), ("row-2",), ("row-0",))


def test_a_row_is_called_by_its_id_where_node_ids_spell_it_otherwise(tmp_path):
    data = tmp_path / "data.jsonl"
    row = {"system_prompt": "", "user_prompt": "?", "ground_truth": "42", "id": "math/1"}
    data.write_text(json.dumps(row))
    dataset = load_dataset(data)
    assert planned(dataset).names == ["math/1"] != [dataset.row_name(0)]


def test_without_keys_the_names_match():
    found = match_rows(tally_of([[1.0]] * 2).rows, tally_of([[1.0]] * 3).rows)
    assert found.pairs == ((0, 0), (1, 1))
    assert found.removed == ("row-2",)
    assert found.notes() == ["1 row is only in the baseline and not compared: row-2"]


def test_a_function_without_any_score_on_one_side_is_not_compared():
    scored, unscored = tally_of([[1.0, 0.0]] * 3), tally_of([[None, None]] * 3)
    for here, there, where in (
        (unscored, scored, "here"),
        (scored, unscored, "in the baseline"),
    ):
        report = compare(here, there)
        assert report.comparisons == ()
        assert report.notes == (f"no run {where} has a score for f: it is not compared",)
        found = evaluate(parse_gate("mean - baseline >= -0.1"), here, baseline=there)
        assert (found.outcome, found.figure) == ("inconclusive", None)


def test_runs_without_a_score_are_those_that_the_summary_counts():
    table = empty_table(1, 4)
    table.record([run_of(0, 0, {"f": 1.0}), run_of(0, 1, {}), run_of(0, 2, {}, error_type="agent")])
    report = compare(table, tally_of([[1.0] * 4]))
    assert report.notes == ("1 run here without a score for f left out",)


def test_what_differs_is_reported():
    here = tally_of([[1.0, None, 0.0]] * 7, threshold=0.5, digests=list("abcdefg"))
    there = tally_of([[1.0, 1.0]] * 7, threshold=1.0, digests=list("aBCDEFG"))
    report = compare(here, there)
    assert report.notes == (
        "n is 3, in the baseline 2: pass@k is compared up to k = 2",
        "the pass threshold is 0.5, in the baseline 1: both are held to 0.5",
        "6 rows are changed since the baseline and not compared: "
        "row-1, row-2, row-3, row-4, row-5, …",
        "1 run here without a score for f left out",
    )
    assert [one.metric for one in report.comparisons[0].differences] == [
        "mean", "pass@1", "pass@2", "pass^1", "pass^2"
    ]  # fmt: skip


def test_nothing_in_common_is_reported_and_compares_nothing():
    report = compare(tally_of([[1.0]], keys=["a"]), tally_of([[1.0]], keys=["b"]))
    assert report.comparisons == ()
    assert "no row in common" in report.notes[0]
    report = compare(tally_of([[1.0]]), tally_of([[1.0]], name="g"))
    assert report.comparisons == ()
    assert report.notes == ("the baseline has no eval function f",)


def test_the_baseline_is_held_to_this_sessions_threshold():
    (found,) = compare(
        tally_of([[0.6], [0.6]], threshold=0.5), tally_of([[0.6], [0.6]])
    ).comparisons
    assert [one.paired.difference for one in found.differences] == [0.0, 0.0]
    assert found.changes == ()


# --- what changed -------------------------------------------------------------------------------


def test_a_pass_at_k_of_more_runs_than_any_row_has_is_not_compared():
    [found] = compare(tally_of([[1.0, LOST], [0.0, LOST]]), tally_of([[1.0, 1.0]] * 2)).comparisons
    assert [each.metric for each in found.differences] == ["mean", "pass@1", "pass^1"]
    short = tally_of([[1.0, LOST], [0.0, 0.0]])
    [found] = compare(short, tally_of([[1.0, 1.0]] * 2)).comparisons
    assert {each.metric: each.current for each in found.differences}["pass@2"] == 0.0


def changes_of(here, there):
    (found,) = compare(tally_of(here), tally_of(there)).comparisons
    return found


def test_one_row_that_broke_is_not_hidden_by_rows_that_always_pass():
    found = changes_of([[1.0] * 5] * 19 + [[0.0] * 5], [[1.0] * 5] * 20)
    [change] = found.changes
    assert (change.name, change.verdict) == ("row-19", "regressed")
    assert (change.figures, change.p) == ("5/5 → 0/5, p of its runs 0.008", pytest.approx(2 / 252))
    assert (found.counts, found.tested, found.short) == ("1 regressed", 1, 0)
    assert found.rule == (
        "regressed, improved: by an exact permutation test of the row's runs, "
        "Benjamini-Hochberg at 10% over 1 row that could show a change; "
        "the fall of these rows is more than chance, that of the mean need not be"
    )
    assert "the mean" not in changes_of([[0.0] * 5] * 20, [[1.0] * 5] * 20).rule


def test_rows_that_chance_explains_are_changed_and_the_list_goes_by_p_then_by_size():
    some, most = [1.0, 1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0]
    found = changes_of(
        [most, [1.0] * 5, [0.0] * 5, some, [1.0] * 5], [some, [0.0] * 5, [1.0] * 5, most, [1.0] * 5]
    )
    assert [(change.name, change.verdict) for change in found.changes] == [
        ("row-1", "improved"), ("row-2", "regressed"), ("row-0", "changed"), ("row-3", "changed"),
    ]  # fmt: skip
    assert found.counts == "1 regressed, 1 improved, 2 others changed; chance explains them"


@pytest.mark.parametrize("n", [1, 2])
def test_with_fewer_than_three_runs_a_row_is_never_more_than_changed(n):
    found = changes_of([[0.0] * n] * 30, [[1.0] * n] * 30)
    assert {(change.verdict, change.p) for change in found.changes} == {("changed", None)}
    assert (found.tested, found.short) == (0, 30)
    assert found.rule == (
        "30 rows with fewer than 3 runs on a side can show nothing, with 3 or more they could"
    )
    assert changes_of([[0.0] * 3], [[1.0] * 3]).counts == "1 regressed"


def test_runs_that_never_ended_are_no_part_of_a_rows_count():
    [found] = compare(tally_of([[1.0, 1.0, 0.0]]), tally_of([[1.0, LOST, LOST]])).comparisons
    assert [change.figures for change in found.changes] == ["1/1 → 2/3"]


def test_a_difference_that_rounding_alone_makes_reads_as_none():
    thirds = tally_of([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.7, 0.0, 0.0]])
    moved = tally_of([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.7, 0.0, 0.0]])
    for gate in ("mean - baseline >= -0.02", "mean - baseline <= 0.02"):
        found = evaluate(parse_gate(gate), thirds, baseline=moved)
        assert found.sentence().startswith("0 (")
    assert figure_text(-1e-17, "+") == "+0.000" and number_text(-2.8e-18) == "0"


def test_scores_between_0_and_1_show_their_means():
    found = changes_of([[0.2, 0.25, 0.3, 0.2]], [[0.9, 0.8, 0.85, 0.95]])
    assert [change.figures for change in found.changes] == ["0.875 → 0.2375, p of its runs 0.029"]
    assert found.counts == "1 regressed"


def test_a_run_without_a_score_is_no_part_of_a_rows_change():
    found = changes_of([[None] * 4, [0.0, 0.0, 0.0, None]], [[1.0] * 4] * 2)
    [change] = found.changes
    assert (change.name, change.p) == ("row-1", pytest.approx(1 / 35))
    assert (change.verdict, change.figures) == ("regressed", "4/4 → 0/3, p of its runs 0.029")


def test_huge_scores_are_compared_too():
    most = sys.float_info.max
    found = changes_of([[-most] * 4], [[most] * 4])
    assert [change.verdict for change in found.changes] == ["regressed"]


def test_the_figures_are_those_of_the_matched_rows():
    (found,) = compare(
        tally_of([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], keys=["a", "b", "c"]),
        tally_of([[0.0, 0.0], [1.0, 0.0]], keys=["a", "b"]),
    ).comparisons
    assert found.rows == 2
    figures = {one.metric: (one.current, one.baseline) for one in found.differences}
    assert figures == {
        "mean": (0.75, 0.25), "pass@1": (0.75, 0.25), "pass@2": (1.0, 0.5),
        "pass^1": (0.75, 0.25), "pass^2": (0.5, 0.0),
    }  # fmt: skip
    for one in found.differences:
        assert one.paired.difference == pytest.approx(one.current - one.baseline)


# --- how sure -----------------------------------------------------------------------------------


def test_few_changed_rows_get_the_published_interval_with_t_for_z():
    # Agresti and Min 2005: (c - b) / M -+ z sqrt((b + c + 1) - (c - b)^2 / M) / M with M = N + 2,
    # there after 2 rows were added, here after 8 / (D + 4).
    for broken, fixed, rows in ((0, 0, 40), (4, 9, 40), (12, 3, 40), (1, 0, 2)):
        found = paired([-1.0] * broken + [1.0] * fixed + [0.0] * (rows - broken - fixed))
        added = 8 / (broken + fixed + 4)
        centre = (fixed - broken) / (rows + added)
        squares = broken + fixed + added / 2 - (fixed - broken) ** 2 / (rows + added)
        error = squares**0.5 / (rows + added)
        t = student_t.quantile(0.975, rows - 1)
        assert found.interval.low == pytest.approx(max(-1, centre - t * error))
        assert found.interval.high == pytest.approx(min(1, centre + t * error))
        assert found.p == pytest.approx(2 * student_t.tail(abs(centre) / error, rows - 1))
        assert found.interval.method == found.p_method == "agresti-min"


def test_many_differing_rows_get_students_t():
    found = paired(np.random.default_rng(3).normal(0.02, 0.2, size=400))
    limits = (found.interval.low, found.interval.high)
    assert found.p == pytest.approx(0.00826, abs=0.01)  # scipy.stats.ttest_1samp
    assert limits == pytest.approx((0.00695, 0.04663), abs=0.001)


def test_p_and_interval_never_contradict_each_other():
    draw = random.Random(8)
    for _ in range(2_000):
        values = draw.choice([(-1.0, 0.0, 1.0), (-0.4, -0.2, 0.0, 0.0, 0.0, 0.2), (0.0, 0.0, 1.0)])
        differences = draw.choices(values, k=draw.choice([1, 2, 5, 12, 30, 100]))
        confidence = draw.choice([0.5, 0.8, 0.95, 0.99])
        found = paired(differences, confidence=confidence)
        assert found.interval.low <= found.difference <= found.interval.high
        leaves_out_0 = not found.interval.low <= 0.0 <= found.interval.high
        assert leaves_out_0 == (found.p < 1 - confidence)


def test_differences_that_differ_by_rounding_alone_are_equal():
    moved = [(run + 1) / 6 - run / 6 for run in range(6)]
    assert len(set(moved)) > 1
    assert paired(moved).p == pytest.approx(paired([1 / 6] * 6).p)


def test_no_difference_at_all_is_no_evidence_but_not_certainty():
    (found,) = compare(tally_of([[1.0, 0.0]] * 20), tally_of([[1.0, 0.0]] * 20)).comparisons
    for one in found.differences:
        assert (one.paired.difference, one.paired.p) == (0.0, 1.0)
        assert one.paired.interval.low < 0 < one.paired.interval.high


def test_rows_that_all_moved_alike_are_evidence_and_no_rows_are_none():
    assert paired([0.25] * 20).p < 0.001
    assert paired([1.0] * 3).p < 0.2
    assert paired([]).p is None
    assert paired([]).interval is None


SIMULATIONS = 2_000


def beta_binomial_pairs(seed: int, *, rows: int, n: int, shift: float):
    """Per simulation, differences of row means: both sides share each row's chance, one shifted."""
    rng = np.random.default_rng(seed)
    for _ in range(SIMULATIONS):
        chance = rng.beta(2, 2, size=rows) * (1 - abs(shift))
        here = rng.binomial(n, chance + shift) / n
        yield list(here - rng.binomial(n, chance) / n)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "n"), [(20, 5), (50, 3), (100, 1), (200, 4)])
def test_the_interval_of_a_difference_covers_as_often_as_it_says(rows, n):
    shift, hits = 0.1, 0
    for differences in beta_binomial_pairs(rows, rows=rows, n=n, shift=shift):
        found = paired(differences)
        hits += found.interval.low <= shift <= found.interval.high
    assert 0.93 <= hits / SIMULATIONS <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "n"), [(5, 3), (10, 2), (40, 1), (40, 4)])
def test_without_a_difference_p_is_small_as_seldom_as_it_says(rows, n):
    small = 0
    for differences in beta_binomial_pairs(rows, rows=rows, n=n, shift=0.0):
        small += paired(differences).p <= 0.05
    assert small / SIMULATIONS <= 0.07


def test_a_real_difference_is_found():
    draw = random.Random(1)
    there = [[float(draw.random() < 0.4) for _ in range(5)] for _ in range(100)]
    here = [[float(draw.random() < 0.6) for _ in range(5)] for _ in range(100)]
    (found,) = compare(tally_of(here), tally_of(there)).comparisons
    assert found.differences[0].paired.p < 0.001
    assert found.differences[0].paired.interval.low > 0


# --- rows that nearly all moved alike -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("broken", [0.02, 0.5, 0.95])
@pytest.mark.parametrize("rows", [10, 50, 300])
def test_where_rows_fell_alike_the_interval_covers_as_often_as_it_says(rows, broken):
    rng = np.random.default_rng(rows)
    fell = rng.random((SIMULATIONS, rows)) < broken
    intervals = [paired(row).interval for row in np.where(fell, -1.0, 0.0).tolist()]
    hits = sum(found.low <= -broken <= found.high for found in intervals)
    assert hits / SIMULATIONS >= 0.92


@pytest.mark.parametrize("still", [1, 4, 11])
def test_where_most_rows_fell_alike_the_difference_is_not_put_down_to_chance(still):
    found = paired([-1.0] * (20 - still) + [0.0] * still)
    assert found.p < 0.002
    assert found.interval.high < 0.0


def test_no_interval_reaches_farther_than_scores_lie_apart():
    there = [[1.0 - step / 1000] for step in range(14)] + [[0.0]]
    [found] = compare(tally_of([[0.0]] * 15), tally_of(there)).comparisons
    [mean, _] = found.differences
    assert mean.paired.interval.low == -1.0
    assert paired([-3.0] * 15, span=3.0).interval.low == -3.0


# --- scores out of all proportion ---------------------------------------------------------------


@pytest.mark.parametrize("rows", [4, 40])
def test_scores_as_large_as_a_float_is_are_compared_as_small_ones_are(rows):
    draw = random.Random(rows)
    here, there = ([draw.choice([-1.0, 0.25, 1.0]) for _ in range(rows)] for _ in range(2))

    def compared(unit):
        tallies = ([[unit * score, unit] for score in side] for side in (here, there))
        return compare(*map(tally_of, tallies)).comparisons[0].differences[0].paired

    unit = 2.0**1020
    small, large = compared(1.0), compared(unit)
    assert large.difference == pytest.approx(small.difference * unit)
    assert (large.p, large.p_method) == (pytest.approx(small.p), small.p_method)
    assert large.interval.low == pytest.approx(small.interval.low * unit)


def test_a_difference_that_no_float_holds_is_the_largest_there_is():
    [found] = compare(tally_of([[1.7e308]] * 2), tally_of([[-1.7e308]] * 2)).comparisons
    assert found.differences[0].paired.difference == sys.float_info.max
