from __future__ import annotations

import asyncio
import threading

import pytest

from osmosis_ai.blocking import in_daemon_thread, run_blocking


def test_no_program_waits_for_a_thread_that_blocks():
    thread = asyncio.run(in_daemon_thread(threading.current_thread))
    assert thread.daemon
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(in_daemon_thread(int, "x"))


def test_who_waits_may_leave_and_the_thread_ends_without_a_complaint(
    monkeypatch: pytest.MonkeyPatch,
):
    begun, released, complaints = threading.Event(), threading.Event(), []
    threads: list[threading.Thread] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)

    def blocking() -> None:
        threads.append(threading.current_thread())
        begun.set()
        released.wait(60)

    async def leaving() -> None:
        waiting = asyncio.ensure_future(in_daemon_thread(blocking))
        await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(leaving())
    released.set()
    threads[0].join(60)
    assert complaints == []


def test_a_coroutine_is_run_inside_of_a_running_loop():
    async def inside() -> str:
        return run_blocking(asyncio.sleep(0, "done"))

    assert asyncio.run(inside()) == "done" == run_blocking(asyncio.sleep(0, "done"))
