"""In a measured session of one process: what its model calls took, without the session's start."""

from __future__ import annotations

import json
import statistics
import sys
import time

import pytest

started: list[float] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Note where the start ends."""
    started.append(time.process_time())


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Write what was found."""
    took_s = sys.modules["bench_agent"].took_s
    found = {
        "median_ms": statistics.median(took_s) * 1000.0,
        "cpu_s": time.process_time() - started[0],
    }
    with open("bench_took.json", "w") as file:
        json.dump(found, file)
