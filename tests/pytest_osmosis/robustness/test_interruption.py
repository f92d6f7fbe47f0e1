"""Signals: they end a session in order, once; what is done is kept and reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.endpoints import Ask, Endpoint
from tests.support.project import Project

SLOW = pytest.mark.slow
ONE_PROCESS, N2 = pytest.param(0, id="one_process"), pytest.param(2, id="n2", marks=SLOW)
WORKERS = pytest.mark.parametrize("workers", [ONE_PROCESS, N2])

STUBBORN = """
import asyncio
from pathlib import Path
from osmosis_ai.rollout import RolloutAgentLoop

class Stubborn(RolloutAgentLoop):
    name = "stubborn"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        try:
            await ctx.chat(ctx.request.messages)
        finally:
            Path("cancelled").touch()
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass

agent_loop = Stubborn()
"""
PATIENT = """
from unittest.mock import patch
patch("osmosis_ai.running.loop_thread.CANCEL_TIMEOUT_S", 600).start()
patch("osmosis_ai.running.engine.CLOSE_TIMEOUT_S", 600).start()
"""
"""A session that waits for stubborn agents until it is interrupted again."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    def answer(ask: Ask) -> str | list[str]:
        wish = str(ask.messages[-1]["content"])
        return ["hang"] if wish == "wait" else wish

    with Endpoint(answer) as endpoint:
        yield endpoint


def started(
    project: Project, workers: int, agent: str = "agent:agent_loop"
) -> subprocess.Popen[str]:
    options = project.options(
        f"-n{workers}", "--batch-size=4", "-pno:cacheprovider", "-pno:hypothesispytest", agent=agent
    )
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *options],
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=60)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.fault("Ctrl-C")
@pytest.mark.slow
def test_an_interrupt_while_workers_start_ends_with_one_sentence(project: Project):
    project.rows("alpha")
    project.write(
        "conftest.py",
        "import os, signal\ndef pytest_xdist_newgateway(): os.killpg(0, signal.SIGINT)\n",
    )
    process = started(project, workers=2)
    out = ended(process)
    assert process.returncode == 2
    assert "!! interrupted by SIGINT !!" in out
    assert "Traceback" not in out and "signals.py" not in out


@pytest.mark.fault("Ctrl-C")
def test_an_interrupt_while_the_agent_is_imported_ends_with_one_sentence(project: Project):
    project.rows("alpha")
    project.write(
        "interrupted.py",
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfrom agent import agent_loop\n",
    )
    process = started(project, workers=0, agent="interrupted:agent_loop")
    out = ended(process)
    assert process.returncode == 2, out
    assert "!! interrupted by SIGINT !!" in out
    assert "Traceback" not in out and "KeyboardInterrupt" not in out


def nobody_left(group: int) -> bool:
    for _ in range(3000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.fault("Ctrl-C", "SIGTERM, SIGHUP")
@SLOW
@WORKERS
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_session_and_reports_what_is_done(
    project: Project, endpoint: Endpoint, workers: int, name: str
):
    project.rows("wait", "a", "b", "c", *["wait"] * 5)  # pytest waits for the first
    process = started(project, workers)
    assert endpoint.wait_until(lambda e: e.requests == 7 and e.in_flight == 4, timeout_s=60)
    os.kill(process.pid, getattr(signal, name))
    out = ended(process)
    assert process.returncode == 2, out
    assert "3 rollouts, " in out
    assert f"! interrupted by {name}: 3 of 9 runs are done and kept !" in out
    assert "interrupts.py" not in out and "KeyboardInterrupt" not in out
    assert "run the same command again to resume" in out.splitlines()
    assert "partial: " not in out
    assert "Traceback" not in out and "INTERNALERROR" not in out
    report = json.loads((project.path / "out.json").read_text())
    assert report["summary"]["complete"] is False
    assert (report["summary"]["interrupted"], report["summary"]["verdict"]) == (name, "unfinished")
    assert [row["row_index"] for row in report["rows"]] == [1, 2, 3]
    assert nobody_left(process.pid)


@pytest.mark.fault("Ctrl-C")
def test_ctrl_c_before_there_is_a_terminal_is_one_line(project: Project):
    project.rows("a")
    project.write("conftest.py", "def pytest_configure():\n    raise KeyboardInterrupt\n")
    session = project.evaluate(*project.options("-n0"))
    assert (session.ret, session.out, session.err) == (2, "", "interrupted\n")


@pytest.mark.fault("Ctrl-C")
@SLOW
@WORKERS
def test_ctrl_c_in_a_terminal_reaches_the_workers_too_and_ends_the_same_way(
    project: Project, endpoint: Endpoint, workers: int
):
    project.rows("a", *["wait"] * 6)
    process = started(project, workers)
    assert endpoint.wait_until(lambda e: e.in_flight == 4, timeout_s=60)
    os.killpg(process.pid, signal.SIGINT)
    out = ended(process)
    assert process.returncode == 2, out
    assert "1 of 7 runs is done" in out
    assert "Traceback" not in out and "INTERNALERROR" not in out
    assert nobody_left(process.pid)


def wait_for(marker: Path) -> None:
    """Until the session's own code has made this file."""
    for _ in range(6000):
        if marker.exists():
            return
        time.sleep(0.01)
    pytest.fail(f"nobody has made {marker}")


NOTING = """
from pathlib import Path
from osmosis_ai.rollout import RolloutAgentLoop

class Noting(RolloutAgentLoop):
    name = "noting"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        wish = ctx.request.messages[-1]["content"]
        try:
            Path(wish).touch()
            return ctx.complete([(await ctx.chat(ctx.request.messages)).message])
        finally:
            Path(wish + "-left").touch()

agent_loop = Noting()
"""
INTERRUPTING = """
import time
from pathlib import Path
import pytest

def seen(name):
    for _ in range(6000):
        if Path(name).exists():
            return True
        time.sleep(0.01)

def pytest_runtest_logreport(report):
    assert seen("wait")
    pytest.exit("enough")  # to pytest an interrupt as well

def pytest_keyboard_interrupt():
    assert seen("wait-left"), "still in flight"
    Path("noted").touch()
"""


def test_what_is_in_flight_is_cancelled_before_other_plugins_hear_of_an_interrupt(
    project: Project, endpoint: Endpoint
):
    project.write("noting.py", NOTING)
    project.write("conftest.py", INTERRUPTING)
    project.rows("a", "wait")
    session = project.run("--batch-size=2", agent="noting:agent_loop")
    assert session.ret == 2
    assert (project.path / "noted").exists()


HOLDING = """
from osmosis_ai.rollout import RolloutAgentLoop

class Holding(RolloutAgentLoop):
    name = "holding"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        answer = await ctx.chat(ctx.request.messages)
        while answer.message["content"] == "spin":
            open("spinning", "a").close()
        return ctx.complete([*ctx.request.messages, answer.message])

agent_loop = Holding()
"""


@pytest.mark.fault("Ctrl-C")
@SLOW
@WORKERS
def test_code_that_holds_the_event_loop_does_not_hold_up_ctrl_c(project: Project, workers: int):
    project.write("holding.py", HOLDING)
    project.rows("a", "b", "spin", "c")
    process = started(project, workers, agent="holding:agent_loop")
    wait_for(project.path / "spinning")
    os.killpg(process.pid, signal.SIGINT)
    out = ended(process)
    assert process.returncode == 2, out
    assert "! interrupted by SIGINT: " in out
    assert "Traceback" not in out and "INTERNALERROR" not in out
    report = json.loads((project.path / "out.json").read_text())
    runs = [run for row in report["rows"] for run in row["runs"]]
    assert {run["outcome"] for run in runs} <= {"passed"}
    assert report["summary"]["complete"] is False
    assert nobody_left(process.pid)


EARLY = """
import signal
from pytest_osmosis.rollouts.pool import RolloutPool

cancel = RolloutPool.cancel

def cancel_and_interrupt(self):
    cancel(self)
    signal.raise_signal(signal.SIGINT)

RolloutPool.cancel = cancel_and_interrupt
"""


@pytest.mark.fault("Ctrl-C twice")
@SLOW
@pytest.mark.parametrize(("conftest", "agent"), [(PATIENT, "stubborn"), (EARLY, "agent")])
def test_a_second_ctrl_c_ends_at_once_without_a_traceback(
    project: Project, endpoint: Endpoint, conftest: str, agent: str
):
    project.write("stubborn.py", STUBBORN)
    project.write("conftest.py", conftest)
    project.rows(*["wait"] * 3)
    process = started(project, 0, agent=f"{agent}:agent_loop")
    assert endpoint.wait_until(lambda e: e.in_flight == 3, timeout_s=60)
    os.kill(process.pid, signal.SIGINT)
    if conftest == PATIENT:
        wait_for(project.path / "cancelled")
        os.kill(process.pid, signal.SIGINT)
    out = ended(process)
    assert process.returncode == 2, out
    assert "Exit: interrupted again\n" in out
    assert "Traceback" not in out
