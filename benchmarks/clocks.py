"""Where an evaluation's processor time goes: by the clocks of its own threads.

A pytest plugin within the measured session reads them; it writes what it found at the end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from .bench import Bench
from .measure import Spread
from .rounds import Observation, interleaved
from .table import Line

PLUGIN = """
import json
import time

import pytest
from pytest_osmosis.rollouts.engine import Engine

seconds = {}
run_loop = Engine._run_loop


def timed(engine):
    began = time.thread_time()
    try:
        run_loop(engine)
    finally:
        seconds["loop"] = time.thread_time() - began


Engine._run_loop = timed


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop():
    seconds["start"] = time.process_time()
    began = time.thread_time()
    try:
        return (yield)
    finally:
        seconds["pytest"] = time.thread_time() - began


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    seconds["all"] = time.process_time()
    with open("clocks.json", "w") as file:
        json.dump(seconds, file)
"""
EMPTY = "def test_nothing():\n    pass\n"


def clocks(bench: Bench) -> list[Line]:
    """Processor time by thread, in one process and without latency."""
    n = 200 if bench.quick else 2000
    endpoint = bench.endpoint(0.0)
    (bench.folder / "bench_clocks.py").write_text(PLUGIN)
    (bench.folder / "test_nothing.py").write_text(EMPTY)
    more = ("-p", "bench_clocks")
    evaluation = bench.ours(0.0, n=n, in_flight=64, more=more)
    found: list[Mapping[str, float]] = []

    def observed() -> Observation:
        observation = evaluation()
        found.append(json.loads((bench.folder / "clocks.json").read_text()))
        return observation

    nothing = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest"),
        *("-p", "no:osmosis", "test_nothing.py"),
    ]
    series = interleaved(
        {"ours": observed, "pytest": bench.command(nothing, endpoint)}, repeats=bench.repeats
    )
    counted = found[-bench.repeats :]
    alone = series["pytest"].spread(lambda one: one.cost.cpu_s)

    def ms(part: str) -> str:
        return f"{Spread.of(one[part] / n * 1000.0 for one in counted).show()} ms a rollout"

    start = Spread.of(one["start"] for one in counted)
    end = Spread.of(one["all"] - one["start"] - one["loop"] - one["pytest"] for one in counted)
    return [
        Line(
            "processor time", f"0 ms, B 64, N {n:,}", "pytest alone, one test", f"{alone.show()} s"
        ),
        Line("", "", "ours, up to the first item", f"{start.show()} s"),
        Line("", "", "ours, the event loop's thread", ms("loop")),
        Line("", "", "ours, pytest's thread", ms("pytest")),
        Line("", "", "ours, everything else", f"{end.show()} s"),
    ]
