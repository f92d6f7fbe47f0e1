"""Sessions whose rollouts are run by shards: here, processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_osmosis.distributed import messages
from pytest_osmosis.distributed.shards import driver_evaluation
from pytest_osmosis.distributed.shards.fleet import Listener
from tests.support.project import Project, Session
from tests.support.shard_processes import ProcessFleet

ROWS = ["one", "two", "three", "raise", "five", "give up", "seven"]
WRONG = {"user_prompt": "eight", "ground_truth": "8"}
KEY = "sk-not-to-be-seen-anywhere"
CHATTY = """
import os, signal, sys
from agent import Agent

class Chatty(Agent):
    async def run(self, ctx):
        wish = ctx.request.messages[-1]["content"]
        print("asked", wish)
        if wish == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().run(ctx)

agent_loop = Chatty()
"""

_VOLATILE = ("duration_ms", "llm_ms", "started_at", "cached")


@pytest.fixture
def fleets(monkeypatch: pytest.MonkeyPatch) -> list[ProcessFleet]:
    made: list[ProcessFleet] = []

    def make(shards: Any) -> ProcessFleet:
        made.append(ProcessFleet(shards))
        return made[-1]

    monkeypatch.setattr(driver_evaluation, "make_fleet", make)
    return made


def sharded(project: Project, *more: str, shards: int = 2, **replaced: str | None) -> Session:
    options = ("--osmosis-ray", f"--osmosis-shards={shards}", "-pno:cacheprovider")
    return project.run("--batch-size=4", "--n=2", *options, *more, **replaced)


def plain_runs(session: Session) -> list[dict[str, Any]]:
    """The runs without what differs from one session to the next."""
    return [
        {name: value for name, value in run.items() if name not in _VOLATILE}
        for run in session.runs
    ]


@pytest.mark.slow
def test_shards_give_what_one_process_gives(
    project: Project, fleets: list[ProcessFleet], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.endpoint.api_key = KEY
    project.endpoint.latency_s = 0.03
    project.write("chatty.py", CHATTY)
    project.rows(*ROWS, WRONG)
    there = sharded(project, agent="chatty:agent_loop")
    assert fleets[0].started == [0, 1]
    assert project.endpoint.max_in_flight <= 4
    asked = project.endpoint.requests
    conversations = (project.path / "out.trajectories.jsonl").read_text().splitlines()
    merged = plain_runs(there)
    here = project.run("--batch-size=4", "--n=2", "--osmosis-fresh", agent="chatty:agent_loop")
    assert (merged, there.ret, there.outcomes) == (plain_runs(here), here.ret, here.outcomes)
    assert there.report["summary"]["eval_fns"] == here.report["summary"]["eval_fns"]
    assert project.endpoint.requests == 2 * asked == 4 * 6
    assert len(conversations) == 16
    assert "osmosis: 2 shards on processes of this machine" in there.lines
    assert "asked eight" in there.out
    assert "rewards:exact scored 0, below the threshold 1" in there.out
    assert there.leaks(KEY) == []


@pytest.mark.slow
def test_shards_record_what_one_process_records_and_replay_it(
    project: Project, fleets: list[ProcessFleet], tmp_path_factory: pytest.TempPathFactory
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    project.rows(*ROWS, WRONG)
    there = plain_runs(sharded(project, "--osmosis-record=there"))
    fresh = ("--n=2", "--osmosis-fresh")
    project.run(*fresh, f"--osmosis-record={elsewhere}")
    asked = project.endpoint.requests
    kept = (elsewhere / "calls.jsonl").read_text()
    assert (project.path / "there/calls.jsonl").read_text() == kept
    for folder in ("there", elsewhere):
        assert plain_runs(sharded(project, *fresh, f"--osmosis-replay={folder}")) == there
    assert plain_runs(project.run(*fresh, "--osmosis-replay=there")) == there
    assert project.endpoint.requests == asked
    asking = [f"--osmosis-replay={elsewhere}", "--osmosis-replay-missing=ask"]
    project.rows(*ROWS, "new")
    sharded(project, *asking)
    added = (elsewhere / "calls.jsonl").read_text().splitlines()
    assert project.endpoint.requests == asked + 2
    assert len({*added} - {*kept.splitlines()}) == 1 + 1 + 2


@pytest.mark.slow
def test_shards_start_at_once_whatever_tests_are_ahead(
    project: Project, fleets: list[ProcessFleet]
):
    project.rows("one", "two")
    project.write(
        "test_ahead.py",
        "from pathlib import Path\n\n"
        "def test_a_shard_is_there():\n"
        "    assert Path('shard-0.out').exists()\n",
    )
    session = sharded(project, "test_ahead.py", "data.jsonl")
    assert session.outcomes == {"passed": 5}, session.out


@pytest.mark.slow
def test_shards_collect_garbage_rarely(project: Project, fleets: list[ProcessFleet]):
    project.rows("one")
    project.write(
        "rewards.py",
        "import gc\n\n"
        "def exact(solution_str, ground_truth, extra_info):\n"
        "    return 1.0 if gc.get_threshold()[0] == 10_000 else 0.0\n",
    )
    assert sharded(project, shards=1).outcomes == {"passed": 2}


class LateFleet(ProcessFleet):
    """Once shards have sent all results it interrupts the session, which gets them then."""

    def begin(self, listener: Listener) -> None:
        super().begin(self)
        self._listener = listener
        self._held: list[tuple[int, Sequence[Any]]] = []

    def receive(self, shard: int, kind: str, values: Sequence[Any]) -> None:
        if kind == messages.FINISHED:
            self._held.append((shard, values))
            if len(self._held) == len(ROWS):
                os.kill(os.getpid(), signal.SIGINT)
        elif kind != messages.DONE:
            self._listener.receive(shard, kind, values)

    def gone(self, shard: int, reason: str, *, suspect: bool) -> None:
        pass

    def lost(self, reason: str) -> None:
        pass

    def send(self, shard: int, kind: str, *values: Any) -> None:
        super().send(shard, kind, *values)
        if (shard, kind) == (1, messages.CANCEL):
            threading.Timer(0.1, self._arrive).start()

    def _arrive(self) -> None:
        for shard, values in self._held:
            self._listener.receive(shard, messages.FINISHED, values)
        for shard in (0, 1):
            self._listener.receive(shard, messages.DONE, [])


@pytest.mark.slow
def test_what_shards_finished_before_an_interrupt_is_reported_though_it_comes_later(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(driver_evaluation, "make_fleet", LateFleet)
    project.rows(*(f"row {number}" for number in range(len(ROWS))))
    with pytest.raises(KeyboardInterrupt):  # pytester's own
        project.run("--batch-size=2", "--osmosis-ray", "--osmosis-shards=2")
    report = json.loads((project.path / "out.json").read_text())
    assert report["summary"]["interrupted"] == "SIGINT"
    assert report["summary"]["total_runs"] == project.endpoint.requests == len(ROWS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--osmosis-shards=2"], "--osmosis-shards needs --osmosis-ray too"),
        (
            ["--osmosis-ray", "--osmosis-shards=9", "--batch-size=4"],
            "--osmosis-shards 9: each shard has a part of the batch size, which is 4; give "
            "--osmosis-batch-size 9 or more, or fewer shards",
        ),
        (
            ["--osmosis-ray", "--osmosis-rescore=data"],
            "--osmosis-ray and --osmosis-rescore contradict each other: give one of them",
        ),
        (
            ["--osmosis-ray", "--osmosis-ray-env=KEY=sk-1"],
            "--osmosis-ray-env 'KEY=sk-1': expected the name of a variable, not its value",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_a_sentence(
    project: Project, options: list[str], message: str
):
    project.rows("one")
    refused = project.run(*options)
    assert (refused.ret, refused.mistake) == (4, message)
    assert project.endpoint.requests == 0


@pytest.mark.slow
def test_one_shard_of_a_selection_is_divided_again_among_processes(
    project: Project, fleets: list[ProcessFleet]
):
    project.rows(*(f"row {number}" for number in range(9)))
    done = sharded(project, "--osmosis-shard=2/2")
    assert (done.ret, fleets[0].started) == (0, [0, 1])
    assert [row["row_index"] for row in done.report["rows"]] == [1, 3, 5, 7]
    assert project.endpoint.requests == 8
