"""A suite's figures: the same in summaries and gates, whatever runs are missing."""

from __future__ import annotations

import html
import re
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import GateError, parse_gate
from pytest_osmosis.analysis.metrics import METRICS, Definition, Metric, summary_metrics
from pytest_osmosis.analysis.score_table import score_table_of
from pytest_osmosis.features.breakdown.results import breakdown_of
from pytest_osmosis.features.comparison.compare import compare
from pytest_osmosis.features.html.report import render as render_html
from pytest_osmosis.features.markdown.report import render as render_markdown
from pytest_osmosis.outcomes import SKIPPED
from pytest_osmosis.reports.json_models import EvalFnSummary
from pytest_osmosis.reports.json_reader import checked
from pytest_osmosis.reports.json_reader import result_of as result_of_json
from pytest_osmosis.reports.json_writer import document_of
from pytest_osmosis.reports.summary import summary
from pytest_osmosis.run_result import RunResult
from pytest_osmosis.suite_results import SuiteResult, Usage
from tests.support.made_results import EXACT, info, result_of, suite_of

SUITES = {
    "complete": [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]],
    "cut short": [[1.0, None, None, None, None], [0.0, 0.0, 1.0, None, None]],
    "a row never started": [[1.0, 0.5], [0.0, 0.25], [None, None]],
    "errors and runs not started": [[1.0, "overloaded", None], ["overloaded", 0.5, 1.0]],
}
RUNS = list(suite_of([[1.0, 1.0, 0.0, "overloaded"]]).runs)


@pytest.mark.parametrize("rows", SUITES.values(), ids=SUITES)
def test_a_gate_is_held_at_the_value_that_the_summary_shows(rows):
    suite = suite_of(rows)
    [function] = suite.functions
    table = score_table_of(suite)
    for metric in summary_metrics(suite.info.n):
        if metric.definition.in_gates:
            found = evaluate(parse_gate(f"{metric.label} >= 0"), table)
            assert found.figure == function[metric.label]
            assert found.figure is None or found.low <= found.figure <= found.high


@pytest.mark.parametrize("rows", [*SUITES.values(), [[1e300, -1e300], [1e300, 1.0]]])
def test_users_code_that_makes_numpy_raise_changes_no_figure(rows):
    def found():
        table, other = (score_table_of(suite_of(each)) for each in (rows, rows[::-1]))
        labels = [name + "1" * each.takes_k for name, each in METRICS.items() if each.in_gates]
        gates = [parse_gate(f"{label} >= 0") for label in labels]
        gates += [parse_gate(f"{label} - baseline >= 0") for label in ("mean", "pass@1")]
        judged = [evaluate(gate, table, baseline=other, confidence=0.9) for gate in gates]
        return suite_of(rows).functions, compare(table, other), judged

    expected = found()
    with np.errstate(all="raise"):
        assert found() == expected


def test_figures_are_numbers_of_python_and_a_zero_has_no_sign():
    suite = suite_of([[-0.0, 0.0, -0.0], [-0.0, -0.0, -0.0], [0.0, -0.0, "overloaded"]])
    table = score_table_of(suite)
    gates = [parse_gate("mean >= 0"), parse_gate("min >= 0"), parse_gate("mean - baseline >= 0")]
    judged = [evaluate(gate, table, baseline=table, confidence=0.9) for gate in gates]
    parts = [*suite.functions, compare(table, table), *judged]
    values = list(_values([asdict(each) for each in parts]))
    assert {type(value) for value in values} <= {float, int, bool, str, type(None)}
    assert not [value for value in values if str(value) in {"-0.0", "nan"}]
    assert values.count(0.0) > 10


def _values(value):
    if not isinstance(value, (dict, list, tuple)):
        yield value
        return
    for each in value.values() if isinstance(value, dict) else value:
        yield from _values(each)


def test_runs_that_were_never_started_are_left_out_of_every_figure():
    suite = suite_of(SUITES["cut short"])
    [function] = suite.functions
    assert function.mean == function["pass@1"] == pytest.approx(2 / 3)
    assert function["pass@3"] == 1.0
    assert function["pass@5"] is function["pass^5"] is None
    assert (function["min"], function["max"]) == (0.0, 1.0)
    assert (function.scored, function.missing) == (4, 0)


def test_a_run_that_the_endpoint_failed_is_left_out_of_every_figure():
    suite = suite_of(SUITES["errors and runs not started"])
    [function] = suite.functions
    assert (function.mean, function["pass@1"]) == pytest.approx((7 / 8, 3 / 4))
    assert (function["min"], function["pass@3"]) == (0.5, None)
    assert (function.scored, function.missing) == (3, 2)
    notes = summary(result_of(suite))
    assert "2 runs without a score, left out of every figure" in notes
    assert "pass@3 over 0 of 2 rows: the others have too few runs that count" in notes


def test_one_error_and_one_wrong_answer_of_four_rows_are_a_mean_of_three():
    suite = suite_of([[1.0], [1.0], [0.0], ["500"]])
    [function] = suite.functions
    assert (function.mean, function.scored, function.missing) == (pytest.approx(2 / 3), 3, 1)
    assert summary(result_of(suite))[1].split()[-1] == "3/4"


JUDGED = {"error_type": "eval_fn", "error_kind": "judge_failed", "judge_errors": {"g": "x"}}


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"error_type": "provider", "error_kind": "overloaded"}, {}),
        ({"error_type": "provider", "error_kind": "auth"}, {}),
        ({"error_type": "worker_lost"}, {}),
        ({"error_type": "internal"}, {}),
        ({"error_type": "agent"}, {"f": 0.0, "g": 0.0}),
        ({"error_type": "agent", "error_kind": "bad_request"}, {"f": 0.0, "g": 0.0}),
        ({"error_type": "timeout"}, {"f": 0.0, "g": 0.0}),
        ({"error_type": "eval_fn", "scores": {"g": 0.5}}, {"f": 0.0, "g": 0.5}),
        ({"error_type": "eval_fn", "error_kind": SKIPPED}, {}),
        ({**JUDGED}, {"f": 0.0}),
        ({**JUDGED, "judge_errors": {}}, {}),  # as earlier versions wrote it
        ({**JUDGED, "scores": {"f": 1.0}}, {"f": 1.0}),
    ],
)  # fmt: skip
def test_whose_fault_it_is_decides_what_a_run_counts_for(fields, counts):
    settings = info(n=2, eval_fns=("f", "g"))
    usual = RunResult("data.jsonl", 0, 0, success=True, passed=True, scores={"f": 1.0, "g": 1.0})
    run = replace(usual, **{"run_index": 1, "passed": False, "scores": {}, **fields})
    functions = aggregate(settings, [usual, run], selected=2).functions
    found = {each.name: each.mean * 2.0 - 1.0 for each in functions if each.scored == 2}
    assert found == counts
    assert [each.missing for each in functions] == [int(name not in counts) for name in "fg"]


def test_a_gate_counts_the_scores_that_the_summary_counts():
    broken = replace(RUNS[1], success=False, scores={}, error_type="agent")
    suite = aggregate(info(n=4), [RUNS[0], broken, *RUNS[2:]], selected=4)
    [function] = suite.functions
    table = score_table_of(suite)
    assert (function.scored, function.missing) == (3, 1)
    assert evaluate(parse_gate("scored >= 0"), table).figure == 3 / 4
    assert evaluate(parse_gate(f"errors[{EXACT}] >= 0"), table).figure == 2


def test_what_runs_used_before_they_were_repeated_is_no_part_of_what_the_others_used():
    nothing = replace(RUNS[3], tokens=0, cost_usd=None)
    lost = replace(RUNS[3], tokens=None, cost_usd=None)
    before = [replace(RUNS[2], tokens=30, cost_usd=0.5), nothing, lost]
    suite = aggregate(info(n=4), RUNS, selected=4, repeated=before)
    assert suite.used == aggregate(info(n=4), RUNS, selected=4).used
    assert suite.repeated == Usage(2, 30, 1, 0.5, 1)
    result = result_of(suite)
    line = "2 runs before they were repeated: 30 tokens (unknown for 1 run), $0.5000 (unknown for"
    for text in (" ".join(summary(result)), render_html(result), render_markdown(result)):
        assert line in " ".join(html.unescape(text).split())
    [read] = result_of_json(checked(document_of(result))).suites
    assert (read.used, read.repeated) == (suite.used, suite.repeated)


def test_a_run_whose_calls_were_not_answered_cost_nothing_and_a_lost_one_is_not_known():
    unanswered = replace(RUNS[3], tokens=0, llm_calls=0, cost_usd=None)
    gate = parse_gate("cost_usd <= 1")
    suite = aggregate(info(n=4), [*RUNS[:3], unanswered], selected=4)
    assert suite.used.unknown_cost == 0
    assert evaluate(gate, score_table_of(suite)).sentence() == "0.003"
    lost = replace(unanswered, error_type="worker_lost", tokens=None)
    suite = aggregate(info(n=4), [*RUNS[:3], lost], selected=4)
    assert suite.used.unknown_cost == evaluate(gate, score_table_of(suite)).unknown == 1


def test_a_run_whose_duration_is_not_known_is_in_no_figure_of_durations():
    lost = replace(RUNS[0], error_type="worker_lost", row_id=None, duration_ms=0)
    runs = [lost, *(replace(run, row_id="a") for run in RUNS[1:])]
    suite = aggregate(info(n=4), runs, selected=4)
    assert suite.rows[0].row_id == "a"
    found = evaluate(parse_gate("p95_duration_s < 0.1"), score_table_of(suite))
    assert (found.figure, found.unknown) == (0.45, 1)
    page = render_html(result_of(aggregate(info(n=2), runs[:2], selected=2)))
    assert page.count("0.45 s") == 2  # the median and the longest


def test_where_no_run_has_a_score_there_are_no_figures():
    suite = suite_of([["overloaded"] * 3, ["overloaded"] * 3])
    [function] = suite.functions
    assert {figure.value for figure in function.figures.values()} == {None}
    assert {figure.interval for figure in function.figures.values()} == {None}
    assert (function.scored, function.missing) == (0, 6)
    fields = document_of(result_of(suite))["summary"]["eval_fns"][EXACT]
    assert fields["mean"] is fields["pass_at_3"] is None
    assert fields["intervals"] == {}
    header, cells, *notes = summary(result_of(suite))
    assert "6 runs without a score: there are no figures" in notes
    assert header.split()[-1] == "scored"
    assert cells.split() == [EXACT, *"-----", "0/6"]
    page = re.sub(r"(?s)<script.*?</script>", "", render_html(result_of(suite)))
    for text in (render_markdown(result_of(suite)), page):
        assert "0.000" not in text and "Lowest" not in text
    found = evaluate(parse_gate("pass@1 >= 0.5"), score_table_of(suite))
    assert (found.outcome, found.figure, found.low, found.high) == ("inconclusive", None, 0.0, 1.0)


def test_a_gate_on_more_runs_than_any_row_has_says_that_there_is_no_figure():
    suite = replace(suite_of([[1.0], [0.0]]), info=info(n=3))
    table = score_table_of(aggregate(suite.info, suite.runs, selected=6))
    found = evaluate(parse_gate("pass@3 >= 0.6"), table)
    assert (found.outcome, found.figure, found.unknown) == ("inconclusive", None, 4)
    assert found.sentence().startswith("unknown: no row has 3 runs with a score; repeat 4 runs")


def test_agents_that_failed_count_as_zero_also_where_every_one_did():
    made = suite_of([[0.0, 0.0]])
    runs = [
        replace(run, success=False, scores={}, error="KeyError: 'x'", error_type="agent")
        for run in made.rows[0].runs
    ]
    suite = aggregate(made.info, runs, selected=2)
    assert suite.functions[0].mean == 0.0
    found = evaluate(parse_gate("mean >= 0.5"), score_table_of(suite))
    assert (found.outcome, found.figure) == ("failed", 0.0)


def recorded(rows: list[list[float | None]], **thresholds: float) -> SuiteResult:
    """A suite of which some runs have recorded `turns`; the others have not."""
    made = suite_of([[1.0] * len(row) for row in rows])
    runs = [
        replace(run, scores={**run.scores, "turns": score}, thresholds=thresholds)
        if (score := rows[run.row_index][run.run_index]) is not None
        else run
        for row in made.rows
        for run in row.runs
    ]
    return aggregate(made.info, runs, selected=len(runs), confidence=0.95)


def test_a_recorded_score_has_the_figures_of_the_runs_that_recorded_it():
    suite = recorded([[2.0, None], [4.0, 6.0], [None, None]])
    _, turns = suite.functions
    assert (turns.mean, turns["min"], turns["max"], turns["std"]) == pytest.approx(
        (3.5, 2.0, 6.0, (8 / 3) ** 0.5)
    )
    assert (turns.scored, turns.missing, turns.is_recorded) == (3, 3, True)
    assert [*turns.figures] == ["mean", "std", "min", "max"]
    table = score_table_of(suite)
    found = evaluate(parse_gate("mean[turns] >= 3"), table)
    assert (found.outcome, found.figure, found.low, found.high) == ("passed", 3.5, 3.5, 3.5)
    found = evaluate(parse_gate("pass@1[turns] >= 0.5"), table)
    assert (found.outcome, found.figure) == ("inconclusive", None)
    assert found.sentence().startswith("turns has no pass threshold")
    again = result_of_json(checked(document_of(result_of(suite))))
    assert again.suites[0].functions == suite.functions


def test_a_recorded_score_with_a_threshold_has_pass_at_k():
    _, turns = recorded([[2.0, None], [4.0, 6.0]], turns=3.0).functions
    assert turns["pass@1"] == 0.5
    assert turns.pass_threshold == 3.0


def test_only_rows_that_recorded_a_score_on_both_sides_are_compared():
    here = score_table_of(recorded([[2.0, None], [4.0, 6.0], [None, None]]))
    there = score_table_of(recorded([[None, None], [5.0, 5.0], [1.0, 1.0]]))
    _, turns = compare(here, there).comparisons
    assert (turns.eval_fn, turns.rows) == ("turns", 1)
    assert [(each.metric, each.current, each.baseline) for each in turns.differences] == [
        ("mean", 5.0, 5.0)
    ]
    gate = parse_gate("mean[turns] - baseline >= 0")
    assert evaluate(gate, here, baseline=there).figure == 0.0


def test_every_metric_of_the_table_is_where_its_entry_says():
    suite = suite_of(SUITES["complete"])
    [function] = suite.functions
    fields = document_of(result_of(suite))["summary"]["eval_fns"][EXACT]
    header = summary(result_of(suite))[0]
    for metric in summary_metrics(3):
        assert fields[metric.field] == function[metric.label]
        assert (metric.field in fields["intervals"]) == bool(metric.definition.interval)
    assert header.split() == [
        "eval", "function", "mean", "95%", "interval", "pass@1", "pass@3", "pass^3", "scored"
    ]  # fmt: skip
    with pytest.raises(GateError) as unknown:
        parse_gate("quux >= 1")
    for name, definition in METRICS.items():
        if name.endswith(")"):
            continue  # SUMMARY(NUMBER)
        assert (f" {name}" in str(unknown.value)) == definition.in_gates
    assert set(EvalFnSummary.model_fields) <= set(fields)
    patterns = EvalFnSummary.model_json_schema()["patternProperties"]
    by_k = set(fields) - set(EvalFnSummary.model_fields)
    assert all(any(re.search(each, field) for each in patterns) for field in by_k)


def test_an_entry_of_the_table_is_all_that_a_further_metric_needs(monkeypatch: pytest.MonkeyPatch):
    best = Definition(
        name="best@", field="best_at_{k}", takes_k=True, in_summary=True, in_tables="largest k",
        of_rows=lambda scores, k: scores.highest, unit_scores=True, interval="mean",
    )  # fmt: skip
    monkeypatch.setitem(METRICS, best.name, best)
    suite = suite_of(SUITES["complete"])
    result = result_of(suite)
    fields = document_of(result)["summary"]["eval_fns"][EXACT]
    assert fields["best_at_3"] == fields["intervals"]["best_at_3"]["value"] == 2 / 3
    assert "best@3 " in summary(result)[0] and "best" in render_markdown(result)
    table = score_table_of(suite)
    [compared] = compare(table, table).comparisons
    assert "best@3" in [each.metric for each in compared.differences]
    gate = replace(parse_gate("mean >= 0.6"), metric=Metric("best@", 3))
    assert evaluate(gate, table).outcome == "passed"


def test_a_narrow_summary_leaves_out_the_middle_k_of_every_metric_that_takes_one(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(METRICS, "pass^", replace(METRICS["pass^"], in_tables="yes"))
    result = result_of(suite_of([[1.0, 0.0] * 6]))

    def ks(width: int) -> dict[str, list[int]]:
        words = summary(result, width=width)[0].split()
        return {
            name: [int(word.removeprefix(name)) for word in words if word.startswith(name)]
            for name in ("pass@", "pass^")
        }

    assert ks(200) == {"pass@": [1, 3, 5, 10, 12], "pass^": [1, 3, 5, 10, 12]}
    assert ks(100) == {"pass@": [1, 3, 5, 12], "pass^": [1, 3, 12]}
    assert ks(80) == {"pass@": [1, 12], "pass^": [1, 12]}


_RUNS = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0]), st.just("overloaded"))


@given(st.lists(st.lists(_RUNS, min_size=3, max_size=3), min_size=1, max_size=6), st.data())
def test_figures_beside_runs_that_the_endpoint_failed_are_those_without_these_runs(rows, data):
    """Of summaries, gates, comparisons, columns and reports that are read back."""
    without = [[None if each == "overloaded" else each for each in row] for row in rows]
    failed, clean = (
        aggregate(made.info, made.runs, selected=3 * len(rows), confidence=0.9)
        for made in (suite_of(rows), suite_of(without))
    )
    other = suite_of([[data.draw(st.sampled_from([0.0, 1.0])) for _ in row] for row in rows])
    assert _figures(failed) == _figures(clean)
    scores, fewer = score_table_of(failed), score_table_of(clean)
    for metric in summary_metrics(3):
        if metric.definition.in_gates and metric.definition.eval_fn == "one":
            gate = parse_gate(f"{metric.label} >= 0.5")
            assert evaluate(gate, scores).figure == evaluate(gate, fewer).figure
    there = score_table_of(other)
    assert compare(scores, there).comparisons == _ended(compare(fewer, there).comparisons, failed)
    read = result_of_json(checked(document_of(result_of(failed)))).suites[0]
    assert [each.value for each in read.functions[0].figures.values()] == [
        each.value for each in failed.functions[0].figures.values()
    ]
    places = {"even": range(0, len(rows), 2), "odd": range(1, len(rows), 2)}
    for one, two in zip(*(breakdown_of(each, "c", places).values for each in (failed, clean)),
                        strict=True):  # fmt: skip
        assert _figures(one) == _figures(two)


def _figures(suite: Any) -> Any:
    return [(each.figures, each.scored) for each in suite.functions]


def _ended(comparisons: Any, failed: SuiteResult) -> Any:
    """The comparisons, with how many runs of each row ended without a score."""
    lost = {row.row_index: sum(run.error is not None for run in row.runs) for row in failed.rows}
    return tuple(
        replace(
            each,
            changes=tuple(
                replace(one, current=replace(one.current, unknown=lost[one.row_index]))
                for one in each.changes
            ),
        )
        for each in comparisons
    )
