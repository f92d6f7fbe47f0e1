"""The measurements: each a function from a bench to lines of the table."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .bench import MODES, Bench
from .bridge import bridge
from .clocks import clocks, collector, slope, tail
from .crossed import calls, messages, values
from .figures import figures
from .main_job import main_job
from .measure import Spread
from .prompts import prompts
from .rounds import Series, interleaved
from .table import Line

LATENCY_S = 0.1
"""Of a quick model."""
SLOW_S = 0.5
BLOCK_S = 0.1
"""How long `Blocking` in `ours` sleeps."""
GOALS = {
    (0.0, 64, "one process"): "0.26", (0.0, 64, "default"): "0.22",
    (LATENCY_S, 64, "one process"): "0.74", (LATENCY_S, 64, "default"): "0.67",
    (LATENCY_S, 256, "one process"): "0.40", (SLOW_S, 64, "one process"): "0.80",
}  # fmt: skip
FIRST = 3.4
"""What is wanted of the first request, in walls of `pytest --version`."""


def ceiling(bench: Bench) -> list[Line]:
    """How fast the endpoint is by itself, and how fast the bare loop drives it."""
    n = 500 if bench.quick else 5000
    series = interleaved({"bare": bench.bare(0.0, n=n, in_flight=64)}, repeats=bench.repeats)[
        "bare"
    ]
    took = series.spread(lambda one: n / float(one.counts["cpu_s"]))
    reached = series.spread(lambda one: n / one.cost.wall_s)
    setting = f"0 ms, B 64, N {n:,}"
    return [
        Line("endpoint's ceiling", setting, "one core of it", f"{took.show(0)} requests/s"),
        Line("", "", "bare loop", f"{reached.show(0)} requests/s", series.wall_s.show()),
    ]


def throughput(bench: Bench) -> list[Line]:
    """Without latency, where only our own work counts, and with that of a quick model."""
    cells = [(0.0, 64, 200), (LATENCY_S, 64, 128)]
    if not bench.quick:
        cells = [(0.0, size, 2000) for size in (1, 16, 64, 256)]
        cells += [(LATENCY_S, 1, 30), (LATENCY_S, 16, 500), (LATENCY_S, 64, 2000)]
        cells += [(LATENCY_S, 256, 2000), (LATENCY_S, 256, 20_000), (SLOW_S, 64, 1000)]
    return [line for cell in cells for line in _throughput(bench, *cell)]


def _throughput(bench: Bench, latency_s: float, in_flight: int, n: int) -> list[Line]:
    contenders = {"bare aiohttp loop": bench.bare(latency_s, n=n, in_flight=in_flight)}
    for mode, processes in MODES.items():
        if processes == 0 or in_flight > 1:
            contenders[mode] = bench.ours(latency_s, n=n, in_flight=in_flight, processes=processes)
    found = interleaved(contenders, repeats=bench.repeats)
    bare = found.pop("bare aiohttp loop")
    setting = f"{latency_s * 1000:.0f} ms, B {in_flight}, N {n:,}"
    ideal_s = n * latency_s / in_flight
    lines = [_line("throughput", setting, "bare aiohttp loop", bare, n, _efficiency(bare, ideal_s))]
    for mode, series in found.items():
        goal = GOALS.get((latency_s, in_flight, mode), "")
        ratio = f"ours / bare {series.faster_than(bare).show()}"
        efficiency = _efficiency(series, ideal_s)
        result = f"{efficiency}, {ratio}" if efficiency else ratio
        if latency_s:
            result += f", {series.max_in_flight} in flight"
        lines.append(_line("", "", f"ours, {mode}", series, n, result, goal))
    return lines


def goals(bench: Bench) -> list[Line]:
    """What is wanted of all of it, in one run; not part of a run of everything."""
    n = bench.size(2000)
    cells = ((0.0, 64), (LATENCY_S, 64), (LATENCY_S, 256))
    lines = [line for cell in cells for line in _throughput(bench, *cell, n)]
    others = (slope, messages, calls, main_job, first_request, tail, bridge)
    return [*lines, *(line for measure in others for line in measure(bench))]


def _efficiency(series: Series, ideal_s: float) -> str:
    if not ideal_s:
        return ""
    return f"efficiency {series.spread(lambda one: ideal_s / one.cost.wall_s).show()}"


def first_request(bench: Bench) -> list[Line]:
    """From the start of the command to the endpoint's first byte."""
    endpoint = bench.endpoint(0.0)
    version = [sys.executable, "-m", "pytest", "--version", "-p", "no:hypothesispytest"]
    contenders = {
        "bare aiohttp loop": bench.bare(0.0, n=1, in_flight=1),
        "pytest --version": bench.command(version, endpoint),
        "one process": bench.ours(0.0, n=1, in_flight=64, processes=0),
        "default": bench.ours(0.0, n=64, in_flight=64, processes=None),
    }
    found = interleaved(contenders, repeats=bench.repeats)
    least = found.pop("pytest --version")
    wall = least.wall_s.show()
    lines = [Line("first request", "N 1", "pytest --version, its wall", f"{wall} s")]
    for name, series in found.items():
        goal = f"{FIRST} x at most" if name == "one process" else ""
        first = series.spread(lambda one: one.first_s)
        pairs = zip(series.observations, least.observations, strict=True)
        ratio = Spread.of(one.first_s / other.cost.wall_s for one, other in pairs)
        setting = "N 64" if name == "default" else ""
        result = f"{first.show()} s, {ratio.show()} x that"
        lines.append(Line("", setting, name, result, series.wall_s.show(), goal=goal))
    return lines


def blocking(bench: Bench) -> list[Line]:
    """An agent that waits synchronously inside `async def run`."""
    n, in_flight = (64 if bench.quick else 1600), 16
    ideal_s = n * BLOCK_S / in_flight
    contenders = {
        mode: bench.ours(0.0, n=n, in_flight=in_flight, processes=processes, agent="blocking")
        for mode, processes in MODES.items()
    }
    found = interleaved(contenders, repeats=min(bench.repeats, 3))
    setting = f"time.sleep({BLOCK_S:g}), B {in_flight}, N {n}"
    return [
        _line(name, setting, f"ours, {mode}", series, n, _efficiency(series, ideal_s), goal)
        for name, goal, (mode, series) in zip(
            ("synchronous agent", ""), ("0.80", ""), found.items(), strict=True
        )
    ]


def growth(bench: Bench) -> list[Line]:
    """What a rollout costs when there are many of them."""
    sizes = (100, 1000) if bench.quick else (1000, 10_000, 100_000)
    lines = []
    for n in sizes:
        repeats = bench.repeats if n <= 1000 else 1
        contender = bench.ours(0.0, n=n, in_flight=64, processes=0)
        series = interleaved({"ours": contender}, repeats=repeats)["ours"]
        each = series.spread(lambda one, n=n: one.cost.wall_s / n * 1e6)  # type: ignore[misc]
        goal = "85 MB at most" if n == 1000 else ""
        result = f"{each.show(0)} us a rollout"
        name = "growth" if n == sizes[0] else ""
        lines.append(_line(name, f"0 ms, B 64, N {n:,}", "one process", series, n, result, goal))
    return lines


def items(bench: Bench) -> list[Line]:
    """Items whose rollouts ask nobody: what is left is pytest's cost and our own."""
    few, many = (100, 2000) if bench.quick else (1000, 100_000)
    kinds: dict[str, Callable[[int], Series]] = {
        "run": lambda n: _idle(bench, n),
        "collected only": lambda n: _idle(bench, n, "--collect-only"),
    }
    lines = []
    for name, series_of in kinds.items():
        small, large = series_of(few), series_of(many)
        span = many - few
        us = (large.wall_s.median - small.wall_s.median) / span * 1e6
        size = (large.rss_mb.median - small.rss_mb.median) / span * 1024
        result = f"{us:.0f} us and {size:.1f} kB an item"
        goal = "400 us and 3.5 kB at most" if name == "run" else ""
        heading = "items without a call" if name == "run" else ""
        lines.append(
            _line(heading, f"N {many:,}", f"one process, {name}", large, many, result, goal)
        )
    return lines


def _idle(bench: Bench, n: int, *more: str) -> Series:
    contender = bench.ours(
        0.0, n=n, in_flight=64, processes=0, agent="idle", eval_fn=None, more=more
    )
    return interleaved({"ours": contender}, repeats=1 if n > 5000 else bench.repeats)["ours"]


def _line(
    measure: str, setting: str, subject: str, series: Series, n: int, result: str, goal: str = ""
) -> Line:
    cpu: Spread = series.cpu_ms(n)
    return Line(
        measure,
        setting,
        subject,
        result,
        series.wall_s.show(),
        cpu.show() if n > 30 else "",
        series.rss_mb.show(0),
        goal,
    )


CELLS: dict[str, Callable[[Bench], list[Line]]] = {
    "ceiling": ceiling,
    "throughput": throughput,
    "first": first_request,
    "clocks": clocks,
    "collector": collector,
    "tail": tail,
    "slope": slope,
    "messages": messages,
    "calls": calls,
    "main-job": main_job,
    "values": values,
    "bridge": bridge,
    "blocking": blocking,
    "growth": growth,
    "items": items,
    "figures": figures,
    "prompts": prompts,
    "goals": goals,
}
