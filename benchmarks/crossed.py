"""What a rollout that passes crosses, whatever the machine: functions, values, messages.

Start and end of a session do not count: sessions of two sizes are compared. A function is crossed
when each further rollout calls it at least once; `plugins/bench_crossed.py` has what a call is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .bench import Bench
from .table import Line

FEW, MANY = 80, 160
"""Rollouts of the two sessions; more than are in flight."""
IN_FLIGHT = 64
SLACK = 0.1
"""How far a count may be from a whole number: what is done for several rollouts at once."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What each rollout crosses."""

    functions: int
    modules: int
    calls: int
    values: int
    messages: int
    """Of a worker to the controller."""


LIMITS = Counts(functions=216, modules=62, calls=267, values=16, messages=3)
"""Of the rollout of `ours.py`, with a JSON report. They may only fall."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """How often each rollout calls each function, and makes each value."""

    calls: Mapping[str, int]
    values: Mapping[str, int]

    @property
    def modules(self) -> set[str]:
        """The modules of the functions."""
        return {name.partition(":")[0] for name in self.calls}


def crossing(bench: Bench) -> Crossing:
    """Compare a session of few and one of many rollouts, in one process."""
    report = ("--osmosis-output=crossed.json",)
    few, many = (
        bench.ours(0.0, n=n, in_flight=IN_FLIGHT, plugin="bench_crossed", more=report)().inside[0]
        for n in (FEW, MANY)
    )
    return Crossing(_each(few["calls"], many["calls"]), _each(few["values"], many["values"]))


def _each(few: Mapping[str, int], many: Mapping[str, int]) -> dict[str, int]:
    found = {name: count - few.get(name, 0) for name, count in many.items()}
    each = {name: int(count / (MANY - FEW) + SLACK) for name, count in found.items()}
    return {name: count for name, count in each.items() if count}


def calls(bench: Bench) -> list[Line]:
    """Functions, modules and calls of ours."""
    found = crossing(bench)
    result = (
        f"{len(found.calls)} functions of {len(found.modules)} modules,"
        f" {sum(found.calls.values())} calls"
    )
    goal = f"{LIMITS.functions}, {LIMITS.modules}, {LIMITS.calls} at most"
    return [Line("a rollout crosses", _setting(), "one process", result, goal=goal)]


def values(bench: Bench) -> list[Line]:
    """Classes of values of ours, and how many of each a rollout makes."""
    found = sorted(crossing(bench).values.items())
    lines = [Line("", "", name, str(count)) for name, count in found]
    goal = f"{LIMITS.values} at most"
    return [Line("a rollout makes", _setting(), "classes", str(len(found)), goal=goal), *lines]


def messages(bench: Bench) -> list[Line]:
    """Messages and bytes between workers and controller, and the processor time of it all."""
    few, many = bench.size(500), bench.size(2000)
    counted = {n: _messages(bench, n, workers=2) for n in (few, many)}

    def each(way: str) -> str:
        return f"{(counted[many][way] - counted[few][way]) / (many - few):.2f}"

    plain = bench.repeated(bench.ours(0.0, n=many, in_flight=IN_FLIGHT, processes=2))
    lines = [
        Line("", "", "to the controller", f"{each('up')} messages, {each('up_bytes')} bytes"),
        Line("", "", "to a worker", f"{each('down')} messages, {each('down_bytes')} bytes"),
    ]
    head = Line(
        *("a rollout with -n 2", f"0 ms, B {IN_FLIGHT}, N {many:,}", "all processes", ""),
        *(plain.wall_s.show(), plain.cpu_ms(many).show(), plain.rss_mb.show(0)),
        "1.5 ms at most",
    )
    return [head, *lines]


def messages_of_a_rollout(bench: Bench) -> int:
    """Return how many messages a worker sends of each rollout; those of the start are few."""
    return int(_messages(bench, MANY, workers=1)["up"] / MANY)


def _messages(bench: Bench, n: int, *, workers: int) -> Mapping[str, Any]:
    observe = bench.ours(0.0, n=n, in_flight=IN_FLIGHT, processes=workers, plugin="bench_messages")
    return observe().inside[0]


def _setting() -> str:
    return f"0 ms, B {IN_FLIGHT}, N {FEW} to {MANY}"
