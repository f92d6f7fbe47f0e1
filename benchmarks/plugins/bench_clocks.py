"""In a measured session of one process: processor time by thread."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest

from osmosis_ai.running.loop_thread import LoopThread

seconds: dict[str, float] = {}
turn = LoopThread._turn


def timed(thread: LoopThread) -> None:
    """Turn the event loop, in its thread."""
    began = time.thread_time()
    try:
        turn(thread)
    finally:
        seconds["loop"] = time.thread_time() - began


LoopThread._turn = timed  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop() -> Generator[None, Any, Any]:
    """Time pytest's thread."""
    seconds["start"] = time.process_time()
    began = time.thread_time()
    try:
        return (yield)
    finally:
        seconds["pytest"] = time.thread_time() - began


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Write what was found."""
    seconds["all"] = time.process_time()
    with open("bench_clocks.json", "w") as file:
        json.dump(seconds, file)
