"""Gates: what may be said, what it decides, and with which exit status."""

from __future__ import annotations

import itertools
import math
import random
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pytest_osmosis.analysis.gates.evaluate import evaluate, holds, outcome_between
from pytest_osmosis.analysis.gates.parser import GateError, parse_gate, resolved
from pytest_osmosis.analysis.metrics import row_values
from pytest_osmosis.analysis.score_table import ScoreTable
from pytest_osmosis.analysis.statistics.estimators import mean
from pytest_osmosis.analysis.statistics.intervals import unit_interval
from pytest_osmosis.verdicts import POINT_ESTIMATES, exit_status
from tests.support.score_tables import LOST, UNKNOWN, table_of


def gate_of(metric, operator, threshold):
    """A gate, also one that is refused where it is read since nothing passes it."""
    return replace(parse_gate(f"{metric} >= 0.5"), operator=operator, threshold=threshold)


def tally_of(rows, *, names=("f:score",), **settings) -> ScoreTable:
    return table_of(rows, names=names, **settings)


def outcome(text, tally, **settings):
    return evaluate(parse_gate(text), tally, **settings).outcome


# --- what may be said ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "metric", "k", "eval_fn", "operator", "threshold"),
    [
        ("pass@5 >= 0.9", "pass@", 5, None, ">=", 0.9),
        ("pass^3>=90%", "pass^", 3, None, ">=", 0.9),
        ("pass @ 10 > 99.5 %", "pass@", 10, None, ">", 0.995),
        ("mean[rewards:f] <= -0.02", "mean", None, "rewards:f", "<=", -0.02),
        ("mean [ path/to my.py:f ] < 1e-3", "mean", None, "path/to my.py:f", "<", 0.001),
        ("errors == 0", "errors", None, None, "==", 0.0),
        ("scored>=.99", "scored", None, None, ">=", 0.99),
        ("rows@0 == 0", "rows@0", None, None, "==", 0.0),
        ("min > 0", "min", None, None, ">", 0.0),
        ("each row >= 8/10", "each row", None, None, ">=", 0.8),
        ("each  row[f:g] > 2 / 3", "each row", None, "f:g", ">", 2 / 3),
        ("cost_usd <= 5", "cost_usd", None, None, "<=", 5.0),
        ("tokens < 1e6", "tokens", None, None, "<", 1e6),
        ("p95_duration_s <= 30", "p95_duration_s", None, None, "<=", 30.0),
    ],
)
def test_a_gate_is_read(text, metric, k, eval_fn, operator, threshold):
    gate = parse_gate(text)
    assert (gate.metric.kind, gate.metric.k, gate.eval_fn) == (metric, k, eval_fn)
    assert (gate.operator, gate.threshold) == (operator, threshold)
    assert gate.minus is None


@pytest.mark.parametrize("text", ["mean - baseline >= -2%", "mean-baseline>=-0.02"])
def test_a_gate_may_compare_with_the_baseline(text):
    gate = parse_gate(text)
    assert gate.minus == "baseline"
    assert gate.threshold == -0.02
    assert parse_gate("pass@3[f] - baseline > 0").minus == "baseline"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pass@1 >= 90", "pass@1 is at most 1, and never >= 90; did you mean 90%?"),
        ("pass^2[f] > 50.5", "did you mean 50.5%?"),
        ("each row >= 80", "did you mean 80%?"),
        ("scored == 100", "scored is at most 1, and never == 100; did you mean 100%?"),
        ("pass@1 - baseline >= 2", "did you mean 2%?"),
        ("each row >= 8/5", "each row is at most 1, and never >= 8/5"),
        ("pass@1 >= 900", "pass@1 is at most 1, and never >= 900"),
        ("pass@1 > 1", "pass@1 is at most 1, and never > 1; did you mean >= 1?"),
        ("each row > 100%", "each row is at most 1, and never > 100%; did you mean >= 100%?"),
        ("pass@1 < 0", "pass@1 is at least 0, and never < 0; did you mean <= 0?"),
        ("errors < 0", "errors is at least 0, and never < 0; did you mean <= 0?"),
        ("tokens == -1", "tokens is at least 0, and never == -1"),
        ("pass^2 - baseline < -1", "pass^2 - baseline is at least -1, and never < -1; did you "
         "mean <= -1?"),
    ],
)  # fmt: skip
def test_a_number_that_no_evaluation_reaches_is_refused_in_one_line(text, says):
    with pytest.raises(GateError) as caught:
        parse_gate(text)
    assert str(caught.value).startswith(f"gate {text!r}: ")
    assert str(caught.value).endswith(says)


@pytest.mark.parametrize(
    "text",
    ["mean >= 90", "min[f] >= 5", "rows@0 >= 2", "pass@1 <= 2", "each row >= 100%",
     "mean < -1", "pass@1 <= 0", "errors == 0", "pass@1 - baseline < 0", "errors > -1"],
)  # fmt: skip
def test_a_number_at_the_end_of_the_range_is_right_where_a_gate_can_pass(text):
    assert parse_gate(text).text == text


def test_a_gates_name_is_its_text_with_single_blanks():
    assert parse_gate("  pass@5   >=  0.9 ").text == "pass@5 >= 0.9"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "does not start with a metric"),
        ("maen >= 1", "did you mean 'mean'"),
        ("pass5 >= 1", "'pass5' is not a metric; did you mean 'pass@5'?"),
        ("Pass_12 >= 1", "did you mean 'pass@12'?"),
        ("p95_duration >= 1", "did you mean 'p95_duration_s'"),
        ("pass@0 >= 1", "no whole number K from 1 up"),
        ("pass@1.5 >= 1", "no whole number K from 1 up"),
        ("pass@k >= 1", "no whole number K from 1 up"),
        ("each row <= 8/10", "each row takes >= or >, not <="),
        ("each row >= 8/0", "expected a number such as"),
        ("errors <= 8/10", "errors is no share: 8/10 of what?"),
        ("each row - baseline >= 0", "compare with a baseline, not each row"),
        ("mean", "expected one of >= > <= < == at the end"),
        ("mean => 1", "did you mean '>='"),
        ("mean = 1", "did you mean '=='"),
        ("mean != 1", "'!=' is not one of"),
        ("mean >=", "expected a number such as 0.9, 90% or 8/10 at the end"),
        ("mean >= high", "before 'high'"),
        ("mean >= nan", "before 'nan'"),
        ("mean >= inf", "before 'inf'"),
        ("mean >= 1.2.3", "before '1.2.3'"),
        ("mean >= 1 where a = b", "with 'where a = b'; for a gate on some rows, give them a data"),
        ("mean[] >= 1", "hold no eval function"),
        ("mean[f >= 1", "expected one of"),
        ("tokens[f] <= 1", "takes no [eval function]"),
        ("errors - baseline <= 1", "only pass@K, pass^K, mean and mean(NUMBER)"),
        ("MEAN >= 1", "did you mean 'mean'"),
        ("mean >= 1e999", "the number is too large"),
        ("tokens <= " + "9" * 5000, "the number is too large"),
        (f"pass@{'9' * 5000} >= 1", "no whole number K from 1 up"),
        ("errors <= 5%", "errors is no share: 5% of what? Give a number"),
        ("rows@0 < 10 %", "rows@0 is no share"),
        ("mean[\x1b[31m] >= 1", "it holds '\\x1b', which cannot be shown"),
        ("mean[\udcff] >= 1", "it holds '\\udcff', which cannot be shown"),
    ],
)
def test_a_gate_that_cannot_be_read_says_why_and_shows_the_grammar(text, says):
    with pytest.raises(GateError) as caught:
        parse_gate(text)
    assert says in str(caught.value)
    assert repr(" ".join(text.split())) in str(caught.value)
    _, grammar = str(caught.value).splitlines()
    assert "METRIC[EVAL_FN, model=NAME] [- baseline] OP NUMBER" in grammar


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pass@6 >= 1", "pass@6 needs --n 6 or more, and n is 5"),
        ("pass^6[a:f] >= 1", "needs --n 6 or more"),
        ("mean >= 1", "name the eval function: mean[…], one of a:f, b:f, b:g"),
        ("scored >= 1", "name the eval function"),
        ("mean[f] >= 1", "'f' is not an eval function here, only a:f, b:f, b:g"),
        ("errors[h] == 0", "'h' is not an eval function here"),
        ("mean[g] - baseline >= 0", "name one with --osmosis-baseline"),
    ],
)
def test_a_gate_that_does_not_suit_the_suite_is_refused_in_one_line(text, says):
    with pytest.raises(GateError) as caught:
        resolved(parse_gate(text), eval_fns=("a:f", "b:f", "b:g"), n=5)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_k_above_the_baselines_n_is_refused():
    with pytest.raises(GateError, match="the baseline has 2 runs a row"):
        resolved(
            parse_gate("pass@3 - baseline > 0"), eval_fns=["f"], n=5, references={"baseline": 2}
        )


def test_a_function_may_be_named_without_its_module_when_that_is_clear():
    functions = ("a:f", "b:g")
    assert resolved(parse_gate("mean[g] >= 1"), eval_fns=functions, n=1).eval_fn == "b:g"
    assert resolved(parse_gate("mean[a:f] >= 1"), eval_fns=functions, n=1).eval_fn == "a:f"
    assert resolved(parse_gate("mean >= 1"), eval_fns=["a:f"], n=1).eval_fn == "a:f"
    assert resolved(parse_gate("errors == 1"), eval_fns=functions, n=1).eval_fn is None


# --- what is decided ----------------------------------------------------------------------------


OPERATORS = {
    ">=": lambda x, t: x >= t,
    ">": lambda x, t: x > t,
    "<=": lambda x, t: x <= t,
    "<": lambda x, t: x < t,
    "==": lambda x, t: x == t,
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("unknown", range(3))
@pytest.mark.parametrize("known", range(3))
def test_the_verdict_table_around_every_threshold(operator, known, unknown):
    """5 rows of one run: `known` pass, `unknown` have no score, the others fail."""
    tally = tally_of([[1.0]] * known + [[UNKNOWN]] * unknown + [[0.0]] * (5 - known - unknown))
    for threshold in (Fraction(fifths, 5) for fifths in range(6)):
        at_worst = OPERATORS[operator](Fraction(known, 5), threshold)
        at_best = OPERATORS[operator](Fraction(known + unknown, 5), threshold)
        lies_between = Fraction(known, 5) < threshold < Fraction(known + unknown, 5)
        expected = {2: "passed", 1: "inconclusive", 0: "failed"}[at_worst + at_best]
        if operator == "==" and lies_between:
            expected = "inconclusive"
        for metric in ("mean", "pass@1", "pass^1"):
            verdict = evaluate(gate_of(metric, operator, float(threshold)), tally)
            assert verdict.outcome == expected
            assert verdict.figure == known / (5 - unknown)
            assert (verdict.low, verdict.high) == (known / 5, (known + unknown) / 5)
            assert verdict.unknown == unknown


@pytest.mark.parametrize(("outcomes", "status"), [
    ((), 0), (("passed",), 0), (("passed", "inconclusive"), 8), (("failed", "inconclusive"), 1),
    (("inconclusive", "passed", "failed"), 1), (("inconclusive",), 8), (("failed",), 1),
])  # fmt: skip
def test_the_exit_status_is_1_before_8_before_0(outcomes, status):
    for order in itertools.permutations(outcomes):
        assert exit_status(order) == status


@pytest.mark.parametrize(
    ("metric", "figure", "low", "high"),
    [
        ("mean", 1.75 / 3, -math.inf, math.inf),
        ("min", -1.0, -math.inf, -1.0),
        ("pass@1", 2 / 3, 1.5 / 4, 3 / 4),
        ("pass@2", 1 / 2, 2 / 4, 3 / 4),
        ("pass^2", 1 / 2, 1 / 4, 3 / 4),
        ("rows@0", 1, 1, 2),
        ("errors", 2, 2, 3),
        ("errors[score]", 2, 2, 3),
        ("scored", 5 / 7, 5 / 8, 6 / 8),
        ("tokens", 700, 700, math.inf),
        ("cost_usd", 0.05, 0.05, math.inf),
        ("p95_duration_s", 2, 2, math.inf),
    ],
)
def test_every_metric_has_its_figure_and_bounds(metric, figure, low, high):
    tally = tally_of([[1.0, 1.0], [0.5, -1.0], [UNKNOWN, LOST], [1.0, UNKNOWN]])
    verdict = evaluate(parse_gate(f"{metric} >= 0"), tally)
    assert (verdict.figure, verdict.low, verdict.high) == pytest.approx((figure, low, high))


def test_the_p95_duration_is_the_nearest_rank():
    tally = tally_of([[1.0] * 100])
    assert evaluate(parse_gate("p95_duration_s <= 95"), tally).figure == 95.0


def test_what_is_left_out_decides_nothing_where_scores_have_no_known_bounds():
    rows = [[-2.0], [4.0], [UNKNOWN], [1.0]]
    for text in ("mean >= 0", "mean >= -9", "mean < 99", "mean == 1", "min <= 5", "min >= -2"):
        for confidence in (None, 0.9):
            found = evaluate(parse_gate(text), tally_of(rows), confidence=confidence)
            assert found.outcome == ("passed" if text == "min <= 5" else "inconclusive"), text
    assert found.figure == -2.0
    found = evaluate(parse_gate("mean >= 0"), tally_of(rows))
    assert found.sentence().startswith("1 (no known bounds, 1 run unknown); repeat 1 run")
    assert outcome("min >= -1", tally_of(rows)) == "failed"
    assert outcome("mean >= 0", tally_of([row for row in rows if row != [UNKNOWN]])) == "passed"
    for confidence in (None, POINT_ESTIMATES, 0.9):
        given = {"baseline": tally_of([[0.0]] * 4), "confidence": confidence}
        assert outcome("mean - baseline >= 0", tally_of(rows), **given) == "inconclusive"
        if confidence != 0.9:
            assert outcome("pass@1 - baseline >= 0", tally_of(rows), **given) == "passed"


def test_figures_that_differ_by_rounding_only_are_equal():
    assert outcome("mean >= 0.3", tally_of([[0.1 + 0.2 - 1e-16]])) == "passed"
    assert outcome("mean == 0.1", tally_of([[0.1]] * 10)) == "passed"
    assert outcome("mean > 0.1", tally_of([[0.1]] * 10)) == "failed"
    assert outcome("pass@3 >= 0.9", tally_of([[1.0, 1.0, 0.0, 0.0, 0.0]] * 7)) == "passed"
    assert not holds(">=", 0.9 - 1e-6, 0.9)
    assert not holds("<", math.inf, 1e12)


def test_errors_and_scored_are_exact_when_every_run_has_ended():
    tally = tally_of([[1.0, UNKNOWN], [UNKNOWN, 0.0]])
    assert outcome("errors == 2", tally) == "passed"
    assert outcome("errors <= 1", tally) == "failed"
    assert outcome("scored == 50%", tally) == "passed"
    assert evaluate(parse_gate("scored >= 0.5"), tally).unknown == 0


def test_a_run_that_was_never_started_may_have_ended_in_an_error_or_with_a_score():
    tally = tally_of([[1.0, UNKNOWN], [LOST, 0.0]])
    assert outcome("errors == 1", tally) == "inconclusive"
    assert outcome("errors <= 0", tally) == "failed"
    assert outcome("scored >= 50%", tally) == "passed"
    assert outcome("scored > 50%", tally) == "inconclusive"
    assert evaluate(parse_gate("errors == 1"), tally).unknown == 1


def test_what_was_never_started_is_in_no_value_but_in_both_bounds():
    tally = tally_of([[1.0, *[LOST] * 4], [0.0, 0.0, 1.0, LOST, LOST], [LOST] * 5])
    for metric in ("mean", "pass@1", "pass^1"):
        found = evaluate(parse_gate(f"{metric} >= 0.5"), tally)
        assert found.figure == pytest.approx(2 / 3)
        assert (found.low, found.high) == pytest.approx((2 / 15, 13 / 15))
        assert (found.outcome, found.unknown) == ("inconclusive", 11)
    lost = evaluate(parse_gate("mean >= 0"), tally_of([[LOST]]))
    assert (lost.outcome, lost.figure) == ("passed", None)
    assert lost.sentence().startswith("no run has a score (0 .. 1, ")
    lost = evaluate(parse_gate("mean >= 0.5"), tally_of([[LOST] * 3]))
    assert lost.sentence() == "unknown: no run has a score; repeat 3 runs to settle it"


def test_no_rows_are_inconclusive():
    verdict = evaluate(parse_gate("errors == 0"), tally_of([]))
    assert (verdict.outcome, verdict.figure) == ("inconclusive", None)
    assert verdict.sentence() == "there are no runs to measure"


def test_nothing_that_unknown_runs_could_score_leaves_the_bounds():
    draw = random.Random(4)
    for _ in range(25):
        n, threshold = draw.randint(1, 4), draw.choice([0.25, 0.5, 1.0])
        rows = [
            [draw.choice([0.0, 0.25, 0.5, 1.0, UNKNOWN]) for _ in range(n)]
            for _ in range(draw.randint(1, 6))
        ]
        filled = [
            [draw.choice([0.0, 0.5, 1.0]) if score is UNKNOWN else score for score in row]
            for row in rows
        ]
        for metric in ("mean", "min", "pass@1", f"pass@{n}", f"pass^{n}", "rows@0"):
            least = min(draw.choice([0, 0.25, 0.5, 0.75, 1, 2]), 1 if "pass" in metric else 2)
            gate = parse_gate(f"{metric} >= {least}")
            before = evaluate(gate, tally_of(rows, threshold=threshold))
            after = evaluate(gate, tally_of(filled, threshold=threshold))
            assert before.low - 1e-12 <= after.figure <= before.high + 1e-12
            assert before.outcome in (after.outcome, "inconclusive")


# --- confidence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["mean", "pass@1", "pass@3", "pass^2"])
def test_a_confidence_moves_each_bound_to_the_limit_of_its_interval(metric):
    draw = random.Random(8)
    rows = [[float(draw.random() < 0.6) for _ in range(4)] for _ in range(40)]
    rows[0][0] = rows[5][2] = UNKNOWN
    worst = [[0.0 if score is UNKNOWN else score for score in row] for row in rows]
    best = [[1.0 if score is UNKNOWN else score for score in row] for row in rows]
    gate = parse_gate(f"{metric} >= 0.5")
    found = evaluate(gate, tally_of(rows), confidence=0.9)
    low = evaluate(gate, tally_of(worst), confidence=0.9)
    high = evaluate(gate, tally_of(best), confidence=0.9)
    assert (found.low, found.high) == (low.low, high.high)
    known = [[score for score in row if score is not UNKNOWN] for row in rows]
    values = row_values(resolved(gate, eval_fns=["f:score"], n=4).metric, tally_of(rows))
    assert found.figure == mean(values) and len(values) == sum(map(bool, known))
    assert low.low == low.interval.low


@pytest.mark.parametrize("operator", [">=", ">", "<=", "<", "=="])
def test_the_verdict_table_with_a_confidence(operator):
    tally = tally_of([[1.0]] * 60 + [[0.0]] * 40)
    limits = unit_interval(np.array([1.0] * 60 + [0.0] * 40))
    for threshold in (0.0, 0.4, limits.low, 0.55, 0.6, 0.65, limits.high, 0.8, 1.0):
        at_low, at_high = (OPERATORS[operator](x, threshold) for x in (limits.low, limits.high))
        expected = {2: "passed", 1: "inconclusive", 0: "failed"}[at_low + at_high]
        if operator == "==" and limits.low < threshold < limits.high:
            expected = "inconclusive"
        gate = gate_of("pass@1", operator, threshold)
        assert evaluate(gate, tally, confidence=0.95).outcome == expected
        without = "passed" if OPERATORS[operator](0.6, threshold) else "failed"
        assert evaluate(gate, tally).outcome == without


def test_what_counts_these_rows_has_no_sampling_error():
    tally = tally_of([[1.0, 0.0]] * 20)
    for text in ("errors == 0", "scored == 1", "rows@0 == 0", "min == 0", "tokens == 4000"):
        assert outcome(text, tally, confidence=0.95) == "passed"
        assert evaluate(parse_gate(text), tally, confidence=0.95).interval is None


def test_an_undefined_interval_decides_nothing():
    rows = tally_of([[0.7, 1.7]] * 3)
    verdict = evaluate(parse_gate("mean >= 0.5"), rows, confidence=0.95)
    assert (verdict.outcome, verdict.interval) == ("inconclusive", None)
    assert outcome("mean >= 0", rows, confidence=0.95) == "passed"


def test_it_says_how_many_rows_would_settle_it_and_they_do():
    rows = [[1.0]] * 66 + [[0.0]] * 34
    gate = parse_gate("pass@1 >= 0.6")
    verdict = evaluate(gate, tally_of(rows), confidence=0.95)
    assert verdict.outcome == "inconclusive"
    assert f"about {verdict.more_rows} more rows would settle it" in verdict.sentence()
    times = math.ceil((100 + verdict.more_rows) / 100) + 1
    assert outcome("pass@1 >= 0.6", tally_of(rows * times), confidence=0.95) == "passed"
    fewer = rows * max(1, (100 + verdict.more_rows) // 200)
    assert outcome("pass@1 >= 0.6", tally_of(fewer), confidence=0.95) == "inconclusive"


def test_no_number_of_rows_settles_a_figure_at_its_threshold():
    tally = tally_of([[1.0]] * 60 + [[0.0]] * 40)
    assert evaluate(parse_gate("pass@1 >= 0.6"), tally, confidence=0.95).more_rows is None


def test_no_number_of_rows_settles_huge_scores_whose_interval_is_as_wide_as_floats_go():
    verdict = evaluate(
        parse_gate("mean >= 0.5"), tally_of([[1.7e308]] * 2 + [[-1.7e308]]), confidence=0.95
    )
    assert (verdict.outcome, verdict.more_rows) == ("inconclusive", None)


def test_it_says_how_many_runs_to_repeat():
    verdict = evaluate(parse_gate("mean >= 0.9"), tally_of([[1.0]] * 18 + [[UNKNOWN], [LOST]]))
    assert verdict.sentence() == ("1 (0.9 .. 1, 2 runs unknown)")
    verdict = evaluate(parse_gate("mean > 0.9"), tally_of([[1.0]] * 18 + [[UNKNOWN], [LOST]]))
    assert verdict.sentence().endswith("; repeat 2 runs to settle it")
    verdict = evaluate(parse_gate("cost_usd <= 1"), tally_of([[1.0], [UNKNOWN]]))
    assert verdict.sentence().endswith("; cost_usd of 1 run is not known")


def test_a_figure_does_not_read_as_the_threshold_that_it_misses():
    tally = tally_of([[29_999 / 30_000]])
    assert evaluate(parse_gate("mean >= 1"), tally).sentence() == "0.999966667"
    assert evaluate(parse_gate("mean >= 0.9"), tally).sentence() == "1"
    many = tally_of([[1.0]] * 300)
    assert evaluate(parse_gate("tokens <= 30000"), many).sentence() == "30,000"
    assert evaluate(parse_gate("mean == 0.3"), tally_of([[0.1 + 0.2]])).sentence() == "0.3"


def test_a_gate_on_each_row_is_one_on_the_lowest_and_names_those_below():
    rows = [[1.0] * 5, [1.0, 1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 0.0]]
    verdict = evaluate(parse_gate("each row >= 8/10"), tally_of(rows))
    assert (verdict.outcome, verdict.figure, verdict.low, verdict.high) == ("failed", 0.4, 0.4, 0.4)
    assert verdict.sentence() == "0.4; 1 of 3 rows below: row-1 2/5"
    assert evaluate(parse_gate("each row >= 2/5"), tally_of(rows)).outcome == "passed"
    many = evaluate(parse_gate("each row > 0"), tally_of([[0.0]] * 7))
    assert many.detail.startswith("7 of 7 rows below: row-0 0/1, row-1 0/1, ")
    assert many.detail.endswith(" and 2 more")


def test_a_gate_on_each_row_is_open_while_a_row_can_fall_below_or_reach_it():
    gate = parse_gate("each row >= 2/3")
    open_row = evaluate(gate, tally_of([[1.0, 1.0, UNKNOWN], [1.0, 0.0, UNKNOWN]]))
    assert (open_row.outcome, open_row.low, open_row.high) == pytest.approx(
        ("inconclusive", 1 / 3, 2 / 3)
    )
    assert open_row.figure == pytest.approx(1 / 2)
    assert "1 of 2 rows below: row-1 1/2" in open_row.sentence()
    for lost in (LOST, UNKNOWN):  # no result of one row can mend another
        assert outcome("each row >= 2/3", tally_of([[0.0, 0.0, lost], [1.0, 1.0, 1.0]])) == "failed"
    assert outcome("each row >= 2/3", tally_of([[1.0, 1.0, LOST]])) == "passed"


# --- baseline -----------------------------------------------------------------------------------


def test_a_baseline_gate_is_held_at_the_difference_of_opposite_bounds():
    here = tally_of([[1.0], [1.0], [UNKNOWN], [0.0]])
    there = tally_of([[1.0], [0.0], [0.0], [UNKNOWN]])
    point = {"baseline": there, "confidence": POINT_ESTIMATES}
    verdict = evaluate(parse_gate("mean - baseline >= 0"), here, **point)
    assert (verdict.figure, verdict.low, verdict.high) == (0.5, 0.0, 0.5)
    assert verdict.outcome == "passed"
    assert verdict.unknown == 2
    assert outcome("mean - baseline > 0", here, **point) == "inconclusive"
    assert outcome("pass@1 - baseline > 0.5", here, **point) == "failed"
    assert outcome("pass@1 - baseline > 0.5", here, baseline=there) == "passed"


def test_a_difference_fails_only_where_the_whole_interval_misses_the_threshold():
    right, wrong = [[1.0] * 5] * 20, [[0.0] * 5] * 4 + [[1.0] * 5] * 16
    gate = parse_gate("mean - baseline >= -0.02")
    luck = evaluate(gate, tally_of(wrong), baseline=tally_of(right))
    assert (luck.outcome, luck.figure) == ("passed", pytest.approx(-0.2))
    assert luck.low < -0.02 < luck.high
    assert luck.detail == "no fall shown: 20 rows say too little of how large one would be"
    assert luck.sensitivity is None
    assert evaluate(
        gate, tally_of(wrong), baseline=tally_of(right), confidence=POINT_ESTIMATES
    ).outcome == "failed"  # fmt: skip
    shown = evaluate(gate, tally_of([[0.0] * 5] * 20), baseline=tally_of(right))
    assert (shown.outcome, shown.detail) == ("failed", "")
    assert shown.high < -0.02
    better = evaluate(gate, tally_of(right), baseline=tally_of([[0.0] * 5] * 20))
    assert (better.outcome, better.detail) == ("passed", "holds")


@pytest.mark.parametrize("text", ["mean - baseline >= -0.02", "pass@5 - baseline == 0"])
def test_rows_that_are_too_few_to_show_anything_are_named(text: str):
    few, enough = (
        evaluate(parse_gate(text), tally_of([[0.0] * 5] * rows), baseline=tally_of([[1.0] * 5] * 5))
        for rows in (4, 5)
    )
    assert (few.outcome, enough.outcome) == ("passed", "failed")
    assert few.detail.endswith(" shown: 4 rows can show none")


def test_a_difference_that_passes_says_which_fall_would_have_been_shown():
    draw = random.Random(1)
    here, there = (
        [[float(draw.random() < 0.7) for _ in range(5)] for _ in range(20)] for _ in range(2)
    )
    gate = parse_gate("mean - baseline >= -0.02")
    verdict = evaluate(gate, tally_of(here), baseline=tally_of(there))
    assert verdict.outcome == "passed"
    assert 0.1 < verdict.sensitivity < 0.4
    words = f"no fall shown: these 20 rows x 5 would show one of {verdict.sensitivity:.2g}"
    assert words in verdict.sentence()
    assert "95% confidence" in verdict.sentence()
    assert re.search(r", about \d+ rows x [135] one of 0\.07$", verdict.detail)
    closer = evaluate(parse_gate("mean - baseline >= 0"), tally_of(here), baseline=tally_of(there))
    assert closer.sensitivity < verdict.sensitivity
    rise = evaluate(parse_gate("mean - baseline <= 0"), tally_of(here), baseline=tally_of(there))
    assert rise.detail.startswith("no rise shown: these 20 rows x 5")
    equal = evaluate(parse_gate("mean - baseline == 0"), tally_of(here), baseline=tally_of(there))
    assert (equal.outcome, equal.detail) == ("passed", "no difference shown")


def test_unknown_runs_leave_a_difference_open_only_where_they_could_show_a_fall():
    right = tally_of([[1.0]] * 20)
    gate = parse_gate("mean - baseline >= -0.02")
    few = evaluate(gate, tally_of([[UNKNOWN]] + [[1.0]] * 19), baseline=right)
    assert (few.outcome, few.unknown) == ("passed", 1)
    many = evaluate(gate, tally_of([[UNKNOWN]] * 12 + [[1.0]] * 8), baseline=right)
    assert (many.outcome, many.more_rows) == ("inconclusive", None)
    assert "repeat 12 runs to settle it" in many.sentence()
    none = evaluate(gate, tally_of([[UNKNOWN]] * 20), baseline=right)
    assert (none.outcome, none.figure) == ("inconclusive", None)


def test_a_baseline_gate_compares_matching_rows_at_this_sessions_threshold():
    here = tally_of([[0.6], [0.6], [0.0]], threshold=0.5, keys=["a", "b", "c"])
    there = tally_of([[0.0], [0.6]], threshold=1.0, keys=["b", "a"])
    verdict = evaluate(parse_gate("pass@1 - baseline == 0.5"), here, baseline=there)
    assert (verdict.outcome, verdict.rows) == ("passed", 2)


def test_a_baseline_without_these_rows_or_this_function_is_inconclusive():
    here, there = tally_of([[1.0]], keys=["a"]), tally_of([[1.0]], keys=["b"])
    verdict = evaluate(parse_gate("mean - baseline >= 0"), here, baseline=there)
    assert (verdict.outcome, verdict.sentence()) == (
        "inconclusive", "the baseline has none of these rows"
    )  # fmt: skip
    other = tally_of([[1.0]], keys=["a"], names=("g:other",))
    verdict = evaluate(parse_gate("mean - baseline >= 0"), here, baseline=other)
    assert "no eval function f:score" in verdict.sentence()
    with pytest.raises(GateError, match="no baseline"):
        evaluate(parse_gate("mean - baseline >= 0"), here)


def test_a_confidence_widens_a_paired_difference():
    draw = random.Random(2)
    there = [[float(draw.random() < 0.5) for _ in range(3)] for _ in range(60)]
    here = [[max(score, float(draw.random() < 0.3)) for score in row] for row in there]
    gate = parse_gate("mean - baseline > 0")
    sure = evaluate(gate, tally_of(here), baseline=tally_of(there), confidence=0.95)
    assert sure.outcome == "passed"
    assert 0 < sure.low < sure.figure < sure.high
    same = evaluate(gate, tally_of(there), baseline=tally_of(there), confidence=0.95)
    assert (same.outcome, same.figure) == ("inconclusive", 0.0)
    tie = parse_gate("mean - baseline >= -0.2")
    assert (
        evaluate(tie, tally_of(there), baseline=tally_of(there), confidence=0.95).outcome
        == "passed"
    )


def test_pass_intervals_of_a_verdict_are_those_of_the_summary():
    rows = [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]] * 8
    verdict = evaluate(parse_gate("pass@2 >= 0.5"), tally_of(rows), confidence=0.95)
    assert verdict.interval == unit_interval(np.array([1.0, 0.0, 1.0] * 8), k=2)


@pytest.mark.parametrize(("rows", "passing"), [(60, 50), (240, 200), (12, 10)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_mean_of_scores_of_0_and_1_is_pass_at_1_with_its_interval(rows, passing, confidence):
    draw = random.Random(rows)
    scores = [
        [1.0 if draw.random() < passing / rows else draw.choice([0.0, UNKNOWN]) for _ in range(3)]
        for _ in range(rows)
    ]
    for threshold in (0.7, 0.75, 0.8, 0.83, 0.85, 0.9):
        mean, passes = (
            evaluate(
                parse_gate(f"{metric} >= {threshold}"), tally_of(scores), confidence=confidence
            )
            for metric in ("mean", "pass@1")
        )
        assert replace(mean, gate=passes.gate, metric=passes.metric) == passes


def test_scores_beyond_0_and_1_have_the_interval_of_students_t():
    for rows, method in (
        ([[1.0, 0.0], [0.5, 1.0], [0.0, 0.0]] * 8, "agresti-coull (effective rows)"),
        ([[1.0, 0.0], [0.5, 1.2], [0.0, 0.0]] * 8, "t"),
        ([[1.0, 0.0], [0.5, -0.2], [0.0, 0.0]] * 8, "t"),
    ):
        found = evaluate(parse_gate("mean >= 0.5"), tally_of(rows), confidence=0.9)
        assert found.interval.method == method


def test_gates_on_runs_need_no_eval_function():
    tally = tally_of([[1.0], [1.0]], names=())
    assert outcome("tokens <= 200", tally) == "passed"
    assert outcome("errors == 0", tally) == "passed"
    with pytest.raises(GateError, match="one of none"):
        evaluate(parse_gate("mean >= 1"), tally)


def test_repeating_runs_is_not_said_to_settle_what_more_rows_are_needed_for():
    rows = [[1.0]] * 66 + [[0.0]] * 32 + [[UNKNOWN]] * 2
    gate = parse_gate("pass@1 >= 0.6")
    sentence = evaluate(gate, tally_of(rows), confidence=0.95).sentence()
    assert "; repeat 2 runs; about " in sentence
    assert sentence.endswith(" more rows would settle it")
    open_ = evaluate(gate, tally_of([[1.0], [1.0], [0.0], [UNKNOWN]])).sentence()
    assert open_.endswith("; repeat 1 run to settle it")


@pytest.mark.parametrize(
    ("compare", "low", "high", "outcome"),
    [
        (">=", 0.5, 0.6, "passed"),
        (">=", 0.4, 0.6, "inconclusive"),
        ("<", 0.5, 0.6, "failed"),
        ("==", 0.5, 0.5, "passed"),
        ("==", 0.5, 0.6, "inconclusive"),
        ("==", 0.4, 0.6, "inconclusive"),
        ("==", 0.6, 0.7, "failed"),
    ],
)
def test_a_gate_fails_where_it_holds_for_no_value_that_is_possible(compare, low, high, outcome):
    assert outcome_between(compare, 0.5, low, high) == outcome
