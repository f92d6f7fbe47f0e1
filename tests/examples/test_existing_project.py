"""The commands that the README of a remote-rollout project names, in such a project, unmodified."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.embedded import EmbeddedEndpoint, start_embedded
from tests.osmosis_ai.rollout_server.trainer import KEY, Served, Trainer, text_answer
from tests.support.command import Osmosis

PROJECT = Path(__file__).parents[1] / "existing_project"
MODULES = ("server", "tools", "rewards")
AGENT = ("-m", "server:agent_loop")
DATA = (*AGENT, "-d", "test_data.jsonl")
PORT = re.compile(r"http://[\d.]+:(\d+)")


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
    return Osmosis(monkeypatch, capsys)


def test_it_is_valid(osmosis: Osmosis):
    status, out, err = osmosis("validate", *AGENT)
    assert (status, [line.split()[0] for line in out.splitlines()]) == (0, ["ok"] * 4), err


def test_its_rows_are_tried_and_the_results_written(
    osmosis: Osmosis, project: Path, endpoint: EmbeddedEndpoint
):
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


@pytest.mark.slow
def test_it_is_evaluated(project: Path):
    words = ("eval", *DATA, "--eval-fn", "rewards:compute_reward", "--model", "embedded/perfect")
    done = run_apart(project, "-m", "osmosis_cli", *words, "-o", "results.json", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((project / "results.json").read_text())["summary"]
    assert summary["eval_fns"]["rewards:compute_reward"]["mean"] == 1.0


WAYS = {
    "python -m server": "-m server",
    "uvicorn": "-m uvicorn server:app --host 0.0.0.0 --port 0 --no-access-log",
    "osmosis serve": (
        "-m osmosis_cli serve -m server:agent_loop -p 0 --skip-register --log ./rollout_logs"
    ),
    "osmosis serve --local": (
        "-m osmosis_cli serve -m server:agent_loop -p 0 --local --log rollout_logs"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_it_is_served_to_a_trainer(project: Path, way: str):
    with Trainer(model_with_a_tool) as trainer, serving(project, WAYS[way], trainer) as port:
        served = Served(port, None if way.endswith("--local") else KEY)
        assert served.health()["agent_loop"] == "calculator"
        question = {"role": "user", "content": "What is 2 plus 40?"}
        answer = served.init("rollout-abc123", trainer, messages=[question])
        tools = [tool["function"]["name"] for tool in answer.json()["tools"]]
        assert (answer.status, "add" in tools) == (202, True)
        result = trainer.result("rollout-abc123")
    assert result["final_messages"][-1]["content"] == "#### 42"
    assert result["metrics"]["num_tool_calls"] == 1
    [folder] = (project / "rollout_logs").iterdir()
    assert folder.name.isdigit()
    lines = (folder / "rollout-abc123.jsonl").read_text().splitlines()
    assert "pre_run" in [json.loads(line)["event"] for line in lines]


def model_with_a_tool(body: dict[str, Any]) -> dict[str, Any]:
    """Call the tool `add` once, then answer with what it gave."""
    if body["messages"][-1]["role"] == "tool":
        return text_answer(f"#### {float(body['messages'][-1]['content']):g}")
    call = {"name": "add", "arguments": '{"a": 2, "b": 40}'}
    calls = [{"id": "call_1", "type": "function", "function": call}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}]}


@contextmanager
def serving(project: Path, words: str, trainer: Trainer) -> Iterator[int]:
    """The project's server in a process of its own, and its port."""
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        "ROLLOUT_SERVER_PORT": "0",
        "ROLLOUT_DEBUG_DIR": "./rollout_logs",
        "OSMOSIS_SERVER_API_KEY": KEY,
        "OSMOSIS_ALLOWED_TRAINERS": trainer.url,
    }
    with subprocess.Popen(
        [sys.executable, *words.split()],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            yield next(int(found[1]) for line in server.stdout if (found := PORT.search(line)))
        finally:
            server.terminate()
            server.stdout.read()


def run_apart(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=project, capture_output=True, text=True, check=False
    )
