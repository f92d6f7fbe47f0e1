"""Whole conversations: a line a run, whoever ran it, without secrets and within limits."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from osmosis_ai.secret import Redactor, Secret
from pytest_osmosis.results import RunResult
from pytest_osmosis.storage import trajectories
from pytest_osmosis.storage.trajectories import Conversation, Trajectories, begin, line
from tests.endpoints import Ask, error_reply
from tests.modes import each_mode
from tests.project import Project

RUN = RunResult("data.jsonl", 3, 1, scores={"exact": 1.0}, passed=True, success=True)


def read(path: Path) -> list[dict]:
    return [json.loads(text) for text in path.read_text("ascii").splitlines()]


def written(said: Conversation, redact=str) -> dict:
    return json.loads(line(RUN, said, redact=redact))


@each_mode
def test_a_session_writes_every_conversation_beside_the_report(project: Project, workers: int):
    project.rows("one", "two", "raise", {"user_prompt": "four", "ground_truth": "vier"})
    project.run(workers=workers)
    path = project.path / "out.trajectories.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    found = {record["row_index"]: record for record in read(path)}
    assert sorted(found) == [0, 1, 2, 3]
    assert [m["content"] for m in found[1]["messages"]] == ["Answer.", "two", "two"]
    assert found[3]["ground_truth"] == "vier"
    assert found[3]["outcome"] == "failed"
    assert found[2]["error"].startswith("LookupError")
    [call] = found[0]["calls"]
    assert call["finish_reason"] == "stop"
    assert call["total_tokens"] == call["prompt_tokens"] + call["completion_tokens"]


def test_a_directory_of_its_own_and_none_without_answers(project: Project):
    project.rows("one")
    project.run(trajectories="said/here")
    assert len(read(project.path / "said/here/trajectories.jsonl")) == 1
    assert not (project.path / "out.trajectories.jsonl").exists()
    project.run("--osmosis-no-answers", "--osmosis-fresh")
    assert not (project.path / "out.trajectories.jsonl").exists()


def test_a_session_begins_anew_unless_it_resumes(project: Project):
    project.rows("one", "two")
    project.run("-k", "row-0")
    project.run()
    path = project.path / "out.trajectories.jsonl"
    assert sorted(record["row_index"] for record in read(path)) == [0, 1]
    project.run("--osmosis-fresh")
    assert sorted(record["row_index"] for record in read(path)) == [0, 1]


def test_a_place_that_cannot_be_written_is_told_before_any_request(project: Project):
    project.rows("one")
    project.write("file", "")
    session = project.run(trajectories="file/below")
    assert session.ret == 4
    assert "--osmosis-trajectories" in session.mistake
    assert "cannot be written" in session.mistake
    assert project.endpoint.requests == 0


def test_what_was_said_before_an_error_is_there_and_in_the_items_section(project: Project):
    project.write(
        "agent.py",
        """
from osmosis_ai.rollout import RolloutAgentLoop

class Agent(RolloutAgentLoop):
    name = "asker"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        answer = await ctx.chat(ctx.request.messages)
        raise LookupError("after the answer")

agent_loop = Agent()
""",
    )
    project.rows("what was asked")
    session = project.run()
    [record] = read(project.path / "out.trajectories.jsonl")
    assert [m["role"] for m in record["messages"]] == ["system", "user", "assistant"]
    assert "  assistant  what was asked" in session.lines
    assert "  all of it: out.trajectories.jsonl" in session.lines


def test_no_key_is_in_it_and_it_stays_json(project: Project, monkeypatch: pytest.MonkeyPatch):
    key = 'sk-key"with\\quotes-12345678'
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def quoting(ask: Ask) -> object:
        return f"your key is {ask.headers['authorization']}"

    project.endpoint.answers = quoting
    project.rows("one")
    project.run()
    text = (project.path / "out.trajectories.jsonl").read_text()
    assert "12345678" not in text
    assert json.loads(text)["messages"][-1]["content"] == "your key is Bearer ***"


def test_a_secret_that_looks_like_a_number_or_a_name_leaves_json_too():
    redact = Redactor([Secret("1795231441"), Secret("tool_calls")])
    message = {"role": "user", "tool_calls": [1795231441, 1795231441.5, "x1795231441"]}
    record = written(Conversation([message]), redact)
    assert record["messages"] == [{"role": "user", "***": ["***", "***.5", "x***"]}]


def test_long_texts_and_long_conversations_are_cut_in_the_middle(monkeypatch):
    record = written(Conversation([{"content": "a" * 70_000 + "b" * 70_000}]))
    text = record["messages"][0]["content"]
    assert "[… 40000 characters left out …]" in text
    assert (text[0], text[-1]) == ("a", "b")
    monkeypatch.setattr(trajectories, "MESSAGES_LIMIT", 10_000)
    record = written(Conversation([{"content": str(i) * 100} for i in range(10, 99)]))
    kept = [message["content"][:2] for message in record["messages"]]
    assert (kept[0], kept[-1]) == ("10", "98")
    assert len(kept) + record["messages_left_out"] == 89


def test_what_json_lacks_is_written_as_text():
    deep: list = []
    for _ in range(1_000):
        deep = [deep]
    message = {"a": float("nan"), "b": {1, 2}, 3: b"x", "d": "\ud800", "deep": deep}
    record = written(Conversation([message]))
    assert (
        record["messages"][0] | {"a": "nan", "b": "{1, 2}", "3": "b'x'", "d": "\ud800"}
        == (record["messages"][0])
    )


def test_a_line_that_was_torn_spoils_no_other(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"row_index":1}\n{"row_in')
    begin(path, keep=True)
    file = Trajectories(path, on_failure=pytest.fail)
    file.write(RUN, Conversation([]), redact=str)
    file.close()
    _, torn, mine = path.read_bytes().splitlines()
    assert json.loads(mine)["row_index"] == 3
    assert torn == b'{"row_in'


def _write_for_ever(path: Path) -> None:
    file = Trajectories(path, on_failure=print)
    while True:
        file.write(RUN, Conversation([{"content": "x" * 50_000}]), redact=str)


def test_processes_that_are_killed_leave_whole_lines_to_the_others(tmp_path):
    path = tmp_path / "t.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_for_ever, args=(path,)) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        while not path.exists() or path.stat().st_size < 3_000_000:
            pass
    finally:
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
    file = Trajectories(path, on_failure=pytest.fail)
    file.write(RUN, Conversation([]), redact=str)
    lines = path.read_bytes().splitlines()
    torn = [text for text in lines if not text.endswith(b"}")]
    assert len(torn) <= len(writers)
    assert all(json.loads(text) for text in lines if text not in torn)


def test_a_full_disk_is_told_once_and_ends_the_writing():
    told: list[str] = []
    file = Trajectories(Path("/dev/full"), on_failure=told.append)
    for _ in range(3):
        file.write(RUN, Conversation([]), redact=str)
    assert told == ["cannot write /dev/full: No space left on device"]


@each_mode
def test_conversations_that_cannot_be_written_fail_the_session(
    project: Project, workers: int, monkeypatch: pytest.MonkeyPatch
):
    project.rows("one", "two")
    (project.path / "out.trajectories.jsonl").symlink_to("/dev/full")
    session = project.run(workers=workers)
    assert session.ret == 1
    assert sum(line.startswith("ERROR: cannot write ") for line in session.lines) == 1
    assert session.outcomes["passed"] == 2


def test_an_endpoint_that_refuses_leaves_what_was_asked(project: Project):
    project.endpoint.answers = lambda ask: error_reply(400, "too long")
    project.rows("one")
    project.run()
    [record] = read(project.path / "out.trajectories.jsonl")
    assert [message["role"] for message in record["messages"]] == ["system", "user"]
    assert record["error_type"] == "provider"


def test_what_a_judge_said_is_in_the_section_and_in_the_line(project: Project):
    project.write(
        "judged.py",
        """
from osmosis_ai.rubric.reasons import tell

def judge(solution_str, ground_truth, extra_info):
    tell("It is polite,\\nbut wrong.")
    return 0.25
""",
    )
    project.rows("one")
    session = project.run(eval_fn="judged:judge")
    assert "  judge         judged:judge: It is polite, but wrong." in session.lines
    [record] = read(project.path / "out.trajectories.jsonl")
    assert record["reasons"] == {"judged:judge": ["It is polite,\nbut wrong."]}
