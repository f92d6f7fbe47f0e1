"""The same command again: what is done is not done twice, and nothing is mixed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.storage import run_directory
from tests.support.endpoints import Ask, Endpoint, error_reply
from tests.support.modes import each_mode
from tests.support.project import KEPT, Project, Session

ROWS = ["a", "b", "c", "wrong", "d", "e"]


class Flaky:
    """Refuses the rows in `down`; repeats the question else, or says that `wrong` is right."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.asked: Counter[str] = Counter()

    def __call__(self, ask: Ask) -> str | bytes:
        if ask.row in self.down:
            return error_reply(503, "come back later", headers={"x-should-retry": "false"})
        self.asked[ask.row] += 1
        return "right" if ask.row == "wrong" else ask.row


@pytest.fixture
def model(endpoint: Endpoint) -> Flaky:
    flaky = endpoint.answers = Flaky()
    return flaky


@pytest.fixture
def unfinished(project: Project, model: Flaky) -> Project:
    """A project in which the runs of two of six rows met an endpoint that was down."""
    project.rows(*ROWS)
    model.down = {"c", "e"}
    assert project.run().ret == 1
    model.down = set()
    model.asked.clear()
    return project


def folders(project: Project) -> list[str]:
    return [path.name for path in run_directory.kept_in(project.path / ".osmosis" / "runs")]


def journal_of(project: Project, name: str = "agent.agent_loop-data-m") -> Path:
    return project.path / ".osmosis" / "runs" / name / "journal.jsonl"


def steady(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what differs between any two sessions."""
    text = json.dumps(report)
    for name in ("duration_ms", "started_at", "llm_ms", "total_duration_ms"):
        text = re.sub(rf'"{name}": [0-9.e-]+', f'"{name}": 0', text)
    text = re.sub(r'"cached": (true|false|\d+)', '"cached": 0', text)
    found: dict[str, Any] = json.loads(text)
    return {name: found[name] for name in ("config", "summary", "rows")}


@each_mode
def test_only_what_has_no_score_is_run_again(unfinished: Project, model: Flaky, workers: int):
    session = unfinished.run(workers=workers)
    assert f"osmosis: journal .osmosis/runs/{KEPT}, resuming: 4 of 6 runs done" in session.lines
    assert model.asked == {"c": 1, "e": 1}
    assert session.outcomes == {"passed": 5, "failed": 1}
    assert [run["cached"] for run in session.runs] == [True, True, False, True, True, False]
    assert session.report["summary"]["cached"] == 4
    assert "6 rollouts (4 from the journal), 90 tokens" in session.lines
    resumed = session.report
    fresh = unfinished.run("--osmosis-fresh", workers=workers)
    assert steady(resumed) == steady(fresh.report)
    assert model.asked == {"a": 1, "b": 1, "c": 2, "wrong": 1, "d": 1, "e": 2}


@each_mode
def test_data_outside_the_root_directory_are_resumed_too(
    project: Project, model: Flaky, workers: int
):
    (project.path / "inner").mkdir()
    project.rows("b", "c", name="more.jsonl")
    data = ["--osmosis-data=data.jsonl", "--osmosis-data=more.jsonl"]
    project.rows("a", "b")
    model.down = {"b"}
    first = project.run("--rootdir=inner", *data, data=None, workers=workers)
    assert "../data.jsonl::row-1[run-0]" in first.out and "../more.jsonl::row-0[run-0]" in first.out
    kept = project.path / "inner" / ".osmosis" / "runs"
    assert {folder.name for folder in run_directory.kept_in(kept)} == {
        f"agent.agent_loop-up1.{name}-m" for name in ("data", "more")
    }
    model.asked.clear()
    model.down = set()
    session = project.run("--rootdir=inner", *data, data=None, workers=workers)
    assert model.asked == {"b": 2}
    assert session.outcomes == {"passed": 4}


def section(session: Session, title: str) -> list[str]:
    """What is printed of an item, but for the worker that ran it and what stands below."""
    lines = session.lines
    [start] = [at for at, line in enumerate(lines) if line.strip("_") == f" {title} "]
    ends = [at for at, line in enumerate(lines) if at > start and line[:3] in ("___", "===")]
    return [line for line in lines[start + 1 : ends[0]] if line[:3] not in ("[gw", "- g")]


@pytest.mark.slow
@each_mode
def test_a_kept_run_is_reported_as_it_was(project: Project, model: Flaky, workers: int):
    project.rows(*ROWS, "raise")
    model.down = {"c"}
    first = project.run(workers=workers)
    kept = [run for run in first.runs if run["error_type"] != "provider"]
    model.down = set()
    second = project.run("--junitxml=out.xml", workers=workers)
    for title in ("row-3[run-0]", "row-6[run-0]"):
        shown = section(first, title)
        assert len(shown) > 5
        assert section(second, title) == shown
    again = [run for run in second.runs if run["cached"]]
    assert [{**run, "cached": False} for run in again] == kept
    cases = {case.get("name"): case for case in second.junit.iter("testcase")}
    recorded = {f"row-{row['row_index']}[run-0]": row["runs"][0] for row in second.report["rows"]}
    for name, case in cases.items():
        assert float(case.get("time", 0)) == pytest.approx(
            recorded[str(name)]["duration_ms"] / 1000, abs=1e-3
        )


JUDGED = """
from pathlib import Path

from osmosis_ai.rubric.errors import ProviderRequestError


def judged(solution_str):
    how = Path(solution_str)
    if how.exists():
        if how.read_text() == "own":
            raise LookupError("no such drawer")
        raise ProviderRequestError("openai", "m", "no score", kind=how.read_text())
    return 1.0
"""


@each_mode
@pytest.mark.parametrize("kind", ["overloaded", "verdict"])
def test_a_run_whose_judge_gave_no_score_is_judged_again_without_a_call(
    project, model, workers, kind
):
    project.write("judging.py", JUDGED)
    project.rows("a", "b", "c")
    down, strange = project.write("b", kind), project.write("c", "own")
    session = project.run(eval_fn="judging:judged")
    assert [run["error_kind"] for run in session.runs] == [None, "judge_failed", None]
    assert "1 run has no score (eval_fn 1): run the same command again to fill it in" in session.out
    first = session.report["summary"]
    down.unlink()
    strange.unlink()
    session = project.run(
        "--osmosis-max-total-tokens=1", eval_fn="judging:judged", workers=workers
    )  # which an earlier session has spent
    assert "resuming: 2 of 3 runs done, 1 to be scored again" in session.out
    assert model.asked == {"a": 1, "b": 1, "c": 1}
    assert session.outcomes == {"passed": 2, "errors": 1}
    summary = session.report["summary"]
    assert (summary["total_tokens"], summary["repeated"]["runs"]) == (first["total_tokens"], 0)
    said = (project.path / "out.trajectories.jsonl").read_text().splitlines()
    assert [(len(run["messages"]), len(run["calls"])) for run in map(json.loads, said)] == [
        (3, 1)
    ] * 3
    third = project.run("--osmosis-extend", eval_fn="judging:judged").report["summary"]
    assert (third["total_tokens"], third["repeated"]["runs"]) == (first["total_tokens"], 0)


def test_a_run_whose_grader_had_no_judge_is_run_again(project):
    """A grader may look at what the rollout has left, which is in no conversation."""
    project.write(
        "flow.py",
        """
from pathlib import Path
from osmosis_ai.rollout import AgentWorkflow, Grader
from osmosis_ai.rubric.errors import ProviderRequestError

class Flow(AgentWorkflow):
    async def run(self, ctx):
        with open("begun", "a") as file:
            file.write("x")
        return [*ctx.prompt, {"role": "assistant", "content": "done"}]

class Judging(Grader):
    async def grade(self, ctx):
        if Path("down").exists():
            raise ProviderRequestError("openai", "m", "no score", kind="overloaded")
        ctx.set_reward(1.0)
""",
    )
    project.rows("a")
    down = project.write("down", "")
    asked = ("--osmosis-grader=flow:Judging",)
    session = project.run(*asked, agent="flow:Flow", eval_fn=None)
    assert session.runs[0]["error_kind"] == "judge_failed"
    down.unlink()
    session = project.run(*asked, agent="flow:Flow", eval_fn=None)
    assert session.outcomes == {"passed": 1}
    assert (project.path / "begun").read_text() == "xx"


@pytest.mark.fault("the agent's source changed")
def test_changed_source_starts_anew_and_is_named(project, model):
    project.write("deep.py", "X = 1")
    project.write("tools.py", "def use():\n    from deep import X\n")
    agent = project.path / "agent.py"
    agent.write_text("import tools\n" + agent.read_text())
    project.rows("a", "b")
    model.down = {"b"}
    project.run()
    project.write("deep.py", "X = 2")
    session = project.run()
    assert "starting anew: the source of deep.py has changed" in session.out
    assert model.asked["a"] == 2


@pytest.mark.fault("a file that the agent reads has changed (`osmosis_inputs`)")
@pytest.mark.slow
def test_a_changed_file_that_the_agent_reads_starts_anew_and_is_named(unfinished, model):
    unfinished.write("prompts/one/short.txt", "Be short.")
    unfinished.write("pytest.ini", "[pytest]\nosmosis_inputs = prompts/**/*.txt\n")
    model.down = {"c"}
    first = unfinished.run()
    assert "starting anew: prompts/one/short.txt has changed; the unfinished one" in first.out
    assert "resuming: 5 of 6 runs done" in unfinished.run().out
    unfinished.write("prompts/one/short.txt", "Be shorter.")
    unfinished.write("prompts/two.txt", "Be kind.")
    session = unfinished.run()
    assert "starting anew: prompts/one/short.txt, prompts/two.txt have changed; " in session.out
    assert not any(run["cached"] for run in session.runs)
    wrong = unfinished.run("--osmosis-inputs=promts/*.txt")
    assert wrong.ret == 4
    assert wrong.mistake.startswith("--osmosis-inputs '")
    assert wrong.mistake.endswith("promts/*.txt': no file matches")


@pytest.mark.slow
def test_throughput_changes_nothing(unfinished, model):
    session = unfinished.run("--batch-size=3", "--osmosis-max-time=500", workers=2)
    assert "resuming: 4 of 6 runs done" in session.out
    assert model.asked == {"c": 1, "e": 1}


@pytest.mark.slow
@each_mode
def test_more_runs_and_rows_use_what_is_done_only_when_asked(project, model, workers):
    project.rows("a", "b")
    project.run()
    project.rows("a", "b", "c")
    session = project.run("--n=2", "--osmosis-extend", workers=workers)
    assert "resuming: 2 of 6 runs done" in session.out
    assert model.asked == {"a": 2, "b": 2, "c": 2}
    assert [run["cached"] for run in session.runs] == [True, False, True, False, False, False]
    session = project.run("--n=3")
    assert "resuming" not in session.out
    [line] = [line for line in session.lines if "starting anew" in line]
    assert line.startswith(
        "osmosis: starting anew: n was 2 and is 3 (with --osmosis-extend its runs are used); "
        "the one before is kept as agent.agent_loop-data-m@"
    )
    assert model.asked == {"a": 5, "b": 5, "c": 5}


def test_what_cannot_be_extended_is_refused_and_names_the_change(unfinished, model):
    session = unfinished.run("--osmosis-extend", "--osmosis-temperature=0.5", "--n=2")
    assert session.ret == 4
    assert session.mistake.startswith(
        f"--osmosis-extend: {KEPT} cannot be resumed: temperature was not given and is 0.5; "
    )
    refused = unfinished.run("--osmosis-resume", "--n=2")
    assert refused.ret == 4
    assert "n was 1 and is 2 (with --osmosis-extend its runs are used)" in refused.mistake
    assert not model.asked


@pytest.mark.slow
@each_mode
def test_a_selected_part_is_run_for_real_and_leaves_an_unfinished_evaluation(
    unfinished, model, workers
):
    before = journal_of(unfinished).read_bytes()
    for select in (["-k", "row-0 or row-2"], ["data.jsonl::row-0[run-0]"], ["--lf"]):
        part = unfinished.run(*select, workers=workers)
        assert "resuming" not in part.out and "again to" not in part.out
        assert not any(run["cached"] for run in part.runs)
        refused = unfinished.run("--osmosis-resume", *select, workers=workers)
        assert refused.ret == 4
        assert "--osmosis-resume uses the runs of whole evaluations, and" in refused.mistake
    assert model.asked["a"] == 2
    assert journal_of(unfinished).read_bytes() == before
    assert folders(unfinished) == ["agent.agent_loop-data-m"]
    model.asked.clear()
    assert "resuming: 4 of 6 runs done" in unfinished.run().out
    assert model.asked == {"c": 1, "e": 1}


@pytest.mark.slow
@each_mode
@pytest.mark.parametrize(
    ("options", "first"),
    [
        (["-x"], ["right"]),
        (["--osmosis-gate=mean >= 0.9", "--osmosis-stop-when-decided"], ["right"]),
        ([], ["refused"]),
    ],
    ids=["stopped by -x", "gates decided", "refused for good"],
)
def test_what_ended_by_itself_starts_anew(project, model, workers, options, first):
    project.rows("wrong", "a", "b", "c", "d")
    if first == ["refused"]:
        project.endpoint.answers = lambda ask: (
            error_reply(400, "too long") if ask.row == "wrong" else model(ask)
        )
    session = project.run(*options, workers=workers)
    assert "run the same command again" not in session.out.partition("osmosis summary")[2]
    model.asked.clear()
    again = project.run(*options)
    assert "resuming" not in again.out
    assert not any(run["cached"] for run in again.runs)
    kept = project.run("--osmosis-resume")
    assert "resuming: " in kept.out
    assert any(run["cached"] for run in kept.runs)


@pytest.mark.slow
def test_nothing_is_kept_and_nothing_begun_when_nothing_is_selected(project, model):
    project.rows("a")
    project.run()
    before = journal_of(project).read_bytes()
    assert project.run("-k", "nothing-like-this").ret == 5
    assert project.run("--collect-only").ret == 0
    assert folders(project) == ["agent.agent_loop-data-m"]
    assert journal_of(project).read_bytes() == before


def test_resume_reports_a_complete_evaluation_without_any_call(project, model):
    project.rows(*ROWS)
    project.run()
    session = project.run("--osmosis-resume")
    assert "resuming: 6 of 6 runs done" in session.out
    assert set(model.asked.values()) == {1}
    assert session.outcomes == {"passed": 5, "failed": 1}


@pytest.mark.fault("others can read the files")
def test_what_is_kept_is_private_and_out_of_version_control(project):
    project.rows("a")
    project.run()
    top = project.path / ".osmosis"
    assert (top / ".gitignore").read_text() == "*\n"
    for path in (top, *top.rglob("*")):
        mode = path.stat().st_mode & 0o777
        if path.is_dir():
            assert mode == 0o700, path
        elif path.name != ".gitignore":
            assert mode == 0o600, path


def test_another_place_can_be_named(project, model, tmp_path):
    project.rows("a", "b")
    model.down = {"b"}
    project.run(f"--osmosis-run-dir={tmp_path}/kept")
    assert (tmp_path / "kept" / KEPT / "journal.jsonl").exists()
    assert not (project.path / ".osmosis").exists()
    model.down = set()
    session = project.run(f"--osmosis-run-dir={tmp_path}/kept")
    assert "resuming: 1 of 2 runs done" in session.out


MARKED = """
import pytest

@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
def test_it(rollout):
    assert rollout.solution_str == rollout.ground_truth
    assert rollout.messages[-1]["content"] == rollout.metadata["user_prompt"]
"""


@each_mode
def test_a_kept_rollout_is_found_where_node_ids_name_more_than_a_run(project, model, workers):
    project.rows("a", "b", "c")
    fixture = '\n@pytest.fixture(params=["backend"])\ndef backend(request): ...\n'
    project.write("test_marked.py", MARKED.replace("(rollout)", "(rollout, backend)") + fixture)
    model.down = {"c"}
    usual = project.options(f"-n{workers}", "-v", agent=None, data=None, eval_fn=None)
    first = project.plain(*usual, "test_marked.py")
    assert "test_marked.py::test_it[backend-row-0-run-0]" in first.out
    model.down = set()
    second = project.plain(*usual, "test_marked.py")
    assert second.outcomes == {"passed": 3}
    assert model.asked == {"a": 1, "b": 1, "c": 1}


@pytest.mark.fault("the project is read-only, or has no locks")
def test_a_read_only_project_is_evaluated_without_a_journal_and_warned(project, model, monkeypatch):
    def read_only(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(run_directory, "make_private", read_only)
    project.rows("a")
    session = project.run()
    [warning] = [line for line in session.lines if "warning: no journal" in line]
    assert session.ret == 0 and "--osmosis-run-dir=PATH" in warning
