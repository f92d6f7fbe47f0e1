"""Agents that block the event loop: noticed, moved to threads, told once."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from osmosis_ai.running.isolation import (
    Isolation,
    RunInMainLoop,
)
from osmosis_ai.running.loop_watchdog import Blocked
from tests.modes import each_mode
from tests.project import Project

Section = Callable[[RunInMainLoop], Coroutine[Any, Any, Any]]


class Told:
    """What an isolation told, and an event for it."""

    def __init__(self) -> None:
        self.all: list[Blocked] = []
        self.event = threading.Event()

    def __call__(self, blocked: Blocked) -> None:
        self.all.append(blocked)
        self.event.set()


def run_blocked(told: Told, *sections: Section, owner: object = "owner") -> list[Any]:
    """The sections one after the other, behind one that blocks until it was noticed."""

    async def blocks(main_loop: RunInMainLoop) -> None:
        assert told.event.wait(60)

    async def main() -> list[Any]:
        isolation = Isolation(told, long_block_s=0.05)
        try:
            await isolation.run(owner, "agent", blocks)
            return [await isolation.run(owner, "agent", section) for section in sections]
        finally:
            isolation.close()

    return asyncio.run(main())


async def thread_of(main_loop: RunInMainLoop) -> threading.Thread:
    return threading.current_thread()


def test_code_that_blocks_runs_in_threads_from_then_on_and_is_named() -> None:
    told = Told()
    [thread] = run_blocked(told, thread_of)
    assert thread is not threading.main_thread() and thread.daemon
    [blocked] = told.all
    assert (blocked.function, blocked.owner) == ("blocks", "agent")
    assert blocked.filename == __file__ and blocked.seconds >= 0.05
    assert "`blocks` (test_blocking.py:" in str(blocked)


def test_other_code_stays_in_the_loop() -> None:
    told = Told()

    async def main() -> threading.Thread:
        isolation = Isolation(told, long_block_s=0.05)
        await isolation.run("other", "other", thread_of)
        await asyncio.sleep(0.2)  # a loop that idles is no loop that is blocked
        thread = await isolation.run("other", "other", thread_of)
        isolation.close()
        return thread

    assert asyncio.run(main()) is threading.main_thread()
    assert told.all == []


def test_short_waits_count_once_they_are_a_habit() -> None:
    told = Told()

    async def blocks(main_loop: RunInMainLoop) -> threading.Thread:
        time.sleep(0.15)
        return threading.current_thread()

    async def main() -> list[threading.Thread]:
        isolation = Isolation(told)
        threads = [await isolation.run(blocks, "agent", blocks) for _ in range(3)]
        while threads[-1] is threading.main_thread():  # those that nobody was there to notice
            threads.append(await isolation.run(blocks, "agent", blocks))
        isolation.close()
        return threads

    *earlier, last = asyncio.run(main())
    assert set(earlier) == {threading.main_thread()}
    assert last is not threading.main_thread()
    assert len(told.all) == 1


def test_an_import_is_no_habit(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "takes_its_time.py").write_text("import time\ntime.sleep(0.3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    told = Told()

    async def imports(main_loop: RunInMainLoop) -> None:
        import takes_its_time  # type: ignore[import-not-found]  # noqa: F401

    async def main() -> None:
        isolation = Isolation(told, long_block_s=0.05)
        await isolation.run(imports, "agent", imports)
        isolation.close()

    asyncio.run(main())
    assert told.all == []


def test_calls_of_the_main_loop_are_made_there_and_see_the_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("set before")

    async def in_main_loop() -> tuple[threading.Thread, str]:
        return threading.current_thread(), variable.get()

    async def section(main_loop: RunInMainLoop) -> Any:
        return await main_loop(in_main_loop()), variable.get()

    [((thread, inside), own)] = run_blocked(Told(), section)
    assert thread is threading.main_thread()
    assert inside == own == "set before"


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3)])
def test_what_a_section_raises_comes_back(error: BaseException) -> None:
    async def raises(main_loop: RunInMainLoop) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        run_blocked(Told(), raises)
    assert caught.value is error


def test_a_section_that_needs_its_loop_is_repeated_there() -> None:
    lock_users: list[threading.Thread] = []

    async def section(main_loop: RunInMainLoop) -> threading.Thread:
        lock_users.append(threading.current_thread())
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("wrapped") from RuntimeError("got Future attached to a different loop")
        return threading.current_thread()

    threads = run_blocked(Told(), section, section)
    assert threads == [threading.main_thread()] * 2
    assert len(lock_users) == 3


def test_a_cancelled_section_may_clean_up() -> None:
    events: list[str] = []
    started = threading.Event()

    async def section(main_loop: RunInMainLoop) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            events.append("cleaned up")

    async def cancels(run: Callable[[], Awaitable[Any]]) -> None:
        task = asyncio.ensure_future(run())
        await asyncio.get_running_loop().run_in_executor(None, started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def main() -> None:
        told = Told()
        isolation = Isolation(told, long_block_s=0.05)

        async def blocks(main_loop: RunInMainLoop) -> None:
            assert told.event.wait(60)

        await isolation.run("owner", "agent", blocks)
        await cancels(lambda: isolation.run("owner", "agent", section))
        isolation.close()

    asyncio.run(main())
    assert events == ["cleaned up"]


def test_what_a_section_leaves_behind_is_cancelled() -> None:
    ended = threading.Event()

    async def lingers() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def section(main_loop: RunInMainLoop) -> None:
        section.task = asyncio.ensure_future(lingers())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run_blocked(Told(), section)
    assert ended.wait(60)


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


@each_mode
def test_a_synchronous_agent_is_evaluated_in_threads_with_one_warning_a_process(
    project: Project, workers: int
) -> None:
    project.write("agent.py", BLOCKING)
    project.rows(*(f"row {number}" for number in range(16)))
    project.endpoint.latency_s = 0.05
    session = project.run("--osmosis-batch-size=4", "-rA", workers=workers)
    assert session.ret == 0
    assert session.outcomes == {"passed": 16, "warnings": max(workers, 1)}
    warning = "\n".join(session.section("warnings summary"))
    assert "BlockedLoop: agent:agent_loop: `run` (agent.py:14) blocks the event loop" in warning
    assert project.endpoint.max_in_flight <= 4
    assert project.endpoint.requests == 16
    assert session.out.count("asked for row 7") == 1


BOUND = """
import threading


async def agent(ctx):
    answer = await ctx.chat(list(ctx.request.messages))
    if threading.current_thread().name == "osmosis-isolated":
        raise RuntimeError("the lock is bound to a different event loop")
    return ctx.complete([*ctx.request.messages, answer.message], reward=1.0)
"""


class FoundBlocking(set[int]):
    """Every owner, until it turns out that it cannot be moved."""

    def __contains__(self, owner: object) -> bool:
        return not super().__contains__(owner)

    def discard(self, owner: int) -> None:
        self.add(owner)


def test_a_rollout_that_had_to_be_made_again_says_what_both_attempts_took(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Isolation.__init__

    def make(isolation: Isolation, *args: Any, **options: Any) -> None:
        made(isolation, *args, **options)
        isolation._isolated = FoundBlocking()

    monkeypatch.setattr(Isolation, "__init__", make)
    project.write("agent.py", BOUND)
    project.rows("a", "b")
    session = project.run("--osmosis-batch-size=1", agent="agent.py:agent", eval_fn=None)
    assert session.outcomes == {"passed": 2}
    assert [run["llm_calls"] for run in session.runs] == [2, 1]
    assert [run["tokens"] for run in session.runs] == [30, 15]
    assert project.endpoint.requests == 3


def test_a_blocking_eval_function_is_named_too(project: Project) -> None:
    project.write("rewards.py", BLOCKING)
    project.rows(*(f"row {number}" for number in range(12)))
    session = project.run("--osmosis-batch-size=4", eval_fn="rewards:judge")
    assert session.ret == 0
    assert "rewards:judge: `judge` (rewards.py:25)" in session.out


def test_an_error_of_a_moved_agent_shows_its_own_frames_alone(project: Project) -> None:
    project.write("agent.py", BLOCKING.replace("ctx.complete(", "explode("))
    project.rows(*(f"row {number}" for number in range(6)))
    session = project.run("--osmosis-batch-size=2")
    assert session.ret == 1
    assert session.outcomes["failed"] == 6
    assert "NameError: name 'explode' is not defined" in session.out
    assert "blocking.py" not in session.out.replace("test_blocking.py", "")


def test_warnings_turned_into_errors_do_not_break_the_session(project: Project) -> None:
    project.write("agent.py", BLOCKING)
    project.rows(*(f"row {number}" for number in range(16)))
    session = project.run("--osmosis-batch-size=4", "-Werror")
    assert session.ret == 0
    assert session.outcomes == {"passed": 16, "warnings": 1}


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


@pytest.mark.slow
@each_mode
def test_an_agent_that_never_lets_go_is_a_timeout_that_names_its_function(
    project: Project, workers: int
) -> None:
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
def test_an_eval_function_that_never_lets_go_is_an_error_that_names_it(project: Project) -> None:
    project.write("agent.py", HOLDING)
    project.rows("a", "score spin", "b")
    session = project.run("--osmosis-grader-timeout=2", eval_fn="agent:judge")
    assert [run["error_type"] for run in session.runs] == [None, "eval_fn", None]
    assert session.runs[1]["error"].startswith("`agent:judge` timed out after 2 s: `judge` (")


@pytest.mark.slow
@each_mode
def test_an_agent_that_cannot_be_interrupted_ends_its_process_in_order(
    project: Project, workers: int
) -> None:
    project.write("agent.py", HOLDING)
    project.write(
        "conftest.py",
        "from osmosis_ai.running import loop_watchdog\nloop_watchdog.INTERRUPT_RETRY_S = 0.2\n",
    )
    project.rows("a", "b", "stubborn", "c", "d")
    session = project.apart(
        *project.options(f"-n{workers}", "--batch-size=2", "--osmosis-agent-timeout=2")
    )
    assert session.ret == 1
    said = "did not return to the event loop and cannot be interrupted"
    kept = {row["row_index"]: row["runs"][0] for row in session.report["rows"]}
    assert kept[2]["error_type"] == "timeout"
    assert said in kept[2]["error"]
    assert [kept[row]["error_type"] for row in (0, 1)] == [None, None]
    if workers:
        assert session.outcomes == {"passed": 4, "failed": 1, "warnings": 1} or (
            session.outcomes == {"passed": 4, "failed": 1}
        )
    else:
        assert any(said in line for line in session.lines if line.startswith("stopped: "))
        assert session.report["summary"]["complete"] is False
    assert "Traceback" not in session.out + session.err
