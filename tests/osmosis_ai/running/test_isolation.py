"""Code that blocks the event loop: noticed, and moved to threads."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

import osmosis_ai
from osmosis_ai.running.guards import CodeEnded
from osmosis_ai.running.isolation import Isolation
from osmosis_ai.running.main_loop import RunInMainLoop
from osmosis_ai.running.section import Section
from osmosis_ai.running.watchdog import Blocked

Code = Callable[[RunInMainLoop], Coroutine[Any, Any, Any]]


class Reports:
    """What an isolation has reported, and an event for it."""

    def __init__(self) -> None:
        self.all: list[Blocked] = []
        self.event = threading.Event()

    def __call__(self, blocked: Blocked) -> None:
        self.all.append(blocked)
        self.event.set()


def run_blocked(reports: Reports, *sections: Code, owner: object = "owner") -> list[Any]:
    """The sections one after the other, behind one that blocks until it was noticed."""

    async def blocks(main_loop: RunInMainLoop) -> None:
        assert reports.event.wait(60)

    async def main() -> list[Any]:
        isolation = Isolation(reports, long_block_s=0.05)
        try:
            await isolation.run(Section(owner, "agent"), blocks)
            return [await isolation.run(Section(owner, "agent"), section) for section in sections]
        finally:
            isolation.close()

    return asyncio.run(main())


async def thread_of(main_loop: RunInMainLoop) -> threading.Thread:
    return threading.current_thread()


def test_code_that_blocks_runs_in_threads_from_then_on_and_is_named():
    reports = Reports()
    [thread] = run_blocked(reports, thread_of)
    assert thread is not threading.main_thread() and thread.daemon
    [blocked] = reports.all
    assert (blocked.function, blocked.owner) == ("blocks", "agent")
    assert blocked.filename == __file__ and blocked.seconds >= 0.05
    assert "`blocks` (test_isolation.py:" in str(blocked)


def test_other_code_stays_in_the_loop():
    reports = Reports()

    async def main() -> threading.Thread:
        isolation = Isolation(reports, long_block_s=0.05)
        await isolation.run(Section("other", "other"), thread_of)
        await asyncio.sleep(0.2)  # a loop that idles is no loop that is blocked
        thread = await isolation.run(Section("other", "other"), thread_of)
        isolation.close()
        return thread

    assert asyncio.run(main()) is threading.main_thread()
    assert reports.all == []


def test_short_waits_count_once_they_are_a_habit():
    reports = Reports()

    async def blocks(main_loop: RunInMainLoop) -> threading.Thread:
        time.sleep(0.15)
        return threading.current_thread()

    async def main() -> list[threading.Thread]:
        isolation = Isolation(reports)
        threads = [await isolation.run(Section(blocks, "agent"), blocks) for _ in range(3)]
        while threads[-1] is threading.main_thread():  # those that nobody was there to notice
            threads.append(await isolation.run(Section(blocks, "agent"), blocks))
        isolation.close()
        return threads

    *earlier, last = asyncio.run(main())
    assert set(earlier) == {threading.main_thread()}
    assert last is not threading.main_thread()
    assert len(reports.all) == 1


def test_what_code_of_this_project_waits_for_is_no_habit_of_the_agents():
    reports = Reports()
    ours = os.path.join(os.path.dirname(osmosis_ai.__file__), "running", "thread_calls.py")
    text = "import time\nasync def waits(main_loop): time.sleep(0.15)\n"
    names: dict[str, Any] = {}
    exec(compile(text, ours, "exec"), names)

    async def main() -> None:
        isolation = Isolation(reports)
        for _ in range(4):
            await isolation.run(Section("owner", "agent"), names["waits"])
        isolation.close()

    asyncio.run(main())
    assert reports.all == []


def test_an_import_is_no_habit(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "takes_its_time.py").write_text("import time\ntime.sleep(0.3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    reports = Reports()

    async def imports(main_loop: RunInMainLoop) -> None:
        import takes_its_time  # type: ignore[import-not-found]  # noqa: F401

    async def main() -> None:
        isolation = Isolation(reports, long_block_s=0.05)
        await isolation.run(Section(imports, "agent"), imports)
        isolation.close()

    asyncio.run(main())
    assert reports.all == []


def test_calls_of_the_main_loop_are_made_there_and_see_the_context():
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("set before")

    async def in_main_loop() -> tuple[threading.Thread, str]:
        return threading.current_thread(), variable.get()

    async def section(main_loop: RunInMainLoop) -> Any:
        return await main_loop(in_main_loop()), variable.get()

    [((thread, inside), own)] = run_blocked(Reports(), section)
    assert thread is threading.main_thread()
    assert inside == own == "set before"


def test_what_a_section_raises_comes_back():
    error = KeyError("x")

    async def raises(main_loop: RunInMainLoop) -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        run_blocked(Reports(), raises)
    assert caught.value is error


def test_an_exit_in_a_thread_ends_its_section_alone():
    async def leaves(main_loop: RunInMainLoop) -> None:
        raise SystemExit(3)

    with pytest.raises(CodeEnded, match=r"called sys.exit\(3\)"):
        run_blocked(Reports(), leaves)


def test_code_that_awaits_stays_in_its_loop_and_is_named_once():
    reports = Reports()

    async def blocks(main_loop: RunInMainLoop) -> threading.Thread:
        await asyncio.sleep(0)
        time.sleep(0.15)
        return threading.current_thread()

    async def main() -> set[threading.Thread]:
        isolation = Isolation(reports)
        threads = set()
        while len(threads) < 1 or not reports.all:
            threads.add(await isolation.run(Section(blocks, "agent"), blocks))
        for _ in range(4):
            threads.add(await isolation.run(Section(blocks, "agent"), blocks))
        isolation.close()
        return threads

    assert asyncio.run(main()) == {threading.main_thread()}
    [blocked] = reports.all
    assert not blocked.is_moved
    assert "every other rollout of its process waits meanwhile" in str(blocked)


def test_code_that_blocks_before_it_awaits_for_the_first_time_is_not_moved():
    reports = Reports()

    async def section(main_loop: RunInMainLoop) -> threading.Thread:
        if not reports.all:
            assert reports.event.wait(60)  # the watchdog finds it in its first step
        await asyncio.sleep(0)
        return threading.current_thread()

    async def main() -> list[threading.Thread]:
        isolation = Isolation(reports, long_block_s=0.05)
        runs = [isolation.run(Section("owner", "agent"), section) for _ in range(3)]
        threads = [await run for run in runs]
        isolation.close()
        return threads

    assert asyncio.run(main()) == [threading.main_thread()] * 3


def test_code_that_was_moved_and_awaits_after_all_is_back_in_the_loop():
    async def awaits(main_loop: RunInMainLoop) -> threading.Thread:
        await asyncio.sleep(0)
        return threading.current_thread()

    first, second, third = run_blocked(Reports(), thread_of, awaits, thread_of)
    assert threading.main_thread() not in (first, second)
    assert third is threading.main_thread()


def test_a_cancelled_section_may_clean_up():
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
        reports = Reports()
        isolation = Isolation(reports, long_block_s=0.05)

        async def blocks(main_loop: RunInMainLoop) -> None:
            assert reports.event.wait(60)

        await isolation.run(Section("owner", "agent"), blocks)
        isolation.is_ending = True
        await cancels(lambda: isolation.run(Section("owner", "agent"), section))
        isolation.close()

    asyncio.run(main())
    assert events == ["cleaned up"]


def test_what_a_section_leaves_behind_is_cancelled():
    ended = threading.Event()

    async def lingers() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def section(main_loop: RunInMainLoop) -> None:
        section.task = asyncio.ensure_future(lingers())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run_blocked(Reports(), section)
    assert ended.wait(60)
