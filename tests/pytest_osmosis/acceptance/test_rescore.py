"""Recorded conversations, scored again: no agent, no model call."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pytest_osmosis.storage import run_lines
from tests.support.endpoints import Ask, Endpoint, failure_reply
from tests.support.modes import each_mode
from tests.support.project import KEPT, Project

OTHER = """
def shout(solution_str, ground_truth, extra_info):
    return float(solution_str.upper() == extra_info["loud"])


def turns(messages, ground_truth, metadata):
    return float(len(messages))
"""


@pytest.fixture
def recorded(project: Project, endpoint: Endpoint) -> Project:
    """A project with an evaluation of four rows: passed, failed, an agent's error, a provider's."""
    down = {"down": failure_reply("no")}
    endpoint.answers = lambda ask: down.get(ask.row, "right" if ask.row == "wrong" else ask.row)
    project.write("other.py", OTHER)
    project.rows(
        *(
            {"user_prompt": prompt, "ground_truth": prompt, "loud": prompt.upper()}
            for prompt in ("a", "wrong", "raise", "down")
        )
    )
    project.run("--n=2")
    return project


def rescore(project: Project, *more: str, workers: int = 0, kept: str = KEPT):
    return project.plain(
        f"--osmosis-rescore={kept}", "--osmosis-output=out.json", f"-n{workers}", *more
    )


@pytest.mark.slow
@each_mode
def test_other_functions_score_what_was_said_without_any_call(
    recorded: Project, endpoint: Endpoint, workers: int
):
    before = [run for row in json.loads((recorded.path / "out.json").read_text())["rows"]
              for run in row["runs"]]  # fmt: skip
    requests = endpoint.requests
    (recorded.path / "agent.py").unlink()
    session = rescore(recorded, "--eval-fn=other:shout", "--eval-fn=other:turns", workers=workers)
    assert endpoint.requests == requests
    assert session.outcomes == {"passed": 2, "failed": 4, "errors": 2}
    scores = [run["scores"] for run in session.runs]
    assert (
        scores[:4]
        == [{"other:shout": 1.0, "other:turns": 3.0}] * 2
        + [{"other:shout": 0.0, "other:turns": 3.0}] * 2
    )
    assert scores[4:] == [{}] * 4
    for old, new in zip(before, session.runs, strict=True):
        same = ("run_index", "answer", "tokens", "llm_calls", "started_at", "duration_ms", "model")
        assert [new[name] for name in same] == [old[name] for name in same]
    assert [run["error_type"] for run in session.runs[4:]] == ["agent"] * 2 + ["provider"] * 2
    assert session.report["config"]["settings"]["rescored"] == KEPT
    assert session.report["config"]["model"] == "m"


@pytest.mark.slow
def test_the_same_functions_give_the_same_scores(recorded: Project):
    before = json.loads((recorded.path / "out.json").read_text())
    after = rescore(recorded).report
    assert after["rows"] == before["rows"]
    assert after["summary"]["eval_fns"] == before["summary"]["eval_fns"]


def test_what_was_kept_stays_as_it_was(recorded: Project):
    folder = recorded.path / ".osmosis" / "runs"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    rescore(recorded, "--eval-fn=other:shout")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_ready_scorers_score_again_and_refuse_what_they_cannot_compare_with(project: Project):
    project.rows("7", "8")
    project.run(eval_fn="exact")
    assert [run["scores"] for run in rescore(project).runs] == [{"exact": 1.0}] * 2
    assert [run["scores"] for run in rescore(project, "--eval-fn=number").runs] == [
        {"number": 1.0}
    ] * 2
    project.rows({"user_prompt": "7", "ground_truth": "seven"}, "8")
    project.run("--osmosis-fresh", eval_fn="exact")
    said = rescore(project, "--eval-fn=number").mistake
    assert "data.jsonl:1: 'ground_truth' is 'seven', not one number" in said


THOUGHTFUL = """
def plain(solution_str, ground_truth, extra_info):
    return {"score": float(solution_str == ground_truth), "reason": solution_str}


def whole(messages, ground_truth, metadata):
    return {"score": float(messages[-1]["content"] == ground_truth), "reason": "seen"}
"""


def test_reasoning_is_stripped_for_functions_when_asked_and_that_is_part_of_the_evaluation(
    project: Project, endpoint: Endpoint
):
    endpoint.answers = lambda ask: f"<think>Is it {ask.row}?</think>\n\n{ask.row}"
    project.write("mine.py", THOUGHTFUL)
    project.rows("a")
    names = ("--eval-fn=exact", "--eval-fn=mine:whole")
    session = project.run(*names, eval_fn="mine:plain")
    as_it_is = {"mine:plain": 0.0, "exact": 1.0, "mine:whole": 0.0}
    assert session.runs[0]["scores"] == as_it_is
    assert session.runs[0]["reasons"]["mine:plain"].startswith("<think>Is it a?</think>")
    stripped = rescore(project, "--osmosis-strip-reasoning")
    assert set(stripped.runs[0]["scores"].values()) == {1.0}
    other = project.run(
        "--osmosis-resume", "--osmosis-strip-reasoning", *names, eval_fn="mine:plain"
    )
    assert "strip reasoning was not given and is True" in other.mistake
    session = project.run("--osmosis-strip-reasoning", *names, eval_fn="mine:plain")
    assert set(session.runs[0]["scores"].values()) == {1.0}
    assert session.runs[0]["answer"].startswith("<think>")
    assert set(rescore(project).runs[0]["scores"].values()) == {1.0}
    project.write("pytest.ini", "[pytest]\nosmosis_strip_reasoning = true\n")
    again = project.run("--osmosis-extend", *names, eval_fn="mine:plain")
    assert again.report["summary"]["cached"] == 1


@pytest.mark.slow
def test_an_unfinished_evaluation_is_scored_as_far_as_it_went(recorded: Project):
    recorded.run("--osmosis-max-total-tokens=1", "--osmosis-seed=1")
    session = rescore(recorded)
    assert [(row["row_index"], len(row["runs"])) for row in session.report["rows"]] == [(0, 1)]
    assert session.report["summary"]["total"] == 4


@pytest.mark.slow
def test_an_earlier_evaluation_is_named_with_its_time(recorded: Project):
    recorded.run("--osmosis-fresh", "--osmosis-seed=1")
    [aside] = [path.name for path in (recorded.path / ".osmosis" / "runs").glob(f"{KEPT}@*")]
    session = recorded.plain("-n0", f"--osmosis-rescore={aside}", "--osmosis-output=out.json")
    assert session.report["summary"]["total_runs"] == 8


GRADED = """
from osmosis_ai.rollout import AgentWorkflow, Grader, RolloutSample, get_rollout_context
import urllib.request, json

class Ask(AgentWorkflow):
    async def run(self, ctx):
        import asyncio
        context = get_rollout_context()
        def post():
            request = urllib.request.Request(
                context.chat_completions_url + "/chat/completions",
                json.dumps({"model": "x", "messages": ctx.prompt}).encode(),
                {"Authorization": f"Bearer {context.api_key}", "Content-Type": "application/json"},
            )
            urllib.request.urlopen(request).read()
        await asyncio.to_thread(post)

class Judge(Grader):
    async def grade(self, ctx):
        ctx.set_reward(STRICT if ctx.sample.messages[-1]["content"] == ctx.label else 0.0)
"""


def test_a_grader_grades_again(project: Project, endpoint: Endpoint):
    project.write("flow.py", GRADED.replace("STRICT", "1.0"))
    project.rows("a", "b")
    first = project.run(agent="flow:Ask", eval_fn=None)
    assert [run["scores"] for run in first.runs] == [{"reward": 1.0}] * 2
    requests = endpoint.requests
    project.write("flow.py", GRADED.replace("STRICT", "0.25"))
    session = rescore(project, kept="flow.Ask-data-m")
    assert [run["scores"] for run in session.runs] == [{"reward": 0.25}] * 2
    assert endpoint.requests == requests


def test_a_conversation_that_was_too_long_is_said_to_be_missing(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_lines, "SIZE_LIMIT", 1000)
    project.rows("a", "b" * 1000)
    project.run()
    session = rescore(project)
    assert [run["error_type"] for run in session.runs] == [None, "internal"]
    assert "its conversation was not kept" in session.runs[1]["error"]


def test_what_cannot_be_scored_again_is_refused(recorded: Project, endpoint: Endpoint):
    unknown = rescore(recorded, kept=f"{KEPT}n").mistake
    assert "no such evaluation in" in unknown and "osmosis eval runs list names them" in unknown
    assert "contradict each other" in rescore(recorded, "--osmosis-fresh").mistake
    recorded.rows("a", "other", "raise", "down")
    session = rescore(recorded)
    assert session.ret == 4
    assert "dataset changed since (4 of 4 rows differ" in session.mistake


def test_the_runs_of_a_test_function_are_refused(project: Project):
    project.rows("a")
    project.write(
        "test_marked.py",
        "import pytest\n"
        '@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")\n'
        "def test_it(rollout): pass\n",
    )
    project.plain(*project.options("-n0", agent=None, data=None, eval_fn=None), "test_marked.py")
    session = project.plain("-n0", "--osmosis-rescore=agent.agent_loop-test_marked.py-test_it-m")
    assert session.ret == 4
    assert "run the test itself" in session.mistake


def test_no_model_and_no_key_is_asked_for(project: Project, endpoint: Endpoint, monkeypatch):
    seen: Counter[str] = Counter()

    def answer(ask: Ask) -> str:
        seen[ask.headers.get("authorization", "")] += 1
        return ask.row

    endpoint.answers = answer
    monkeypatch.setenv("MY_KEY", "sk-something-long-enough")
    project.rows("a")
    project.run("--osmosis-api-key-env=MY_KEY")
    monkeypatch.delenv("MY_KEY")
    project.write("pytest.ini", "[pytest]\nosmosis_api_key_env = MY_KEY\n")
    session = rescore(project)
    assert session.outcomes == {"passed": 1}
    assert sum(seen.values()) == 1
