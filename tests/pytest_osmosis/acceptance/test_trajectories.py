"""Whole conversations: a line a run, whoever ran it, without secrets and within limits."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from osmosis_ai.secret import Secret, mask_everywhere
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.storage import excerpt, journal
from pytest_osmosis.storage.excerpt import export
from pytest_osmosis.storage.replay import replay
from pytest_osmosis.storage.run_lines import read_record
from pytest_osmosis.storage.run_log import RunFolder, RunLog
from tests.support import report_page
from tests.support.endpoints import error_reply
from tests.support.modes import each_mode
from tests.support.project import Project

RUN = RunResult("data.jsonl", 3, 1, scores={"exact": 1.0}, passed=True, success=True)


def read(path: Path) -> list[dict]:
    return [json.loads(text) for text in path.read_text("ascii").splitlines()]


def record(*messages: dict) -> RolloutRecord:
    return RolloutRecord(RUN, messages=list(messages))


def log_in(folder: Path, process: str = "main", fail=pytest.fail) -> RunLog:
    log = RunLog(process, root=folder, on_failure=fail)
    log.begin(RUN.suite, RunFolder(str(folder), 1))
    return log


def exported(folder: Path, *messages: dict) -> dict:
    log = log_in(folder)
    log.keep(RUN.run_id, record(*messages))
    export(folder / "t.jsonl", [RUN], log.read_conversation)
    return read(folder / "t.jsonl")[-1]


@each_mode
def test_a_session_writes_every_conversation_beside_the_report(project: Project, workers: int):
    project.endpoint.answers = lambda ask: error_reply(400, "no") if ask.row == "long" else ask.row
    project.rows("one", "two", "raise", {"user_prompt": "four", "ground_truth": "vier"}, "long")
    project.run(workers=workers)
    path = project.path / "out.trajectories.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    found = {record["row_index"]: record for record in read(path)}
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert [message["role"] for message in found[4]["messages"]] == ["system", "user"]
    assert [m["content"] for m in found[1]["messages"]] == ["Answer.", "two", "two"]
    assert found[3]["ground_truth"] == "vier"
    assert found[3]["outcome"] == "below"
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


def test_a_page_has_its_conversations_without_a_journal_and_without_a_report(project: Project):
    project.rows("one")
    session = project.run("--osmosis-no-journal", "--osmosis-html=out.html", output=None)
    assert session.ret == 0
    said = report_page.page_of(project.path / "out.html").read(0, 0)
    assert said["messages"][-1]["content"] == "one"
    assert not (project.path / ".osmosis").exists()


@each_mode
def test_without_a_journal_conversations_are_there_and_nothing_else_stays(
    project: Project, workers: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    project.rows("one", "two")
    project.run("--osmosis-no-journal", workers=workers)
    path = project.path / "out.trajectories.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [found["row_index"] for found in read(path)] == [0, 1]
    assert not list(tmp_path.glob("osmosis-*"))


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
    assert "  conversation: out.trajectories.jsonl" in session.lines


def test_a_secret_that_looks_like_a_number_or_a_name_leaves_json_too(tmp_path):
    mask_everywhere(Secret("1795231441"), Secret("tool_calls"))
    message = {"role": "user", "tool_calls": [1795231441, 1795231441.5, "x1795231441"]}
    found = exported(tmp_path, message)
    assert found["messages"] == [{"role": "user", "***": ["***", "***.5", "x***"]}]


def test_long_texts_and_long_conversations_are_cut_in_the_middle(tmp_path, monkeypatch):
    found = exported(tmp_path, {"content": "a" * 70_000 + "b" * 70_000})
    text = found["messages"][0]["content"]
    assert "[… 40000 characters left out …]" in text
    assert (text[0], text[-1]) == ("a", "b")
    monkeypatch.setattr(excerpt, "MESSAGES_LIMIT", 10_000)
    found = exported(tmp_path, *({"content": str(i) * 100} for i in range(10, 99)))
    kept = [message["content"][:2] for message in found["messages"]]
    assert (kept[0], kept[-1]) == ("10", "98")
    assert len(kept) + found["messages_left_out"] == 89


def test_what_json_lacks_is_written_as_text(tmp_path):
    deep: list = []
    for _ in range(1_000):
        deep = [deep]
    message = {"a": float("nan"), "b": {1, 2}, 3: b"x", "d": "\ud800", "e": 10**5000, "deep": deep}
    [found] = exported(tmp_path, message)["messages"]
    assert found == found | {"a": "nan", "b": "{1, 2}", "3": "b'x'", "d": "\ufffd"}
    assert int(found["e"], 16) == 10**5000


def test_what_was_said_is_copied_as_it_was_written(tmp_path):
    log = log_in(tmp_path)
    said = RolloutRecord(
        RUN, "frames", [{"role": "user", "content": "木"}], "truth", reward=0.5,
        calls=[{"tokens": 3}], reasons={"exact": ["so"]},
    )  # fmt: skip
    log.keep(said.result.run_id, said)
    changed = replace(RUN, scores={"exact": 0.0}, passed=False)
    log.report(changed.run_id, changed)
    export(tmp_path / "t.jsonl", [changed], log.read_conversation)
    [found] = read(tmp_path / "t.jsonl")
    assert found == {
        "suite": "data.jsonl", "row_index": 3, "row_id": None, "run_index": 1, "outcome": "below",
        "scores": {"exact": 0.0}, "error": None, "error_type": None, "started_at": 0.0,
        "duration_ms": 0, "model": None, "ground_truth": "truth", "messages": said.messages,
        "calls": [{"tokens": 3}], "reward": 0.5, "reasons": {"exact": ["so"]}, "frames": "frames",
    }  # fmt: skip


def _write_for_ever(folder: Path, process: str) -> None:
    log = log_in(folder, process)
    for run_index in itertools.count():
        result = RunResult("data.jsonl", 3, run_index)
        said = RolloutRecord(result, messages=[{"content": "x" * 50_000}])
        log.keep(said.result.run_id, said)


@pytest.mark.slow
def test_processes_that_are_killed_leave_whole_lines_to_the_others(tmp_path):
    context = multiprocessing.get_context("fork")
    names = ["gw0", "gw1", "gw2"]
    writers = [context.Process(target=_write_for_ever, args=(tmp_path, name)) for name in names]
    journal.create(tmp_path, {"info": {"name": "data.jsonl"}}, {"number": 1, "plan": None})
    for process in writers:
        process.start()
    paths = [journal.worker_file(tmp_path, 1, name) for name in names]
    try:
        while not all(path.exists() and path.stat().st_size > 500_000 for path in paths):
            pass
    finally:
        for process in writers:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    kept = replay(tmp_path).runs
    whole = max(path.read_bytes().count(b'"x') for path in paths)
    assert whole - 1 <= len(kept) <= whole
    assert sorted(kept) == [(3, run_index) for run_index in range(len(kept))]
    assert all(read_record(run.place) for run in kept.values())


def test_a_full_disk_is_reported_once_and_ends_the_writing(tmp_path):
    journal.worker_file(tmp_path, 1, "gw0").parent.mkdir()
    path = journal.worker_file(tmp_path, 1, "gw0")
    path.symlink_to("/dev/full")
    reasons: list[str] = []
    log = log_in(tmp_path, "gw0", reasons.append)
    for _ in range(3):
        log.keep(RUN.run_id, record())
    [reason] = reasons
    assert reason.startswith(
        "cannot write the journal workers/0001-gw0.jsonl: No space left on device; nothing more is"
    )


@each_mode
def test_conversations_that_cannot_be_written_fail_the_session(project: Project, workers: int):
    project.rows("one", "two")
    project.write(
        "conftest.py",
        """
import pathlib

def pytest_runtest_logreport(report):
    pathlib.Path("out.trajectories.jsonl").mkdir(exist_ok=True)
""",
    )
    session = project.run(workers=workers)
    assert session.ret == 1
    assert sum(line.startswith("ERROR: cannot write ") for line in session.lines) == 1
    assert session.outcomes["passed"] == 2
