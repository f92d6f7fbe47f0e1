"""`--osmosis-shard`: a part of the rows, and the parts together."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from osmosis_cli.main import cli
from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.sampling import parse_shard
from tests.support.endpoints import Endpoint
from tests.support.project import Project


def test_shards_divide_what_is_selected_and_share_its_digest(project: Project):
    project.rows(*"abcdefghij")
    path = project.path / "data.jsonl"
    whole = load_dataset(path, offset=1, limit=7, sample="5")
    parts = [
        load_dataset(path, offset=1, limit=7, sample="5", shard=parse_shard(f"{i}/2"))
        for i in (1, 2)
    ]
    assert [len(part) for part in parts] == [3, 2]
    for number, part in enumerate(parts):
        assert part.digest == whole.digest
        assert list(part.row_indices) == list(whole.row_indices)[number::2]
        for row_index in part.row_indices:
            assert part.row(row_index) == whole.row(row_index)
            assert part.row_name(row_index) == whole.row_name(row_index)
            assert part.row_digest(row_index) == whole.row_digest(row_index)


def test_rows_of_a_shard_can_be_named_by_a_hook(project: Project):
    project.rows(*"abcde")
    project.write(
        "conftest.py", "def pytest_osmosis_row_name(row, row_index): return f'named-{row_index}'"
    )
    session = project.run("--osmosis-no-journal", shard="2/2")
    assert [row["row_id"] for row in session.report["rows"]] == ["named-1", "named-3"]


@pytest.mark.slow
def test_sessions_over_shards_merge_into_the_session_over_all(project: Project):
    project.rows(*"abcde", {"user_prompt": "f", "ground_truth": "no"})
    project.run("--osmosis-no-journal", n="2", output="all.json")
    names = []
    for number in (1, 2, 3):
        session = project.run("--osmosis-no-journal", n="2", shard=f"{number}/3")
        assert {row["row_index"] for row in session.report["rows"]} == {number - 1, number + 2}
        assert session.report["config"]["settings"]["shard"] == f"{number}/3"
        (project.path / "out.json").rename(project.path / f"s{number}.json")
        names.append(str(project.path / f"s{number}.json"))
    whole_path = str(project.path / "whole.json")
    done = CliRunner().invoke(cli, ["eval", "merge", *names, "-o", whole_path])
    assert done.exit_code == 1, done.output  # as of the session over all: a run failed
    merged = json.loads(Path(whole_path).read_text())
    whole = json.loads((project.path / "all.json").read_text())
    for document in (merged, whole):
        document["summary"].pop("total_duration_ms")
    assert merged["summary"] == whole["summary"]
    assert merged["config"] == whole["config"]


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


def test_a_shard_without_rows_is_told(project: Project):
    project.rows("one")
    session = project.run(shard="2/2")
    assert session.ret == 5
    assert "data.jsonl: shard 2/2 of 1 row has no row; use fewer shards" in session.out
