"""In a measured session: processor time by phase, and how much of it is the garbage collector's.

Written by each process of the session when it exits; what the interpreter does after that is not in
it.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import time
from collections.abc import Generator
from typing import Any

import pytest

cpu_s = {"start": 0.0, "loop": 0.0, "end": 0.0}
collector_s = dict.fromkeys(cpu_s, 0.0)
found = {"objects": 0}
at = {"phase": "start", "since": 0.0, "collecting": 0.0}


def clocked(event: str, info: dict[str, int]) -> None:
    """Add what a collection took; no two are under way at once."""
    if event == "start":
        at["collecting"] = time.thread_time()
    else:
        collector_s[at["phase"]] += time.thread_time() - at["collecting"]
        found["objects"] += info["collected"]


def enter(phase: str) -> None:
    """End the phase that there is."""
    now = time.process_time()
    cpu_s[at["phase"]] += now - at["since"]
    at.update(phase=phase, since=now)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop() -> Generator[None, Any, Any]:
    """The loop: items run, or are waited for."""
    enter("loop")
    try:
        return (yield)
    finally:
        enter("end")


def write() -> None:
    """One file a process."""
    gc.callbacks.remove(clocked)
    enter("exit")
    process = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open(f"bench_collector-{process}.json", "w") as file:
        json.dump({"cpu": cpu_s, "collector": collector_s, **found}, file)


gc.callbacks.append(clocked)
atexit.register(write)
