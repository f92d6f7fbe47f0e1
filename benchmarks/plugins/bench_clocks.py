"""In a measured session of one process: processor time by thread."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest

from osmosis_ai.running.engine import Engine

seconds: dict[str, float] = {}
run_loop = Engine._run_loop


def timed(engine: Engine) -> None:
    """Run the event loop, in its thread."""
    began = time.thread_time()
    try:
        run_loop(engine)
    finally:
        seconds["loop"] = time.thread_time() - began


Engine._run_loop = timed  # type: ignore[method-assign]


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
