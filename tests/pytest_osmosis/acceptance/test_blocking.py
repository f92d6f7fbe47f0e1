"""Agents that block the event loop: noticed, reported once, moved to threads if none awaits."""

from __future__ import annotations

import pytest

from tests.support.modes import each_mode
from tests.support.project import Project

BLOCKING = """
import time

from osmosis_ai.rollout import RolloutAgentLoop


class Agent(RolloutAgentLoop):
    name = "blocking"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        time.sleep(0.12)
        messages = list(ctx.request.messages)
        print("asked for", messages[-1]["content"])
        answer = await ctx.chat(messages, **ctx.request.completion_params)
        return ctx.complete([*messages, answer.message])


agent_loop = Agent()


async def judge(solution_str, ground_truth, extra_info):
    time.sleep(0.12)
    return 1.0 if solution_str == ground_truth else 0.0
"""


IN_ONE_GO = """
import json
import threading
import time
import urllib.request


async def agent(messages, model, base_url, api_key):
    time.sleep(0.12)
    print("asked for", messages[-1]["content"], "in", threading.current_thread().name)
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        json.dumps({"messages": messages}).encode(),
        {"Authorization": f"Bearer {api_key}"},
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]
"""


def test_an_agent_that_never_awaits_is_moved_to_threads_where_the_batch_size_holds(
    project: Project,
):
    project.write("agent.py", IN_ONE_GO)
    project.rows(*(f"row {number}" for number in range(12)))
    session = project.run("--osmosis-batch-size=2", "-rA", agent="agent.py:agent")
    assert session.outcomes["passed"] == 12 and session.outcomes["warnings"] == 1, session.out
    warning = "\n".join(session.section("warnings summary"))
    assert "BlockedLoop: agent.py:agent: `agent` (agent.py:9) blocks the event loop" in warning
    assert "its next runs are made in threads" in warning
    assert project.endpoint.requests == 12 and project.endpoint.max_in_flight <= 2
    assert session.out.count("asked for row 11 in osmosis-isolated") == 1


@each_mode
def test_an_agent_that_awaits_stays_in_the_loop_with_one_warning_a_process(
    project: Project, workers: int
):
    project.write("agent.py", BLOCKING)
    project.rows(*(f"row {number}" for number in range(10)))
    project.endpoint.latency_s = 0.05
    session = project.run("--osmosis-batch-size=4", "-rA", workers=workers)
    assert session.ret == 0
    assert session.outcomes == {"passed": 10, "warnings": max(workers, 1)}
    warning = "\n".join(session.section("warnings summary"))
    assert "BlockedLoop: agent:agent_loop: `run` (agent.py:14) blocks the event loop" in warning
    assert project.endpoint.max_in_flight <= 4
    assert project.endpoint.requests == 10
    assert session.out.count("asked for row 7") == 1


BOUND = """
import time

import aiohttp

session = None


async def agent(row):
    global session
    time.sleep(0.12)  # a tool that blocks
    if session is None:
        session = aiohttp.ClientSession()
    async with session.get("URL/v1/models") as reply:
        await reply.read()
    return row["user_prompt"]
"""


def test_a_client_of_the_module_beside_a_tool_that_blocks_belongs_to_one_loop(
    project: Project,
):
    project.write("agent.py", BOUND.replace("URL", project.endpoint.base_url.removesuffix("/v1")))
    project.rows(*(f"row {number}" for number in range(12)))
    own = {"model": None, "base_url": None, "agent": "agent.py:agent"}
    session = project.apart(*project.options("-n0", "--batch-size=6", **own))
    assert session.outcomes == {"passed": 12, "warnings": 1}, session.out
    warning = "\n".join(session.section("warnings summary"))
    assert "BlockedLoop: agent.py:agent: `agent` (agent.py:11) blocks the event loop" in warning
    assert "every other rollout of its process waits meanwhile" in warning


@pytest.mark.slow
def test_a_blocking_eval_function_is_named_too(project: Project):
    project.write("rewards.py", BLOCKING)
    project.rows(*(f"row {number}" for number in range(12)))
    session = project.run("--osmosis-batch-size=4", "-Werror", eval_fn="rewards:judge")
    assert session.outcomes == {"passed": 12, "warnings": 1}
    assert "rewards:judge: `judge` (rewards.py:25)" in session.out


@pytest.mark.slow
def test_an_error_of_a_moved_agent_shows_its_own_frames_alone(project: Project):
    project.write("agent.py", BLOCKING.replace("ctx.complete(", "explode("))
    project.rows(*(f"row {number}" for number in range(6)))
    session = project.run("--osmosis-batch-size=2")
    assert session.ret == 1
    assert session.outcomes["failed"] == 6
    assert "NameError: name 'explode' is not defined" in session.out
    assert "blocking.py" not in session.out.replace("test_blocking.py", "")


HOLDING = """
import asyncio
import time

from osmosis_ai.rollout import RolloutAgentLoop


class Agent(RolloutAgentLoop):
    name = "holding"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        wish = messages[-1]["content"]
        answer = await ctx.chat(messages, **ctx.request.completion_params)
        if wish == "spin":
            self.spin()
        if wish == "stubborn":
            while True:
                try:
                    self.spin()
                except BaseException:
                    continue
        if wish == "slow":
            await asyncio.sleep(1)
        return ctx.complete([*messages, answer.message])

    def spin(self):
        while True:
            time.sleep(0.01)


agent_loop = Agent()


async def judge(solution_str, ground_truth, extra_info):
    while solution_str == "score spin":
        pass
    return 1.0
"""


@pytest.mark.fault("an eval function or an agent never returns")
@pytest.mark.slow
@each_mode
def test_an_agent_that_never_lets_go_is_a_timeout_that_names_its_function(
    project: Project, workers: int
):
    project.write("agent.py", HOLDING)
    project.rows("a", "spin", "slow", "b", "c", "d")
    session = project.run("--batch-size=4", "--osmosis-agent-timeout=2", workers=workers)
    assert session.ret == 1
    assert [run["error_type"] for run in session.runs] == [None, "timeout", None, None, None, None]
    error = session.runs[1]["error"]
    assert error == (
        "the agent timed out after 2 s: `spin` (agent.py:32) did not return to the event loop"
    )
    assert session.outcomes["passed"] == 5


@pytest.mark.slow
def test_an_eval_function_that_never_lets_go_is_an_error_that_names_it(project: Project):
    project.write("agent.py", HOLDING)
    project.rows("a", "score spin", "b")
    session = project.run("--osmosis-grader-timeout=2", eval_fn="agent:judge")
    assert [run["error_type"] for run in session.runs] == [None, "eval_fn", None]
    assert session.runs[1]["error"].startswith("`agent:judge` timed out after 2 s: `judge` (")


@pytest.mark.fault("an eval function or an agent never returns")
@pytest.mark.slow
@each_mode
def test_an_agent_that_cannot_be_interrupted_ends_its_process_in_order(
    project: Project, workers: int
):
    project.write("agent.py", HOLDING)
    project.write(
        "conftest.py",
        "from osmosis_ai.running import watchdog\nwatchdog.INTERRUPT_RETRY_S = 0.2\n",
    )
    project.rows("a", "b", "stubborn", "c", "d")
    session = project.apart(
        *project.options(
            f"-n{workers}", f"--batch-size={workers or 1}", "--osmosis-agent-timeout=2"
        )
    )
    assert session.ret == 1
    said = "did not return to the event loop and cannot be interrupted"
    kept = {row["row_index"]: row["runs"][0] for row in session.report["rows"]}
    assert kept[2]["error_type"] == "timeout"
    assert said in kept[2]["error"]
    assert [kept[row]["error_type"] for row in (0, 1)] == [None, None]
    if workers:
        assert {"warnings": 1, **session.outcomes} == {"passed": 4, "failed": 1, "warnings": 1}
    else:
        assert any(said in line for line in session.lines if line.startswith("stopped: "))
        assert session.report["summary"]["complete"] is False
    assert "Traceback" not in session.out + session.err
