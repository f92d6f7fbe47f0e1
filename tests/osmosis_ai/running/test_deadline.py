"""When the time is up; time in which the loop was blocked does not count."""

from __future__ import annotations

import asyncio
import gc
import weakref

from osmosis_ai.running.section import Deadline, excuse


def test_time_in_which_the_loop_was_blocked_does_not_count():
    async def main() -> float:
        loop, expired = asyncio.get_running_loop(), asyncio.Event()
        began = loop.time()
        Deadline(loop, 0.01, expired.set)
        excuse(loop, 0.05)
        await expired.wait()
        return loop.time() - began

    assert asyncio.run(main()) >= 0.05


def test_a_deadline_that_is_cancelled_does_not_expire():
    async def main() -> bool:
        loop, expired, later = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        Deadline(loop, 0.01, expired.set).cancel()
        Deadline(loop, 0.02, later.set)
        await later.wait()
        return expired.is_set()

    assert not asyncio.run(main())


def test_no_deadline_keeps_its_loop_alive():
    loop = asyncio.new_event_loop()
    excuse(loop, 1.0)
    Deadline(loop, 600.0, lambda: None)
    gone = weakref.ref(loop)
    loop.close()
    del loop
    gc.collect()
    assert gone() is None
