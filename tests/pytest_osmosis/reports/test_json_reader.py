"""A report read back is the result that it was written from."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from pytest_osmosis.features.breakdown.results import Breakdowns, breakdown_of
from pytest_osmosis.features.comparison.results import Change, Comparison, Count, Difference
from pytest_osmosis.features.comparison.section import BaselineReport
from pytest_osmosis.reports import json_writer as report
from pytest_osmosis.reports.json_models import EvalFnSummary, Report
from pytest_osmosis.reports.json_reader import UnreadableReport, read_result, read_row_indices
from pytest_osmosis.suite_results import Usage
from pytest_osmosis.verdicts import GateResult, Interval, Paired
from tests.support.made_results import EXACT, NASTY, result_of, suite_of

CORE = {
    "config": {"model": "m", "n_runs": 2, "pass_threshold": 0.5, "eval_fns": [EXACT]},
    "summary": {
        "total_rows": 1, "total_runs": 2, "total_tokens": 10, "total_duration_ms": 5,
        "eval_fns": {EXACT: {"mean": 0.5, "std": 0.5, "min": 0.0, "max": 1.0, "pass_at_1": 0.5}},
    },
    "rows": [
        {"row_index": 3, "runs": [
            {"run_index": 0, "success": True, "scores": {EXACT: 0.6}, "duration_ms": 1,
             "tokens": 5},
            {"run_index": 1, "success": True, "scores": {EXACT: 0.4}, "duration_ms": 2.25,
             "tokens": 5},
        ]}
    ],
}  # fmt: skip


def test_what_was_written_is_read(tmp_path):
    suites = [
        suite_of([[1.0, 0.5], ["503", None]], answer=NASTY, settings={"seed": 3}),
        suite_of([[0.0]], name="other.jsonl"),
    ]
    for written in (result_of(suites[0]), result_of(*suites)):
        report.write(written, tmp_path / "out.json")
        read = read_result(tmp_path / "out.json")
        assert read.duration_ms == written.duration_ms
        for ours, theirs in zip(read.suites, written.suites, strict=True):
            assert ours.rows == theirs.rows
            assert ours.functions == theirs.functions
            assert ours.info == theirs.info
            assert ours.selected == theirs.selected


@pytest.mark.parametrize("answer", [NASTY, "\ud800 \x9b31m", "\x9b31m \x7f \u2028 \U0001f600 \\"])
def test_any_text_is_written_in_ascii_and_on_lines_of_its_own(tmp_path, answer):
    report.write(result_of(suite_of([[0.25]], answer=answer)), tmp_path / "out.json")
    text = (tmp_path / "out.json").read_bytes().decode("ascii")
    assert json.loads(text)["rows"][0]["runs"][0]["answer"] == answer.replace("\ud800", "\ufffd")


def test_a_run_is_a_line_of_a_report(tmp_path):
    said = '{"run_index": 7}, {"row_index": 8}, \n'
    report.write(result_of(suite_of([[1.0, 0.5], [0.0, 0.25]], answer=said)), tmp_path / "out.json")
    text = (tmp_path / "out.json").read_text()
    assert not [line for line in text.splitlines() if line.endswith(" ")]
    runs = [line.strip() for line in text.splitlines() if '"run_index"' in line]
    document = json.loads(text)
    assert [json.JSONDecoder().raw_decode(line)[0] for line in runs] == [
        run for row in document["rows"] for run in row["runs"]
    ]
    assert text.splitlines()[:5] == [
        "{", '  "schema_version": 1,', '  "config": {', '    "model": "calc-7b",',
        '    "n_runs": 2,',
    ]  # fmt: skip


@pytest.mark.parametrize("several", [False, True])
def test_what_is_written_is_what_the_models_define_field_by_field(several):
    interval = Interval(0.1, 0.9, "t", 0.95)
    gate = GateResult(
        "mean >= 0.5", "mean", EXACT, ">=", 0.5, "failed", 0.4, 0.1, math.inf, interval, 2, 1, 9,
        confidence=0.95, detail="row-0",
    )  # fmt: skip
    change = Change(
        "row-0", 0, 0, Count(1, 3, 0), Count(3, 3, 0), 1 / 3, 1.0, 0.4, "regressed", "391", None
    )
    paired = Difference("mean", 0.5, 1.0, Paired(-0.5, interval, 0.04, "agresti-min"))
    baseline = BaselineReport(
        (Comparison(EXACT, 2, (paired,), (change,), 1, 0),), ("n",), "old.json"
    )
    suite = suite_of([[1.0, 0.5], ["503", None]], settings={"seed": 3})
    by = Breakdowns((breakdown_of(suite, "level", {"1": [0], "2": [1]}, confidence=0.95),))
    other = suite_of([[0.0]], name="other", companion_of="data.jsonl")
    whole = replace(
        suite, verdicts=(gate,), sections={"baseline": baseline, "by": by}, companion=other,
        repeated=Usage(1, 5, 0, 0.5),
    )  # fmt: skip
    suites = [whole, suite_of([[0.25]], name="more.jsonl")] if several else [whole]
    git = {"commit": "4f1c", "branch": None, "dirty": None}
    environment = {"versions": {"a": "1"}, "platform": "x", "git": git, "command_line": "pytest"}
    result = result_of(*suites, environment=environment)
    document = report.document_of(result)
    assert Report.model_validate(document).model_dump(by_alias=True) == document


def test_the_contracted_core_is_enough(tmp_path):
    (tmp_path / "core.json").write_text(json.dumps(CORE))
    [suite] = read_result(tmp_path / "core.json").suites
    assert [run.passed for run in suite.rows[0].runs] == [True, False]
    assert [run.duration_ms for run in suite.rows[0].runs] == [1, 2]  # of an earlier version
    required = {name for name, each in EvalFnSummary.model_fields.items() if each.is_required()}
    assert required == {"mean", "std", "min", "max"}  # an earlier version has no later metric
    assert suite.functions[0].mean == 0.5
    assert suite.complete


def test_fields_that_it_does_not_know_are_no_obstacle(tmp_path):
    later = {**CORE, "schema_version": 9, "weather": "fine"}
    (tmp_path / "later.json").write_text(json.dumps(later))
    assert len(read_result(tmp_path / "later.json").suites) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a JSON report: Expecting value"),
        ("[]", "not an evaluation's report: the whole is [] and should be an object"),
        ("{}", "not an evaluation's report: config is missing"),
        ('{"summary": 1, "rows": 2}', "not an evaluation's report: "),
        (json.dumps(CORE).replace("0.6", "NaN"), "not a JSON report: NaN is no number in JSON"),
        ("[" * 100_000, "not a JSON report: "),
    ],
)
def test_what_is_no_report_is_reported_in_a_sentence(tmp_path, text, why):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(UnreadableReport) as raised:
        read_result(path)
    assert str(raised.value).startswith(f"{path}: {why}")


def run(**changed):
    return {**CORE["rows"][0]["runs"][0], **changed}


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"config": {**CORE["config"], "n_runs": 0}}, "config.n_runs is 0 and should be greater"),
        ({"config": {**CORE["config"], "n_runs": 10**9}}, "config.n_runs is 1000000000 and"),
        ({"config": {**CORE["config"], "n_runs": "2"}}, 'n_runs is "2" and should be a valid'),
        ({"config": {**CORE["config"], "eval_fns": EXACT}}, "should be a valid list"),
        ({"config": {**CORE["config"], "model": None}}, "config.model is null and should"),
        ({"rows": [{"row_index": -1, "runs": []}]}, "rows[0].row_index is -1 and should be"),
        ({"rows": [{"row_index": 3, "runs": [run(), run()]}]}, "row 3, run 0: is there twice"),
        ({"rows": [{"row_index": 3, "runs": [run(run_index=2)]}]}, "there are 2 runs a row"),
        ({"rows": [{"row_index": 3, "runs": [run(run_index=-1)]}]}, "run_index is -1 and"),
        ({"rows": [{"row_index": 3, "runs": [run(duration_ms="x")]}]}, 'duration_ms is "x" and'),
        ({"rows": [{"row_index": 3, "runs": [run(tokens=0.5)]}]}, "runs[0].tokens is 0.5 and"),
        ({"rows": [{"row_index": 3, "runs": [run(scores={EXACT: 10**400})]}]}, "a valid number"),
        ({"rows": [{"row_index": 3, "runs": [run(scores=[1])]}]}, "is [1] and should be an"),
        ({"rows": [1]}, "rows[0] is 1 and should be an object"),
        ({"gates": [{"suite": "a", "gate": "b", "outcome": "ok"}]}, "outcome is \"ok\" and should"),
        ({"environment": {"versions": {}}}, "environment.platform is missing"),
        ({"baseline_models": [{"name": "a"}]}, "baseline_models[0].config is missing"),
        (
            {"suites": [{**CORE, "name": "a"}, {**CORE, "name": "a"}]},
            "suites[1].name 'a' is there twice",
        ),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named(tmp_path, damage, why):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**CORE, **damage}))
    with pytest.raises(UnreadableReport) as raised:
        read_result(path)
    assert str(raised.value).startswith(f"{path}: not an evaluation's report: ")
    assert why in str(raised.value)


def test_a_report_that_is_not_there_is_reported_too(tmp_path):
    with pytest.raises(UnreadableReport, match="cannot be read: No such file or directory"):
        read_result(tmp_path / "r.json")


def rows_of(*rows):
    return {**CORE, "rows": [{"row_index": at, "suite": name, "runs": []} for at, name in rows]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "not an evaluation's report: config is missing"),
        (rows_of((-1, None)), "not an evaluation's report: rows[0].row_index is -1"),
        (rows_of(), "has no row"),
        (rows_of((1, "a"), (2, "b")), "has several evaluations, with different rows"),
    ],
)
def test_rows_are_only_those_of_a_report(tmp_path, document, message):
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(UnreadableReport) as raised:
        read_row_indices(tmp_path / "x.json")
    assert str(raised.value).startswith(f"{tmp_path / 'x.json'}: {message}")


def test_the_rows_of_a_report_are_given_in_order_and_once(tmp_path):
    rows = [(index, suite) for suite in "ab" for index in (7, 3, 4)]
    (tmp_path / "x.json").write_text(json.dumps(rows_of(*rows)))
    assert read_row_indices(tmp_path / "x.json") == [3, 4, 7]
