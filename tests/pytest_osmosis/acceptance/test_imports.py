"""What a plain evaluation imports: its own means, and no library that it has no use for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import osmosis_ai
import pytest_osmosis
from tests.support.endpoints import Ask
from tests.support.project import Project

TELLS_MODULES = """
import os
import sys
from importlib.util import find_spec


def pytest_unconfigure(config):
    with open(os.environ.get("PYTEST_XDIST_WORKER", "main") + ".txt", "w") as file:
        print(*sys.modules, file=file)
"""

LIBRARIES = {
    *("litellm", "pyarrow", "httpx", "jinja2", "yaml", "click", "certifi"),
}
CLIENT = {"aiohttp", "http.client", "urllib.request"}
"""aiohttp and what it imports itself: for the processes that call the model, and no others."""
ELSEWHERE = {
    "osmosis_ai.bridge", "osmosis_ai.embedded", "osmosis_ai.models.litellm.client",
    "osmosis_ai.rubric.evaluation", "osmosis_ai.rollout_server",
    *(
        f"pytest_osmosis.{name}"
        for name in (
            "user_code.command", "user_code.child_process", "features.comparison.baseline",
            "features.comparison.compare", "features.comparison.feature",
            "features.early_stopping.stopping", "analysis.gates.evaluate", "analysis.gates.parser",
            "dataset.parquet", "features.html.report", "features.markdown.report",
            "reports.json_writer",
            "features.rescore.feature",
        )
    ),
}  # fmt: skip
"""What belongs to other kinds of agents, models, data, reports, or to gates."""

REPORTING = {
    f"pytest_osmosis.{name}"
    for name in (
        "storage.run_store",
        "session.progress",
        "session.supervisor",
    )
}
"""What the process that reports has to do."""


def modules(project: Project, process: str) -> set[str]:
    return set((project.path / f"{process}.txt").read_text().split())


@pytest.mark.slow
def test_aiohttp_itself_imports_the_standard_clients():
    loaded = "import sys, aiohttp; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert set(found.stdout.split()) >= CLIENT


def test_what_must_not_be_imported_is_there() -> None:
    assert [name for name in sorted(ELSEWHERE) if find_spec(name) is None] == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_plain_evaluation_imports_no_more_than_it_uses(project: Project, workers: int) -> None:
    project.write("conftest.py", TELLS_MODULES)
    project.rows("a", "b")
    session = project.apart(
        *project.options(f"-n{workers}", "-p", "no:hypothesispytest", "-p", "no:anyio", output=None)
    )
    assert session.outcomes == {"passed": 2}
    for process in ("main", "gw0")[: 1 + workers]:
        loaded = modules(project, process)
        assert "pytest_osmosis.evaluation" in loaded
        assert loaded & LIBRARIES == set(), process
        assert ("numpy" in loaded) == (process == "main")  # figures are made there
        calls_model = process != "main" or not workers
        assert loaded & CLIENT == (CLIENT if calls_model else set()), process
        assert loaded & ELSEWHERE == set(), process
        assert loaded & REPORTING == (REPORTING if process == "main" else set())


MOST = 13
"""Coroutines of ours and the agent's, down to what reads an answer in parts; it only falls."""
OURS = tuple(str(Path(package.__path__[0])) for package in (osmosis_ai, pytest_osmosis))
AGENT = """
import asyncio

tasks = []


async def agent(ctx):
    tasks.append(asyncio.current_task())
    answer = await ctx.chat(list(ctx.request.messages))
    return ctx.complete([*ctx.request.messages, answer.message], reward=1.0)
"""
BODY = json.dumps({"choices": [{"message": {"role": "assistant", "content": "a"}}]}).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
    BODY
)


def chain_of(task: asyncio.Task[Any]) -> list[str]:
    """Return the coroutines that a task awaits, from the outermost to those of other packages."""
    found: list[str] = []
    inner: Any = task.get_coro()
    while (code := getattr(inner, "cr_code", None)) is not None:
        if code.co_filename.startswith(OURS) or code.co_filename.endswith("chain.py"):
            found.append(code.co_name)
        inner = inner.cr_await
    return found


def waiting_chain(tasks: list[asyncio.Task[Any]], innermost: str) -> list[str]:
    """Return the chain of the task once it ends in `innermost`; from another thread."""
    for _ in range(6000):
        chain = chain_of(tasks[-1])
        if chain[-1] == innermost:
            return chain
        time.sleep(0.01)
    raise AssertionError(f"the task awaits no {innermost}: {chain}")


def test_a_model_call_passes_at_most_so_many_coroutines(project: Project) -> None:
    project.write("chain.py", AGENT)
    project.rows("first", "a")  # whether the agent awaits anything is noted in its first run
    chains: list[list[str]] = []

    def answer(ask: Ask) -> Iterator[bytes]:
        tasks = sys.modules["chain"].tasks
        chains.append(waiting_chain(tasks, "request"))
        yield HEAD + BODY[:10]
        chains.append(waiting_chain(tasks, "_received"))
        yield BODY[10:]

    project.endpoint.answers = answer
    session = project.run(agent="chain:agent", eval_fn=None)
    assert session.outcomes == {"passed": 2}
    assert len(chains) == 4
    for chain in chains[2:]:
        assert chain[0] == "_run" and "agent" in chain
        assert len(chain) <= MOST, " ".join(chain)


def test_a_session_reads_nothing_of_modules_that_other_threads_import(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("osmosis_ai.models.litellm.library", "numpy", "unittest", "litellm"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))  # its import has just begun
    project.rows("a", {"user_prompt": "b", "ground_truth": "x"})
    project.write("test_it.py", "class TestIt:\n    def test_it(self): ...\n")
    session = project.run("test_it.py", "data.jsonl")
    assert session.outcomes == {"passed": 2, "failed": 1}, session.out + session.err
