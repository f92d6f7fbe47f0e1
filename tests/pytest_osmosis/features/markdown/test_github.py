"""GitHub Actions: the step's summary and the annotations, by themselves."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.score_table import score_table_of
from pytest_osmosis.escaping import escape_workflow_commands
from pytest_osmosis.features.markdown.feature import annotated
from tests.support.made_results import NASTY, result_of, suite_of
from tests.support.project import Project

COMMAND = re.compile(r"::(error|warning) title=[^,:]+(,file=[^,:]+)?::.+")


def no_line(suite: object, row: object) -> None:
    """Where no row has a line."""


def test_rows_that_failed_become_at_most_ten_errors_the_worst_first():
    lines = annotated(result_of(suite_of([[0.0, 1.0]] * 8 + [[0.0, 0.0]] * 8)), no_line)
    assert len(lines) == 10
    assert lines[0].startswith("::error title=row-8%3A 0 of 2 runs passed::")
    assert all(COMMAND.fullmatch(line) for line in lines)


def test_with_gates_they_come_first_and_rows_only_warn():
    suite = suite_of([[0.0], ["503"]])
    gates = [parse_gate(text) for text in ("mean >= 0.9", "pass@1 >= 0.1", "errors <= 5")]
    suite = replace(suite, verdicts=tuple(evaluate(gate, score_table_of(suite)) for gate in gates))
    lines = annotated(result_of(suite), no_line)
    assert [line.partition(" ")[0] for line in lines] == ["::error"] + ["::warning"] * 3
    assert "gate failed%3A mean >= 0.9" in lines[0]
    assert "gate inconclusive%3A pass@1 >= 0.1" in lines[1]


@pytest.mark.fault("JUnit, pytest-html, GitHub annotations")
def test_text_of_models_is_one_command_at_most(monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_WORKSPACE", "/project")
    suite = suite_of([[0.0]], answer=NASTY + "%0A\r\n::set-output name=x::y")
    [line] = annotated(result_of(suite), no_line)
    assert "\n" not in line
    assert "\r" not in line
    assert "%250A" in line
    assert "file=data.jsonl::" in line


def test_no_line_of_a_conversation_is_a_workflow_command():
    text = "fine\n::error::no\n   ::add-mask::no\na ::b\n##[group]no"
    assert (
        escape_workflow_commands(text)
        == "fine\n: :error::no\n   : :add-mask::no\na ::b\n## [group]no"
    )


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch, project: Project) -> Project:
    """A project within a step of a workflow."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    return project


def test_a_session_appends_its_report_to_the_steps_summary(actions: Project):
    actions.write("summary.md", "from the step before\n")
    actions.rows("right", {"user_prompt": "::error::said", "ground_truth": "other"})
    actions.write("data.jsonl", "\n" + (actions.path / "data.jsonl").read_text())
    session = actions.run()
    summary = (actions.path / "summary.md").read_text("utf-8")
    assert summary.startswith("from the step before\n## ❌ Evaluation: 1 of 2 runs passed\n")
    assert "ground truth  other" in summary
    commands = [line for line in session.lines if line.lstrip().startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith(
        "::error title=row-1%3A 0 of 1 run passed,file=data.jsonl,line=3::"
    )


def test_a_summary_that_cannot_be_written_fails_nothing(
    actions: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(actions.path / "gone" / "summary.md"))
    actions.rows("right")
    session = actions.run()
    assert session.ret == 0
    assert "warning: cannot write the step's summary: No such file or directory" in session.lines
