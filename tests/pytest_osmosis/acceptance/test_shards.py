"""`--osmosis-shard`: a part of the rows, and the parts together."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.sampling import parse_part
from tests.support.endpoints import Endpoint
from tests.support.project import Project


def test_shards_divide_what_is_selected_and_share_its_digest(project: Project):
    project.rows(*"abcdefghij")
    path = project.path / "data.jsonl"
    whole = load_dataset(path, offset=1, limit=7, sample="5")
    parts = [
        load_dataset(path, offset=1, limit=7, sample="5", part=parse_part(f"{i}/2")) for i in (1, 2)
    ]
    assert [len(part) for part in parts] == [3, 2]
    for number, part in enumerate(parts):
        assert part.digest == whole.digest
        assert list(part.row_indices) == list(whole.row_indices)[number::2]
        for row_index in part.row_indices:
            assert part.row(row_index) == whole.row(row_index)
            assert part.row_name(row_index) == whole.row_name(row_index)
            assert part.row_digest(row_index) == whole.row_digest(row_index)


@pytest.mark.fault("two sessions have one report or one evaluation")
@pytest.mark.slow
def test_shards_run_beside_each_other_and_each_resumes_its_own_runs(
    project: Project, endpoint: Endpoint
):
    project.rows(*"abcd")
    endpoint.answers = lambda ask: ["hang"] if ask.row == "c" else ask.row
    command = [sys.executable, "-m", "pytest", *project.options(shard="1/2", output="1.json")]
    first = subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL)
    try:
        assert endpoint.wait_until(lambda seen: seen.by_row["c"] == 1, timeout_s=60)
        assert project.run(shard="2/2", output="2.json").outcomes == {"passed": 2}
        first.send_signal(signal.SIGINT)
        assert first.wait(60) == 2
    finally:
        first.kill()
        first.wait()
    endpoint.answers = None
    again = project.run(shard="1/2", output="1.json")
    assert (
        "journal .osmosis/runs/agent.agent_loop-data.shard-1-of-2-m, resuming: 1 of 2 runs done"
        in again.out
    )
    assert endpoint.by_row == {"a": 1, "b": 1, "c": 2, "d": 1}


def test_a_shard_without_rows_is_reported(project: Project):
    project.rows("one")
    session = project.run(shard="2/2")
    assert session.ret == 5
    assert "data.jsonl: shard 2/2 of 1 row has no row; use fewer shards" in session.out
