"""Deadlines that share a timer are called when they are due, or not at all."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

from osmosis_ai.alarms import Alarms
from pytest_osmosis.rollouts.guards.timeouts import deadlines_of


def rung(
    plan: Callable[[asyncio.AbstractEventLoop, Alarms, Callable[[str], Any]], Any],
) -> list[str]:
    """What rings, in order, until "last" has."""
    told: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append("raised"))
        over = asyncio.Event()

        def ring(name: str) -> Callable[[], None]:
            def call() -> None:
                told.append(name)
                if name == "last":
                    over.set()
                if name == "raises":
                    raise RuntimeError

            return call

        plan(loop, Alarms(loop), ring)
        await asyncio.wait_for(over.wait(), 30)

    asyncio.run(main())
    return told


def test_each_rings_once_in_the_order_in_which_it_is_due() -> None:
    def plan(loop: asyncio.AbstractEventLoop, alarms: Alarms, ring: Any) -> None:
        now = loop.time()
        alarms.at(now + 0.02, ring("second"))
        alarms.at(now + 0.03, ring("last"))
        alarms.at(now + 0.01, ring("first"))  # out of order: it has a timer of its own

    assert rung(plan) == ["first", "second", "last"]


def test_one_that_is_cancelled_does_not_ring_and_holds_up_no_other() -> None:
    def plan(loop: asyncio.AbstractEventLoop, alarms: Alarms, ring: Any) -> None:
        now = loop.time()
        first = alarms.at(now + 0.01, ring("cancelled"))
        alarms.at(now + 0.02, ring("last"))
        first.cancel()
        first.cancel()

    assert rung(plan) == ["last"]


def test_one_that_raises_holds_up_no_other() -> None:
    def plan(loop: asyncio.AbstractEventLoop, alarms: Alarms, ring: Any) -> None:
        now = loop.time()
        alarms.at(now + 0.01, ring("raises"))
        alarms.at(now + 0.02, ring("last"))

    assert rung(plan) == ["raises", "raised", "last"]


def test_the_deadlines_of_a_loop_are_the_same_and_do_not_outlive_it() -> None:
    loop = asyncio.new_event_loop()
    deadlines = deadlines_of(loop)
    deadlines.start(600.0, lambda: None)
    assert deadlines_of(loop) is deadlines
    gone = weakref.ref(loop)
    loop.close()
    del loop, deadlines
    gc.collect()
    assert gone() is None
