"""`pytest_osmosis.read_report`: what a report says, as records and as tables."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_osmosis import read_report
from pytest_osmosis.reports.json_reader import UnreadableReport
from tests.support.endpoints import Endpoint
from tests.support.project import Project

REWARDS = """
def exact(solution_str, ground_truth, extra_info):
    return {"score": solution_str == ground_truth, "reason": f"it said {solution_str}"}


def length(solution_str, ground_truth, extra_info):
    return len(solution_str)
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    with Endpoint(
        {"a": "a", "b": "no", "c": b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"}
    ) as asked:
        project = Project(pytester, asked)
        project.write("rewards.py", REWARDS)
        rows = {"a": "one", "b": "two", "c": "three"}
        project.rows(*({"user_prompt": a, "ground_truth": a, "id": b} for a, b in rows.items()))
        project.run("--n=2", "--eval-fn=rewards:length", eval_fn="rewards:exact")
    return project


def test_a_report_has_rows_runs_scores_and_calls(project: Project):
    read = read_report(project.path / "out.json")
    assert read.report.config.model == "m"
    assert read.report.summary.eval_fns["rewards:exact"].mean == pytest.approx(1 / 3)
    assert [(row.row_id, row.user_prompt, row.ground_truth, row.runs, row.passed)
            for row in read.rows] == [
        ("one", "a", "a", 2, 2), ("two", "b", "b", 2, 0), ("three", "c", "c", 2, 0),
    ]  # fmt: skip
    assert [(run.row_index, run.run_index, run.outcome, run.tokens) for run in read.runs] == [
        (0, 0, "passed", 15), (0, 1, "passed", 15), (1, 0, "below", 15), (1, 1, "below", 15),
        (2, 0, "raised", 0), (2, 1, "raised", 0),
    ]  # fmt: skip
    found = [
        (each.row_index, each.run_index, each.eval_fn, each.score, each.passed, each.reason)
        for each in read.scores
    ]
    assert found[:2] == [
        (0, 0, "rewards:exact", 1.0, True, "it said a"), (0, 0, "rewards:length", 1.0, True, None),
    ]  # fmt: skip
    assert found[4:6] == [
        (1, 0, "rewards:exact", 0.0, False, "it said no"),
        (1, 0, "rewards:length", 2.0, True, None),
    ]  # fmt: skip
    assert len(found) == 8
    calls = [(call.row_index, call.run_index, call.call_index) for call in read.calls]
    assert calls == [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)]
    assert (read.calls[0].model, read.calls[0].total_tokens) == ("m", 15)


def test_tables_have_a_line_a_record(project: Project):
    read = read_report(str(project.path / "out.json"))
    runs = read.to_arrow().to_pylist()
    assert [line["score[rewards:length]"] for line in runs] == [1, 1, 2, 2, None, None]
    assert runs[0]["user_prompt"] == "a" and runs[0]["reason[rewards:exact]"] == "it said a"
    for records in (read.rows, read.scores, read.calls):
        assert records.to_arrow().to_pylist() == [each.model_dump() for each in records]
    hidden = {"scores", "reasons", "eval_errors", "judge_errors", "rubrics"}
    dumped = [each.model_dump(exclude=hidden) for each in read.runs]
    assert read.runs.to_arrow().to_pylist() == dumped
    for table in (read, read.scores):
        if find_spec("pandas"):
            assert len(table.to_pandas()) == len(table.to_arrow())
            continue
        with pytest.raises(ModuleNotFoundError, match="to_pandas needs pandas: pip install pandas"):
            table.to_pandas()


def test_a_report_without_its_conversations_has_no_calls(project: Project):
    (project.path / "out.trajectories.jsonl").unlink()
    read = read_report(project.path / "out.json")
    assert read.calls == [] and read.calls.to_arrow().column_names[0] == "suite"
    assert {row.user_prompt for row in read.rows} == {None}
    assert len(read.to_arrow()) == len(read.runs) == 6


def test_what_is_no_report_is_refused(tmp_path: Path):
    with pytest.raises(UnreadableReport, match="cannot be read: No such file"):
        read_report(tmp_path / "none.json")
