"""`osmosis eval --ray`: the same evaluation on a cluster, whatever happens to its processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.endpoints import Ask, completion, reply
from tests.support.project import Folder
from tests.with_ray.conftest import KEY, RayCluster

PATIENCE_S = 300.0
ROWS = 24
_VOLATILE = ("duration_ms", "llm_ms", "started_at", "cached")


def words(project: Folder, *more: str) -> list[str]:
    """The command; the batch size is 4."""
    given = {
        **({} if "-m" in more else {"-m": "agent:agent_loop"}),
        "-d": "data.jsonl",
        "--eval-fn": "rewards:exact",
        "--model": "m",
        "--base-url": project.endpoint.base_url,
        "--batch-size": "4",
        "-o": "out.json",
    }
    options = [word for pair in given.items() for word in pair]
    return [sys.executable, "-m", "osmosis_cli", "eval", *options, *more]


def on(cluster: RayCluster, shards: int = 2) -> list[str]:
    return [f"--ray={cluster.address}", f"--shards={shards}"]


def evaluate(project: Folder, *more: str) -> subprocess.CompletedProcess[str]:
    command = words(project, *more)
    return subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)


def started(project: Folder, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words(project, *more),
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def report(project: Folder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.path / "out.json").read_text())
    return found


def runs(project: Folder) -> list[dict[str, Any]]:
    """The runs of the report, without what differs from one session to the next."""
    return [
        {name: value for name, value in run.items() if name not in _VOLATILE}
        for row in report(project)["rows"]
        for run in row["runs"]
    ]


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


class Gate:
    """Answers the first eight requests, and the others once it is open."""

    ANSWERED = 8
    ASKED = ANSWERED + 4
    """When all of the batch size waits at the gate."""

    def __init__(self, project: Folder) -> None:
        self.is_open = False
        project.endpoint.answers = self

    def __call__(self, ask: Ask) -> Any:
        return None if ask.endpoint.requests <= self.ANSWERED else self._later(ask)

    def _later(self, ask: Ask) -> Iterator[float | bytes]:
        while not self.is_open:
            yield 0.02
        yield reply(200, completion(ask.row, model=ask.model))


def kept(project: Folder) -> int:
    """How many runs the journal holds."""
    [journal] = project.path.glob(".osmosis/runs/*/journal.jsonl")
    return sum(line.startswith(b'{"run":') for line in journal.read_bytes().splitlines())


def processes(project: Folder) -> Iterator[tuple[int, str]]:
    """The processes that run in copies of the project, and their command lines."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if not (folder / "cwd" / project.endpoint.netloc.replace(":", "-")).exists():
                continue
            yield int(folder.name), (folder / "cmdline").read_bytes().decode().replace("\0", " ")
        except OSError:
            continue


def shards_of(project: Folder) -> list[int]:
    return [pid for pid, line in processes(project) if "shards.process" in line]


@pytest.fixture(autouse=True)
def mark(project: Folder) -> None:
    """A file by which the copies of this project are known."""
    project.write(project.endpoint.netloc.replace(":", "-"), "")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """However a session ends, its shards leave nothing in the folder of temporary files."""
    left = Path(tempfile.gettempdir()).glob
    before = {*left("osmosis-shard-*"), *left("osmosis-project-*")}
    yield
    assert {*left("osmosis-shard-*"), *left("osmosis-project-*")} <= before


def test_a_cluster_gives_what_this_machine_gives_and_keeps_no_secret(
    project: Folder, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
):
    project.write(".env", f"ANOTHER_TOKEN={KEY}")
    project.rows(*(f"row {number}" for number in range(8)), "raise", "give up")
    here = evaluate(project, "--n", "2", "-q")
    expected = runs(project)
    assert here.returncode == 1, here.stdout + here.stderr
    monkeypatch.delenv("OPENAI_API_KEY")
    there = evaluate(project, "--n", "2", "-q", "--fresh", "--api-key", KEY, *on(cluster))
    assert there.returncode == 1 and "ray" not in there.stderr
    assert runs(project) == expected
    assert project.endpoint.requests == 2 * 16
    assert summary(there.stdout) == summary(here.stdout)
    assert not list(secrets_below(cluster.folder))
    assert KEY not in there.stdout + there.stderr
    wait_until(lambda: not shards_of(project))


def summary(out: str) -> list[str]:
    """The lines of the summary, but for how long it took."""
    lines = out.splitlines()
    start = next(at for at, line in enumerate(lines) if "osmosis summary" in line)
    return lines[start:-1]


def secrets_below(folder: Path) -> Iterator[Path]:
    """Files of Ray's that hold the key: its logs, packages, and the object store of its memory."""
    stores = [path for path in Path("/dev/shm").glob("*") if path.is_file()]
    for path in [*folder.rglob("*"), *stores]:
        if path.is_file() and KEY.encode() in path.read_bytes():
            yield path


def test_one_ctrl_c_ends_all_shards_and_the_same_command_goes_on(
    project: Folder, cluster: RayCluster
):
    project.rows(*(f"row {number}" for number in range(ROWS)))
    gate = Gate(project)
    session = started(project, *on(cluster))
    wait_until(lambda: project.endpoint.requests == gate.ASKED)
    assert len(shards_of(project)) == 2
    session.send_signal(signal.SIGINT)
    out, _ = session.communicate(timeout=PATIENCE_S)
    assert session.returncode == 2 and "interrupted by SIGINT" in out
    wait_until(lambda: not shards_of(project))
    assert (len(runs(project)), project.endpoint.requests) == (gate.ANSWERED, gate.ASKED)
    gate.is_open = True
    rest = evaluate(project, *on(cluster))
    assert rest.returncode == 0, rest.stdout
    assert f"resuming: {gate.ANSWERED} of {ROWS} runs done" in rest.stdout
    assert project.endpoint.requests == gate.ASKED + ROWS - gate.ANSWERED
    assert len(runs(project)) == ROWS


def test_a_killed_worker_of_ray_costs_only_what_was_in_flight(project: Folder, cluster: RayCluster):
    project.rows(*(f"row {number}" for number in range(ROWS)))
    gate = Gate(project)
    session = started(project, *on(cluster))
    wait_until(lambda: project.endpoint.requests == gate.ASKED and kept(project) == gate.ANSWERED)
    before = shards_of(project)
    [worker] = {pid for pid, line in processes(project) if line.startswith("ray::osmosis-shard-1")}
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not {*before} <= {*shards_of(project)})
    gate.is_open = True
    out, _ = session.communicate(timeout=PATIENCE_S)
    assert session.returncode == 0, out
    assert len(runs(project)) == ROWS
    assert project.endpoint.requests == ROWS + 2


def test_a_run_that_kills_its_process_is_the_only_one_that_fails(
    project: Folder, cluster: RayCluster
):
    project.write(
        "deadly.py",
        "import os\nfrom agent import Agent\n\nclass Deadly(Agent):\n"
        "    async def run(self, ctx):\n"
        "        if ctx.request.messages[-1]['content'] == 'row 5':\n"
        "            os.abort()\n"
        "        return await super().run(ctx)\n\nagent_loop = Deadly()\n",
    )
    project.rows(*(f"row {number}" for number in range(12)))
    done = evaluate(project, *on(cluster, 1), "-m", "deadly:agent_loop")
    assert done.returncode == 1, done.stdout
    lost = [run for run in runs(project) if run["error"]]
    assert [run["error_type"] for run in lost] == ["worker_lost"]
    assert "its process was ended by SIGABRT during this run" in lost[0]["error"]
    assert report(project)["rows"][5]["runs"][0]["error"]
    assert len(runs(project)) == 12


def test_a_killed_driver_takes_its_shards_with_it_and_loses_nothing_that_was_finished(
    project: Folder, cluster: RayCluster
):
    project.rows(*(f"row {number}" for number in range(ROWS)))
    gate = Gate(project)
    session = started(project, *on(cluster))
    wait_until(lambda: project.endpoint.requests == gate.ASKED and kept(project) == gate.ANSWERED)
    session.kill()
    session.communicate()
    wait_until(lambda: not shards_of(project))
    gate.is_open = True
    rest = evaluate(project)  # on this machine alone: the journal is the same
    assert rest.returncode == 0, rest.stdout
    assert project.endpoint.requests == gate.ASKED + ROWS - gate.ANSWERED
    assert len(runs(project)) == ROWS


def test_calls_are_recorded_and_replayed_as_on_this_machine_also_after_a_killed_driver(
    project: Folder, cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    project.rows(*(f"row {number}" for number in range(ROWS)))
    gate = Gate(project)
    session = started(project, *on(cluster), "--record", str(elsewhere))
    wait_until(lambda: project.endpoint.requests == gate.ASKED and kept(project) == gate.ANSWERED)
    session.kill()
    session.communicate()
    wait_until(lambda: not shards_of(project))
    gate.is_open = True
    rest = evaluate(project, *on(cluster), "--record", str(elsewhere))
    assert f"resuming: {gate.ANSWERED} of {ROWS} runs done" in rest.stdout
    expected = runs(project)
    assert evaluate(project, "--record", "here", "--fresh").returncode == 0
    recorded = (elsewhere / "calls.jsonl").read_bytes()
    assert (project.path / "here/calls.jsonl").read_bytes() == recorded
    asked = project.endpoint.requests
    for replay in (["--replay", str(elsewhere), *on(cluster)], ["--replay", str(elsewhere)]):
        replayed = evaluate(project, *replay, "--fresh")
        assert replayed.returncode == 0, replayed.stdout
        assert runs(project) == expected
    assert project.endpoint.requests == asked
    assert not list(secrets_below(cluster.folder)) and KEY.encode() not in recorded


def test_a_spent_budget_stops_all_shards(project: Folder, cluster: RayCluster):
    project.rows(*(f"row {number}" for number in range(ROWS)))
    project.endpoint.latency_s = 0.1
    done = evaluate(project, *on(cluster), "--max-total-tokens", "30")
    assert done.returncode == 1
    assert "the budget of 30 tokens is spent" in done.stdout
    assert len(runs(project)) == project.endpoint.requests < ROWS


def test_the_end_of_a_cluster_of_ones_own_is_said_and_loses_nothing_that_was_finished(
    project: Folder, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "2")
    monkeypatch.setenv("TMPDIR", str(project.path))  # too long for Ray's sockets
    project.rows(*(f"row {number}" for number in range(ROWS)))
    gate = Gate(project)
    session = started(project, "--ray", "--shards=1")
    wait_until(lambda: project.endpoint.requests == gate.ASKED and kept(project) == gate.ANSWERED)
    [client] = children(session.pid, "osmosis_executors.ray.client")
    [head] = children(client, "gcs_server")
    [folder] = folders_of(head)
    assert folder.is_dir()
    os.kill(head, signal.SIGKILL)
    out, _ = session.communicate(timeout=PATIENCE_S)
    assert (session.returncode, len(runs(project))) == (1, gate.ANSWERED)
    assert "a Ray cluster of this machine, started for the session" in out
    assert "stopped: the Ray cluster went away; the same command resumes" in out
    assert not folder.exists()
    wait_until(lambda: not shards_of(project))
    gate.is_open = True
    rest = evaluate(project)
    assert (rest.returncode, len(runs(project))) == (0, ROWS)
    assert project.endpoint.requests == gate.ASKED + ROWS - gate.ANSWERED


def children(parent: int, word: str) -> list[int]:
    """The children of a process whose command lines hold a word."""
    folder = Path("/proc", str(parent), "task")
    found = [
        int(pid) for task in folder.iterdir() for pid in (task / "children").read_text().split()
    ]
    return [
        pid for pid in found if word.encode() in Path("/proc", str(pid), "cmdline").read_bytes()
    ]


def folders_of(head: int) -> set[Path]:
    """The folders of the clusters that a process of Ray's is started with."""
    line = Path("/proc", str(head), "cmdline").read_text()
    return {Path(found) for found in re.findall(r"/tmp/osmosis-ray-\w+", line)}


def test_what_is_missing_on_the_cluster_is_said_in_a_sentence(project: Folder, cluster: RayCluster):
    project.rows("one")
    refused = evaluate(project, "--ray=127.0.0.1:1", "--shards=1")
    assert refused.returncode == 4
    assert "--ray 127.0.0.1:1: no cluster can be used" in refused.stderr
    refused = evaluate(project, *on(cluster, 1), "--ray-cpus=64")
    assert (refused.returncode, refused.stderr.strip().splitlines()[-1]) == (
        4,
        "ERROR: --ray-cpus 64: the cluster has 2 processors in all",
    )
    assert project.endpoint.requests == 0
