"""The reason of a score: returned by an eval function, shown by every report, kept, and masked."""

from __future__ import annotations

import csv
import json

import pytest

from tests.support import report_page
from tests.support.endpoints import Endpoint
from tests.support.modes import each_mode
from tests.support.project import Project

REASONED = """
def exact(solution_str, ground_truth, extra_info):
    right = solution_str == ground_truth
    return {"score": right, "reason": "it is right" if right else "<b>wrong</b>, says no"}
"""
FILES = ("out.json", "out.md", "out.html", "out.csv", "out.xml", "out.trajectories.jsonl")


@each_mode
def test_reports_show_the_reason_beside_the_score(project: Project, workers: int):
    project.write("reasoned.py", REASONED)
    project.rows("a", {"user_prompt": "b", "ground_truth": "c"})
    options = [
        "--osmosis-markdown=out.md", "--osmosis-html=out.html", "--osmosis-runs-table=out.csv",
        "--junitxml=out.xml",
    ]  # fmt: skip
    session = project.run(*options, eval_fn="reasoned:exact", workers=workers)
    for resumed in (False, True):
        if resumed:
            options += ["--osmosis-extend", "--tb=short"]
            session = project.run(*options, eval_fn="reasoned:exact", workers=workers)
            assert session.report["summary"]["cached"] == 2
        reasons = [run["reasons"]["reasoned:exact"] for run in session.runs]
        assert reasons[0] == "it is right"
        assert reasons[1].startswith("<b>wrong</b>, says ")
        assert any("  reason        reasoned:exact: <b>wrong</b>" in line for line in session.lines)
        written = {name: report_page.text_of(project.path / name) for name in FILES}
        assert "&#60;b&#62;wrong" in written["out.md"] or "<b>wrong</b>" in written["out.md"]
        assert "it is right" in written["out.html"] and "<b>wrong</b>, says" in written["out.html"]
        assert "<b>wrong" not in (project.path / "out.html").read_text("utf-8")
        lines = list(csv.DictReader(written["out.csv"].splitlines()))
        assert lines[0]["reason[reasoned:exact]"] == "it is right"
        assert 'name="osmosis_reason[reasoned:exact]" value="it is right"' in written["out.xml"]
    first = json.loads(written["out.trajectories.jsonl"].splitlines()[0])
    assert first["reasons"] == {"reasoned:exact": ["it is right"]}


BESIDE_OTHERS = """
from osmosis_ai.rubric.reasons import add_reason

def low(solution_str, ground_truth, extra_info):
    return {"score": 0.2, "reason": "it is rude"}

def undecided(solution_str, ground_truth, extra_info):
    return {"score": None, "reason": "there is no answer to judge"}

def broken(solution_str, ground_truth, extra_info):
    add_reason("the judge liked it")
    raise LookupError("no such drawer")
"""
SAID = {
    "beside:low": "it is rude",
    "beside:undecided": "there is no answer to judge",
    "beside:broken": "the judge liked it",
}


def test_reasons_are_shown_beside_functions_that_gave_no_score(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.write("beside.py", BESIDE_OTHERS)
    project.rows("a")
    functions = [f"--osmosis-eval-fn={name}" for name in SAID]
    files = ["--osmosis-html=out.html", "--osmosis-markdown=out.md"]
    session = project.run(*functions, *files, eval_fn=None)
    [run] = session.runs
    assert (run["scores"], run["reasons"]) == ({"beside:low": 0.2}, SAID)
    lines = session.section("ERRORS")
    [note] = [line for line in session.lines if line.startswith("::error")]
    page, markdown = report_page.text_of(project.path / "out.html"), project.path / "out.md"
    for name, reason in SAID.items():
        assert f"  reason        {name}: {reason}" in lines
        assert f"{name}: {reason}" in note
        assert reason in page and reason in markdown.read_text("utf-8")
    assert "beside:low scored 0.2, below the threshold 1" in lines
    assert "LookupError: no such drawer" in lines


JUDGED = """
import os
from osmosis_ai import scorers

kind = scorers.judge("Is it kind?", model="openai/m", api_base=os.environ["JUDGE_BASE"])
"""


def test_clamped_scores_of_a_judge_are_said_beside_the_run_and_counted(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    project.write("judging.py", JUDGED)
    project.rows("a", "b", "c")
    monkeypatch.setenv("OPENAI_API_KEY", "judge-key-0123456789")
    answers = iter([85, -1, 1])
    with Endpoint(lambda ask: f'{{"score": {next(answers)}, "explanation": "so"}}') as judge:
        monkeypatch.setenv("JUDGE_BASE", judge.base_url)
        session = project.run(eval_fn="judging:kind")
        rescored = project.run("--osmosis-extend", eval_fn="judging:kind")
    for each in (session, rescored):
        assert "2 scores of the judge were clamped" in each.lines
        assert each.report["summary"]["clamped"] == 2
        assert [run["clamped"] for run in each.runs] == [1, 1, 0]
        reasons = [run["reasons"]["judging:kind"] for run in each.runs]
        assert reasons == ["85, clamped to 1: so", "-1, clamped to 0: so", "so"]


APP = """
from osmosis_ai import scorers

close = scorers.number(tolerance=0.5)


def answer(question):
    return f"It is {question}."
"""


def test_by_name_with_settings_and_as_values_of_a_module(project: Project):
    project.write("app.py", APP)
    project.rows({"user_prompt": "6.4", "ground_truth": "6", "system_prompt": ""})
    session = project.run(
        "--eval-fn=number(tolerance=0.5)", "--eval-fn=app:close", "--eval-fn=exact",
        "--osmosis-gate=mean[number] >= 1", "--osmosis-gate=mean[app:close] >= 1",
        agent="app:answer", model=None, base_url=None, eval_fn="includes",
    )  # fmt: skip
    [run] = session.runs
    assert session.ret == 0, session.out
    assert run["scores"] == {
        "includes": 0.0, "number(tolerance=0.5)": 1.0, "app:close": 1.0, "exact": 0.0,
    }  # fmt: skip
    assert run["reasons"] == {
        "includes": "'6' is not a whole word of 'It is 6.4.'", "exact": "'It is 6.4.', wanted '6'",
    }  # fmt: skip
