"""What a plain evaluation imports: its own means, and no library that it has no use for."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

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
    *(
        "osmosis_ai.bridge",
        "osmosis_ai.embedded",
        "osmosis_ai.models.litellm.client",
        "osmosis_ai.rubric.evaluation",
    ),
    "osmosis_ai.rollout_server",
    *(
        f"pytest_osmosis.{name}"
        for name in (
            *(
                "user_code.command",
                "user_code.child_process",
                "analysis.baseline",
                "analysis.comparison",
                "dataset.parquet",
            ),
            *(
                "analysis.gates.early_stopping",
                "analysis.gates.evaluate",
                "analysis.gates.open_gates",
                "analysis.gates.parser",
                "reports.html",
                "reports.json_writer",
            ),
            *(
                "reports.markdown",
                "rollouts.rescore",
                "analysis.gates.result",
            ),
        )
    ),
}
"""What belongs to other kinds of agents, models, data, reports, or to gates."""

WAITS_FOR_NUMPY = """
import asyncio
import sys
import threading

answered = []
begun = threading.Event()


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" and not begun.is_set():
            with open("numpy.txt", "w") as file:
                print(len(answered), threading.current_thread().name, file=file)
            begun.set()


sys.meta_path.insert(0, Finder())


async def agent(ctx):
    prompt = ctx.request.messages[-1]["content"]
    answer = await ctx.chat(ctx.request.messages)
    answered.append(prompt)
    if prompt == "last" and not await asyncio.to_thread(begun.wait, 60):
        raise TimeoutError("numpy is not imported while a run is awaited")
    return ctx.complete([*ctx.request.messages, answer.message])
"""

REPORTING = {
    f"pytest_osmosis.{name}"
    for name in (
        "session.result_sink",
        "storage.run_store",
        "session.progress",
        "session.budget",
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


@pytest.mark.slow
def test_numpy_is_imported_in_a_thread_when_the_first_run_has_ended(project: Project) -> None:
    project.write("agent.py", WAITS_FOR_NUMPY)
    project.rows("first", "last")
    gate, by = "--osmosis-gate=mean - baseline >= -1", "--osmosis-by=ground_truth"
    for compares in ([], ["--osmosis-baseline=before.json", gate, by]):
        more = ("-n0", "--batch-size=2", "--osmosis-fresh", "-p", "no:hypothesispytest", *compares)
        session = project.apart(*project.options(*more, agent="agent:agent"))
        assert session.ret == 0, session.out
        answered, thread = (project.path / "numpy.txt").read_text().split()
        assert int(answered) >= 1
        assert thread == "osmosis-import"
        (project.path / "out.json").rename(project.path / "before.json")
