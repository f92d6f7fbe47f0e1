"""Where an evaluation's processor time goes: by thread, by phase, and to the garbage collector."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .bench import MODES, Bench
from .measure import Spread
from .rounds import Observation, Series, interleaved
from .table import Line

EMPTY = "def test_nothing():\n    pass\n"
TAIL_S = 0.30
"""What is wanted of the end of a session of 2,000 rollouts, in seconds."""


def clocks(bench: Bench) -> list[Line]:
    """Processor time by thread, in one process and without latency."""
    n = bench.size(2000)
    (bench.folder / "test_nothing.py").write_text(EMPTY)
    nothing = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest"),
        *("-p", "no:osmosis", "test_nothing.py"),
    ]
    contenders = {
        "ours": bench.ours(0.0, n=n, in_flight=64, plugin="bench_clocks"),
        "pytest": bench.command(nothing, bench.endpoint(0.0)),
    }
    found = interleaved(contenders, repeats=bench.repeats)
    alone = found["pytest"].spread(lambda one: one.cost.cpu_s)
    clocked = [one.inside[0] for one in found["ours"].observations]

    def ms(part: str) -> str:
        return f"{Spread.of(one[part] / n * 1000.0 for one in clocked).show()} ms a rollout"

    start = Spread.of(one["start"] for one in clocked)
    end = Spread.of(one["all"] - one["start"] - one["loop"] - one["pytest"] for one in clocked)
    return [
        Line("processor time", _setting(n), "pytest alone, one test", f"{alone.show()} s"),
        Line("", "", "ours, up to the first item", f"{start.show()} s"),
        Line("", "", "ours, the event loop's thread", ms("loop")),
        Line("", "", "ours, pytest's thread", ms("pytest")),
        Line("", "", "ours, everything else", f"{end.show()} s"),
    ]


def collector(bench: Bench) -> list[Line]:
    """The garbage collector's part of start, loop and end, in all processes of a session."""
    n = bench.size(2000)
    contenders = {
        mode: bench.ours(0.0, n=n, in_flight=64, processes=processes, plugin="bench_collector")
        for mode, processes in MODES.items()
    }
    lines = []
    for mode, series in interleaved(contenders, repeats=bench.repeats).items():
        head = ("garbage collector", _setting(n)) if not lines else ("", "")
        for phase in ("start", "loop", "end"):
            of_it = series.spread(lambda one, phase=phase: _sum(one, "collector", phase) * 1000)  # type: ignore[misc]
            of_all = series.spread(lambda one, phase=phase: _sum(one, "cpu", phase) * 1000)  # type: ignore[misc]
            result = f"{of_it.show(0)} of {of_all.show(0)} ms"
            lines.append(Line(*head, f"{mode}, {phase}", result))
            head = ("", "")
    return lines


def tail(bench: Bench) -> list[Line]:
    """From the last reply to the end of the command."""
    n = bench.size(2000)
    report = ("--osmosis-output=tail.json",)
    contenders = {
        f"{mode}{', JSON report' if more else ''}": bench.ours(
            0.0, n=n, in_flight=64, processes=processes, plugin="bench_collector", more=more
        )
        for mode, processes in MODES.items()
        for more in ((), report)
    }
    lines = []
    for name, series in interleaved(contenders, repeats=bench.repeats).items():
        wall = series.spread(lambda one: one.tail_s)
        cpu = series.spread(_cpu_after_items)
        result = f"{wall.show()} s; {cpu.show()} s of processor time after the last item"
        goal = f"{TAIL_S:.2f} s at most" if name == "one process" else ""
        head = ("last reply to end", _setting(n)) if not lines else ("", "")
        lines.append(Line(*head, name, result, series.wall_s.show(), goal=goal))
    return lines


def slope(bench: Bench) -> list[Line]:
    """The processor time of a further rollout, in one process: start and end do not count."""
    few, many = bench.size(2000), bench.size(8000)
    found = interleaved(
        {str(n): bench.ours(0.0, n=n, in_flight=64) for n in (few, many)}, repeats=bench.repeats
    )
    each = _difference(found[str(few)], found[str(many)], many - few)
    setting = f"0 ms, B 64, N {few:,} to {many:,}"
    result = f"{each.show()} ms of processor time"
    return [Line("a further rollout", setting, "one process", result, goal="0.48 ms at most")]


def _difference(few: Series, many: Series, span: int) -> Spread:
    pairs = zip(few.observations, many.observations, strict=True)
    return Spread.of((b.cost.cpu_s - a.cost.cpu_s) / span * 1000 for a, b in pairs)


def _cpu_after_items(one: Observation) -> float:
    return one.cost.cpu_s - _sum(one, "cpu", "start") - _sum(one, "cpu", "loop")


def _sum(one: Observation, what: str, phase: str) -> float:
    processes: tuple[Mapping[str, Any], ...] = one.inside
    return sum(float(each[what][phase]) for each in processes)


def _setting(n: int) -> str:
    return f"0 ms, B 64, N {n:,}"
