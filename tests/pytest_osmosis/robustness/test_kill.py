"""Killed for real, at any moment: nothing is lost, and hardly anything is paid twice.

    OSMOSIS_KILL_SEEDS=30 pytest -m "" tests/pytest_osmosis/robustness/test_kill.py

kills thirty sessions of each kind instead of two.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pytest_osmosis.acceptance.test_resume import steady
from tests.support.endpoints import Endpoint
from tests.support.project import Project

ROWS, BATCH = 40, 4
LATENCY_S = 0.03
SEEDS = range(int(os.environ.get("OSMOSIS_KILL_SEEDS", "2")))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(latency_s=LATENCY_S) as endpoint:
        yield endpoint


def command(project: Project, workers: int) -> list[str]:
    options = project.options(
        f"-n{workers}", f"--batch-size={BATCH}", "-pno:cacheprovider", "--osmosis-record=taped"
    )
    return [sys.executable, "-m", "pytest", *options]


def started(project: Project, workers: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(project, workers),
        cwd=project.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def run(project: Project, workers: int) -> str:
    done = subprocess.run(
        command(project, workers), cwd=project.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def gone_within(group: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def at_a_random_moment(endpoint: Endpoint, chance: random.Random) -> None:
    """Some requests have come in, and the next ones are somewhere on their way."""
    requests = chance.randrange(1, ROWS)
    assert endpoint.wait_until(lambda seen: seen.requests >= requests, timeout_s=60)
    time.sleep(chance.random() * LATENCY_S)


def reported(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.path / "out.json").read_text())
    return found


def check(project: Project, endpoint: Endpoint) -> None:
    """The report is that of an undisturbed evaluation, and hardly anything was asked twice.

    All calls were recorded: a session that replays them asks nothing.
    """
    report = reported(project)
    repeated = endpoint.requests - ROWS
    assert 0 <= repeated <= BATCH
    assert max(endpoint.by_row.values()) <= 2
    assert [path.name for path in (project.path / "taped").iterdir()] == ["calls.jsonl"]
    replayed = project.run("--osmosis-replay=taped", "--osmosis-no-journal").report
    assert endpoint.requests == ROWS + repeated
    assert steady(replayed)["rows"] == steady(report)["rows"]
    (project.path / "out.json").unlink()
    undisturbed = project.run("--osmosis-no-journal", f"--batch-size={BATCH}").report
    assert steady(report) == steady(undisturbed)


@pytest.mark.fault("the session is killed with SIGKILL")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "seed"),
    [
        pytest.param(workers, seed, id=f"{mode}-{seed}")
        for workers, mode in [(0, "one_process"), (2, "n2")]
        for seed in SEEDS
    ],
)
def test_a_killed_session_goes_on_where_it_was(
    project: Project, endpoint: Endpoint, workers: int, seed: int
):
    chance = random.Random(f"{workers} {seed}")
    project.rows(*(f"row {number}" for number in range(ROWS)))
    process = started(project, workers)
    try:
        at_a_random_moment(endpoint, chance)
        process.kill()
        process.wait()
        assert gone_within(process.pid, 60), "workers live on without their controller"
    finally:
        if not gone_within(process.pid, 0.01):
            os.killpg(process.pid, signal.SIGKILL)
    assert not (project.path / "out.json").exists()
    run(project, workers)
    check(project, endpoint)


@pytest.mark.fault("the head of the journal is lost")
@pytest.mark.slow
def test_a_killed_session_whose_journal_lost_its_first_lines_starts_anew(
    project: Project, endpoint: Endpoint
):
    project.rows(*(f"row {number}" for number in range(ROWS)))
    process = started(project, 2)
    assert endpoint.wait_until(lambda seen: seen.requests >= 9, timeout_s=60)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert gone_within(process.pid, 60)
    [journal] = (project.path / ".osmosis/runs").glob("*/journal.jsonl")
    journal.write_bytes(journal.read_bytes()[:-7] + b"\xff\x00?")
    said = run(project, 2)
    assert "starting anew: the first lines of the journal are lost" in said
    assert len(list((project.path / ".osmosis/runs").glob("*/journal.jsonl"))) == 2
    project.path.joinpath("out.json").unlink()
    assert "starting anew" not in run(project, 2)


@pytest.mark.fault("a worker is killed")
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_worker_is_made_up_for(project: Project, endpoint: Endpoint, seed: int):
    chance = random.Random(f"worker {seed}")
    project.rows(*(f"row {number}" for number in range(ROWS)))
    process = started(project, 2)
    try:
        at_a_random_moment(endpoint, chance)
        workers = children(process.pid)
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        process.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    lost = reported(project)["summary"]["errors"]
    assert set(lost.items()) <= {("worker_lost", 1)}
    if lost:
        run(project, 2)
    check(project, endpoint)
