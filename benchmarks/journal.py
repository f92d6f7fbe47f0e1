"""What the journal costs: runs of an agent that does nothing, with a journal and without.

    python benchmarks/journal.py [RUNS] [WORKERS] [REPEATS]

The agent makes no model call, so that nothing hides the cost: a real evaluation waits for models.
Each session is a process of its own; the peak RSS is that of the process that reports. Sessions
with and without a journal take turns, and the medians are compared.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENT = """
from osmosis_ai.rollout import RolloutAgentLoop


class Idle(RolloutAgentLoop):
    name = "idle"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        return ctx.complete(list(ctx.request.messages), reward=1.0)


agent_loop = Idle()
"""
N = 10


def main(runs: int, workers: int, repeats: int) -> None:
    """Prints a line a session, then the ratios."""
    with tempfile.TemporaryDirectory(prefix="osmosis-journal-") as name:
        folder = Path(name)
        (folder / "agent.py").write_text(AGENT)
        row = {"system_prompt": "Say nothing.", "user_prompt": "?"}
        (folder / "data.jsonl").write_text(f"{json.dumps(row)}\n" * (runs // N))
        print(f"{runs} runs, {workers} workers; fsync takes {fsync_ms(folder):.2f} ms here")
        print(f"{'journal':>8} {'wall s':>8} {'us a run':>9} {'CPU s':>8} {'peak RSS MB':>12}")
        found: dict[str, list[tuple[float, float]]] = {"off": [], "on": []}
        for _ in range(repeats):
            for journal, taken in found.items():
                taken.append(session(folder, journal, runs, workers))
    walls, peaks = (
        {name: statistics.median(each[at] for each in taken) for name, taken in found.items()}
        for at in (0, 1)
    )
    print(
        f"on / off: wall {walls['on'] / walls['off']:.2f}, "
        f"peak RSS {peaks['on'] / peaks['off']:.2f}; "
        f"{(walls['on'] - walls['off']) / runs * 1e6:.0f} us a run"
    )


def session(folder: Path, journal: str, runs: int, workers: int) -> tuple[float, float]:
    """Wall time and peak RSS of one session, in seconds and MB."""
    command = [
        sys.executable, "-m", "pytest", f"-n{workers}", "-q", "-q", "-p", "no:cacheprovider",
        "--osmosis-agent=agent:agent_loop", "--osmosis-data=data.jsonl", "--osmosis-model=none",
        "--osmosis-base-url=http://127.0.0.1:9/v1", f"--n={N}", "--batch-size=16",
        "--osmosis-fresh" if journal == "on" else "--osmosis-no-journal",
    ]  # fmt: skip
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"the session failed: {' '.join(command)}")
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    print(f"{journal:>8} {wall:8.2f} {wall / runs * 1e6:9.0f} {cpu:8.2f} {peak:12.0f}", flush=True)
    return wall, peak


def fsync_ms(folder: Path) -> float:
    """What one small append costs that must be on disk."""
    descriptor = os.open(folder / "probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    started = time.perf_counter()
    for _ in range(50):
        os.write(descriptor, b"x" * 300)
        os.fsync(descriptor)
    os.close(descriptor)
    return (time.perf_counter() - started) / 50 * 1000


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*[*given, *(100_000, 0, 3)[len(given) :]])
