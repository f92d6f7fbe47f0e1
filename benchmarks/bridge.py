"""What the bridge adds to a model call, against `ctx.chat` and against no bridge.

Sessions of one process ask the same endpoint once a rollout: by `ctx.chat`; by a light client of
the agent's own, one aiohttp session, over the bridge; and by that client without the bridge. The
second makes two HTTP exchanges a call where the others make one, and all of them are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .bench import Bench
from .measure import Spread
from .rounds import Observation, Series, interleaved
from .table import Line

MOST = 1.6
"""What is wanted of the processor time of a session, in times that of one with `ctx.chat`."""
ADDED_MS = 3.0
"""What is wanted of the median call."""
LATENCY_S = 0.1
FEW = 16
"""Calls in flight where their duration counts: more of them would wait for the processor."""
WAYS = {"chat": "ctx.chat", "bridged": "a client, over the bridge", "unbridged": "without bridge"}


def bridge(bench: Bench) -> list[Line]:
    """Processor time where only our own work counts, and the median call of a quick model."""
    lines = _measured(
        bench,
        ("bridge: processor time", 0.0, 64, bench.size(2000)),
        lambda one, chat, _: [
            f"{one.spread(_after_start).show()} s after the start",
            *_unless(one is chat, f"{_each(one, chat, _cpu).show()} x that of ctx.chat"),
            *_unless(one is chat, f"after the start {_each(one, chat, _after_start).show()} x"),
        ],
        f"{MOST} x at most",
    )
    return lines + _measured(
        bench,
        ("bridge: median call", LATENCY_S, FEW, bench.size(500)),
        lambda one, _, least: [
            f"{one.spread(_median_ms).show()} ms",
            *_unless(one is least, f"{_more(one, least, _median_ms).show()} ms more"),
        ],
        f"{ADDED_MS:g} ms more at most",
    )


def _measured(
    bench: Bench,
    cell: tuple[str, float, int, int],
    result: Callable[[Series, Series, Series], Sequence[str]],
    goal: str,
) -> list[Line]:
    name, latency_s, in_flight, n = cell
    found = interleaved(
        {
            agent: bench.ours(latency_s, n=n, in_flight=in_flight, agent=agent, plugin="bench_took")
            for agent in WAYS
        },
        repeats=bench.repeats,
    )
    head = (name, f"{latency_s * 1000:.0f} ms, B {in_flight}, N {n:,}")
    return [
        Line(
            *(head if agent == "chat" else ("", "")),
            WAYS[agent],
            ", ".join(result(one, found["chat"], found["unbridged"])),
            one.wall_s.show(),
            one.cpu_ms(n).show(),
            goal=goal if agent == "bridged" else "",
        )
        for agent, one in found.items()
    ]


def _unless(left_out: bool, text: str) -> list[str]:
    return [] if left_out else [text]


def _cpu(one: Observation) -> float:
    return one.cost.cpu_s


def _after_start(one: Observation) -> float:
    return float(one.inside[0]["cpu_s"])


def _median_ms(one: Observation) -> float:
    return float(one.inside[0]["median_ms"])


def _each(series: Series, other: Series, of: Callable[[Observation], float]) -> Spread:
    pairs = zip(series.observations, other.observations, strict=True)
    return Spread.of(of(one) / of(theirs) for one, theirs in pairs)


def _more(series: Series, other: Series, of: Callable[[Observation], float]) -> Spread:
    pairs = zip(series.observations, other.observations, strict=True)
    return Spread.of(of(one) - of(theirs) for one, theirs in pairs)
