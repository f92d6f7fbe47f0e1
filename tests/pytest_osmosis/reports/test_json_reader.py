"""A report read back is the result that it was written from."""

from __future__ import annotations

import json

import pytest

from pytest_osmosis.reports import json_writer as report
from pytest_osmosis.reports.json_reader import UnreadableReport, read_report, read_row_indices
from tests.made_results import EXACT, NASTY, result_of, suite_of

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
        read = read_report(tmp_path / "out.json")
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
    document = json.loads(text)
    assert document["rows"][0]["runs"][0]["answer"] == answer
    assert text == json.dumps(document, indent=2) + "\n"


def test_the_contracted_core_is_enough(tmp_path):
    (tmp_path / "core.json").write_text(json.dumps(CORE))
    [suite] = read_report(tmp_path / "core.json").suites
    assert [run.passed for run in suite.rows[0].runs] == [True, False]
    assert [run.duration_ms for run in suite.rows[0].runs] == [1, 2]  # of an earlier version
    assert suite.functions[0].mean == 0.5
    assert suite.complete


def test_fields_that_it_does_not_know_are_no_obstacle(tmp_path):
    later = {**CORE, "schema_version": 9, "weather": "fine"}
    (tmp_path / "later.json").write_text(json.dumps(later))
    assert len(read_report(tmp_path / "later.json").suites) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a JSON report: Expecting value"),
        ("[]", "not an evaluation's report: expected an object, not list"),
        ("{}", "not an evaluation's report: 'summary' is missing"),
        ('{"summary": 1, "rows": 2}', "not an evaluation's report: "),
        (json.dumps(CORE).replace("0.6", "NaN"), "not a JSON report: NaN is no number in JSON"),
        ("[" * 100_000, "not a JSON report: "),
    ],
)
def test_what_is_no_report_is_told_in_a_sentence(tmp_path, text, why):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(UnreadableReport) as told:
        read_report(path)
    assert str(told.value).startswith(f"{path}: {why}")


def run(**changed):
    return {**CORE["rows"][0]["runs"][0], **changed}


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"config": {**CORE["config"], "n_runs": 0}}, "'n_runs' is 0, and no number of runs"),
        ({"config": {**CORE["config"], "n_runs": 10**9}}, "'n_runs' is 1000000000, and no"),
        ({"config": {**CORE["config"], "n_runs": "2"}}, "'n_runs' is \"2\", expected a finite"),
        ({"config": {**CORE["config"], "eval_fns": EXACT}}, "expected a list of texts"),
        ({"config": {**CORE["config"], "model": None}}, "'model' is null"),
        ({"rows": [{"row_index": -1, "runs": []}]}, "'row_index' is -1, expected a whole number"),
        ({"rows": [{"row_index": 3, "runs": [run(), run()]}]}, "row 3, run 0: is there twice"),
        ({"rows": [{"row_index": 3, "runs": [run(run_index=2)]}]}, "there are 2 runs a row"),
        ({"rows": [{"row_index": 3, "runs": [run(run_index=-1)]}]}, "'run_index' is -1"),
        ({"rows": [{"row_index": 3, "runs": [run(duration_ms="x")]}]}, "row 3, run 0: 'duration"),
        ({"rows": [{"row_index": 3, "runs": [run(tokens=0.5)]}]}, "row 3, run 0: 'tokens' is 0.5"),
        ({"rows": [{"row_index": 3, "runs": [run(scores={EXACT: 10**400})]}]}, "a finite number"),
        ({"rows": [{"row_index": 3, "runs": [run(scores=[1])]}]}, "expected an object"),
        ({"rows": [1]}, "'rows' is [1], expected a list of objects"),
        ({"environment": {"versions": {}}}, "'platform' is missing"),
        ({"baseline_models": [{"name": "a"}]}, "'baseline_of' is missing"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named(tmp_path, damage, why):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**CORE, **damage}))
    with pytest.raises(UnreadableReport) as told:
        read_report(path)
    assert str(told.value).startswith(f"{path}: not an evaluation's report: ")
    assert why in str(told.value)


def test_a_report_that_is_not_there_is_told_too(tmp_path):
    with pytest.raises(UnreadableReport, match="cannot be read: No such file or directory"):
        read_report(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "not an evaluation's report: expected an object, not list"),
        ({}, "not an evaluation's report: "),
        ({"rows": [{"row_index": -1}]}, "not an evaluation's report: "),
        ({"rows": []}, "has no row"),
        (
            {"rows": [{"row_index": 1, "suite": "a"}, {"row_index": 2, "suite": "b"}]},
            "has several evaluations, with different rows",
        ),
    ],
)
def test_rows_are_only_those_of_a_report(tmp_path, document, told):
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(UnreadableReport) as raised:
        read_row_indices(tmp_path / "x.json")
    assert str(raised.value).startswith(f"{tmp_path / 'x.json'}: {told}")


def test_the_rows_of_a_report_are_given_in_order_and_once(tmp_path):
    rows = [{"row_index": index, "suite": suite} for suite in "ab" for index in (7, 3, 4)]
    (tmp_path / "x.json").write_text(json.dumps({"rows": rows}))
    assert read_row_indices(tmp_path / "x.json") == [3, 4, 7]
