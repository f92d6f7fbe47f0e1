"""What the figures of an evaluation cost, against reading the same runs from their JSON.

In this process, which collects garbage as rarely as a session: the runs are there when that comes
to its figures. Each round reads the runs anew, in the order in which 64 in flight leave them.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable

from pytest_osmosis.analysis.aggregate import CONFIDENCE, aggregate
from pytest_osmosis.run_result import RunResult, SuiteInfo
from pytest_osmosis.session.rare_collection import FIRST_THRESHOLD

from .bench import Bench
from .measure import Cost
from .rounds import Observation, interleaved
from .table import Line

N = 5
IN_FLIGHT = 64
EVAL_FNS = ("rewards:exact", "rewards:style", "rewards:length")


def figures(bench: Bench) -> list[Line]:
    """Mean, deviation, pass@k and pass^k with intervals of three eval functions."""
    rows = bench.size(20_000)
    lines, runs = _lines(rows), list[RunResult]()
    info = SuiteInfo(
        name="data.jsonl", agent="agent", data="data.jsonl", model="m", endpoint="localhost",
        eval_fns=EVAL_FNS, n=N, pass_threshold=1.0, rows=rows, digest="",
    )  # fmt: skip

    def read() -> None:
        runs[:] = map(RunResult.from_json, lines)

    def figured() -> None:
        aggregate(info, runs, selected=len(runs), confidence=CONFIDENCE)

    found = interleaved({"read": timed(read), "figures": timed(figured)}, repeats=bench.repeats)
    seconds = {name: each.spread(lambda one: one.cost.cpu_s).show() for name, each in found.items()}
    ratio = found["figures"].cheaper_than(found["read"])
    setting = f"{rows:,} rows x {N} runs, {len(EVAL_FNS)} eval functions"
    return [
        Line("figures", setting, "reading the runs from JSON", f"{seconds['read']} s of CPU"),
        Line(
            *("", "", "ours, with intervals"),
            f"{seconds['figures']} s of CPU, reading / ours {ratio.show(1)}",
            goal="0.50 s at most",
        ),
    ]


def _lines(rows: int) -> list[str]:
    draw = random.Random(1)
    ended = sorted(range(rows * N), key=lambda at: at + IN_FLIGHT * draw.random())
    return [_run(draw, *divmod(at, N)).to_json() for at in ended]


def _run(draw: random.Random, row: int, run: int) -> RunResult:
    values = (float(draw.random() < 0.7), round(draw.random(), 2), draw.gauss(0.0, 3.0))
    return RunResult(
        "data.jsonl", row, run, row_id=f"id-{row}", success=True, passed=values[0] == 1.0,
        scores=dict(zip(EVAL_FNS, values, strict=True)), answer="391", finish_reason="stop",
        duration_ms=draw.randint(100, 9_000), tokens=draw.randint(10, 900), llm_calls=1,
        cost_usd=0.001,
    )  # fmt: skip


def timed(work: Callable[[], None]) -> Callable[[], Observation]:
    """Return what does the work in this process, and measures it."""

    def observe() -> Observation:
        thresholds = gc.get_threshold()
        gc.set_threshold(FIRST_THRESHOLD, *thresholds[1:])
        started_at, wall_s, cpu_s = time.time(), time.perf_counter(), time.process_time()
        work()
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        gc.set_threshold(*thresholds)
        return Observation(Cost(wall_s, cpu_s, 0.0, started_at), {})

    return observe
