"""The commands that the README of a remote-rollout project names, in such a project, unmodified."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from osmosis_ai.embedded import EmbeddedEndpoint, start_embedded
from tests.command import Osmosis, command

PROJECT = Path(__file__).parents[1] / "existing_project"
MODULES = ("server", "tools", "rewards")
AGENT = ("-m", "server:agent_loop")
DATA = (*AGENT, "-d", "test_data.jsonl")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddedEndpoint]:
    with start_embedded("perfect") as endpoint:
        yield endpoint


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    others = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(others)


@pytest.fixture
def osmosis(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Osmosis:
    return command(monkeypatch, capsys)


def test_it_is_valid(osmosis: Osmosis) -> None:
    status, out, err = osmosis("validate", *AGENT)
    assert (status, [line.split()[0] for line in out.splitlines()]) == (0, ["ok"] * 4), err


def test_its_rows_are_tried_and_the_results_written(
    osmosis: Osmosis, project: Path, endpoint: EmbeddedEndpoint
) -> None:
    model = ("--model", endpoint.model, "--base-url", endpoint.base_url)
    status, out, err = osmosis("test", *DATA, *model, "-o", "results.json", "--debug")
    assert status == 0, err
    assert "  tool       " in out
    summary = json.loads((project / "results.json").read_text())["summary"]
    assert (summary["total"], summary["passed"], summary["failed"]) == (5, 5, 0)
    events = [json.loads(line)["event"] for line in one_trace(project / ".osmosis" / "debug")]
    assert "pre_run" in events
    status, out, err = osmosis("test", *DATA, *model, "-q", "--limit", "2")
    assert (status, out.split("\n")[0]) == (0, ""), err


def one_trace(folder: Path) -> list[str]:
    return next(folder.rglob("*.jsonl")).read_text().splitlines()


def test_it_is_stepped_through(osmosis: Osmosis, endpoint: EmbeddedEndpoint) -> None:
    model = ("--model", endpoint.model, "--base-url", endpoint.base_url)
    words = ("test", *DATA, *model, "--interactive", "--row", "3")
    status, out, err = osmosis(*words, stdin=b"?\nm\nn\nc\nq\n")
    assert status == 0, err
    assert "row-3: What is 100 / 8?" in out
    assert "  help      show these commands" in out
    assert "row-3     COMPLETED" in out


@pytest.mark.slow
def test_it_is_evaluated(project: Path) -> None:
    words = ("eval", *DATA, "--eval-fn", "rewards:compute_reward", "--model", "embedded/perfect")
    done = run_apart(project, "-m", "osmosis_cli", *words, "-o", "results.json", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((project / "results.json").read_text())["summary"]
    assert summary["eval_fns"]["rewards:compute_reward"]["mean"] == 1.0


@pytest.mark.slow
def test_uvicorn_serves_its_application(project: Path) -> None:
    words = [sys.executable, "-m", "uvicorn", "server:app", "--port", "0", "--no-access-log"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    with subprocess.Popen(
        words, cwd=project, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            told = (line.partition("running on ")[2] for line in server.stderr)
            url = next(text.split()[0] for text in told if text)
            with urllib.request.urlopen(f"{url}/health", timeout=20) as reply:
                assert json.loads(reply.read())["agent_loop"] == "calculator"
        finally:
            server.terminate()
            server.stderr.read()


def run_apart(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=project, capture_output=True, text=True, check=False
    )
