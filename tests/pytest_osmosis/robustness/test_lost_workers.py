"""Workers that die or freeze: the culprit alone is blamed, the rest comes out right."""

from __future__ import annotations

import pytest

from tests.support.endpoints import Endpoint
from tests.support.project import Project

AGENT = """
import os
import signal
import time
from osmosis_ai.rollout import RolloutAgentLoop

class Agent(RolloutAgentLoop):
    name = "deadly"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        answer = await ctx.chat(ctx.request.messages)
        wish = ctx.request.messages[-1]["content"]
        if wish == "exit":
            os._exit(3)
        if wish in ("kill", "freeze"):
            os.kill(os.getpid(), signal.SIGKILL if wish == "kill" else signal.SIGSTOP)
            time.sleep(60)  # this thread may go on for a moment
        return ctx.complete([*ctx.request.messages, answer.message])

agent_loop = Agent()
"""


@pytest.mark.fault("a worker is killed", "a worker freezes")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("exit", "died during this run"),
        ("kill", "died during this run"),
        ("freeze", "was frozen for"),
    ],
)
def test_a_worker_that_is_lost_costs_one_run(
    project: Project, endpoint: Endpoint, wish: str, message: str
):
    project.write("deadly.py", AGENT)
    asked = [f"row {index}" for index in range(11)]
    asked.insert(5, wish)
    project.rows(*({"user_prompt": each, "ground_truth": each, "id": each} for each in asked))
    session = project.run(
        "--batch-size=6",
        "--junitxml=out.xml",
        *(["--osmosis-worker-timeout=5"] if wish == "freeze" else []),
        workers=2,
        agent="deadly:agent_loop",
    )
    assert session.ret == 1
    assert session.outcomes == {"passed": 11, "errors": 1}
    lost = [run for run in session.runs if run["error_type"] is not None]
    assert [(run["error_type"], run["scores"]) for run in lost] == [("worker_lost", {})]
    assert message in lost[0]["error"]
    [case] = (each for each in session.junit.iter("testcase") if each.attrib["name"][:3] != "row")
    kept = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
    assert (kept["osmosis_row_index"], kept["osmosis_error_type"]) == ("5", "worker_lost")
    assert session.report["rows"][5]["runs"] == lost
    assert session.report["rows"][5]["row_id"] == wish
    assert all(run["scores"] == {"rewards:exact": 1.0} for run in session.runs if run not in lost)
    assert endpoint.max_in_flight <= 6
    assert max(endpoint.by_row.values()) <= 2


@pytest.mark.slow
def test_a_worker_that_is_lost_amid_a_report_leaves_no_case_without_a_name(project: Project):
    project.rows("a", "b", "c", "d")
    project.write(
        "conftest.py",
        """
import os
import signal
from pathlib import Path

import pytest

@pytest.hookimpl(trylast=True)  # xdist has sent it
def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ and "row-1" in report.nodeid and not was_there():
        os.kill(os.getpid(), signal.SIGKILL)

def was_there():
    try:
        Path("once").touch(exist_ok=False)
    except FileExistsError:
        return True
""",
    )
    session = project.run("--junitxml=out.xml", workers=2)
    assert session.outcomes == {"passed": 4}
    assert session.junit is not None
    cases = sorted(case.attrib["name"] for case in session.junit.iter("testcase"))
    assert cases == [f"row-{number}[run-0]" for number in range(4)]


@pytest.mark.fault("workers keep dying")
@pytest.mark.slow
def test_workers_that_keep_dying_end_the_session_and_the_rest_is_reported_as_not_run(
    project: Project, endpoint: Endpoint
):
    project.write("deadly.py", AGENT)
    project.rows(*[{"user_prompt": "exit", "ground_truth": str(i)} for i in range(12)])
    session = project.run(
        "--batch-size=2", "--max-worker-restart=2", workers=2, agent="deadly:agent_loop"
    )
    assert session.ret == 1
    assert "maximum crashed workers reached: 2" in session.out
    assert session.report["summary"]["complete"] is False
    assert "of 12 selected runs" in session.out


LAST = """
import asyncio
import os
import signal
from pathlib import Path
from osmosis_ai.rollout import RolloutAgentLoop

died = Path("died")

class Agent(RolloutAgentLoop):
    name = "last"
    beside = asyncio.Event()
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        wish = ctx.request.messages[-1]["content"]
        if wish == "beside":
            self.beside.set()
            while not died.exists():
                await asyncio.sleep(0.01)
        if wish == "kill" and not died.exists():
            await self.beside.wait()
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await ctx.chat(ctx.request.messages)
        return ctx.complete([*ctx.request.messages, answer.message])

agent_loop = Agent()
"""


@pytest.mark.fault("a worker is killed")
@pytest.mark.slow
def test_what_was_given_to_a_lost_worker_is_run_when_the_others_have_been_sent_home(
    project: Project, endpoint: Endpoint
):
    project.write("last.py", LAST)
    project.rows("beside", "kill", "c", "d", "e", "f")
    session = project.run("--batch-size=4", workers=2, agent="last:agent_loop")
    assert session.outcomes == {"passed": 6}


EDITS = """
import os
from pathlib import Path
from osmosis_ai.rollout import RolloutAgentLoop

class Agent(RolloutAgentLoop):
    name = "edits"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        answer = await ctx.chat(ctx.request.messages)
        if ctx.request.messages[-1]["content"] == "edit":
            with Path(__file__).open("a") as file:
                file.write("# another version")
            os._exit(3)
        return ctx.complete([*ctx.request.messages, answer.message])

agent_loop = Agent()
"""


@pytest.mark.fault("the agent's source changed")
@pytest.mark.slow
def test_a_worker_that_loads_another_version_of_the_agent_runs_nothing(project: Project):
    project.write("edits.py", EDITS)
    project.rows("a", "edit", *"bcdefghij")
    session = project.run(workers=1, agent="edits:agent_loop")
    assert session.ret == 1
    [stopped] = [line for line in session.lines if line.startswith("stopped: ")]
    assert stopped.startswith("stopped: edits.py has changed since the session began: worker gw1 ")
    assert session.report["summary"]["complete"] is False
    assert session.outcomes["errors"] == 1
    assert "INTERNALERROR" not in session.out


@pytest.mark.fault("it changes between a session and the next, or under one")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["agent.py", "rewards.py", "data.jsonl"])
def test_workers_that_load_other_files_than_were_checked_are_a_usage_error(
    project: Project, endpoint: Endpoint, name: str
):
    project.rows("a", "b")
    changed = '{"system_prompt": "s", "user_prompt": "c"}\\n' if name == "data.jsonl" else "# new"
    project.write(
        "conftest.py",
        f"""
from pathlib import Path

def pytest_configure_node(node):
    path = Path({name!r})
    path.write_text(path.read_text() + {changed!r})
""".replace("path.read_text() + ", "" if name == "data.jsonl" else "path.read_text() + "),
    )
    session = project.run("--osmosis-limit=1", workers=1)
    assert session.ret == 4, session.out
    assert f"{name} has changed since the session began: worker gw0" in session.mistake
    assert endpoint.requests == 0
