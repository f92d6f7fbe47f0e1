"""What a Ray cluster costs: the same evaluation in one process, by default, and as shards.

    python -m benchmarks.shards [RUNS] [LATENCY_MS] [BATCH_SIZE] [ROUNDS]

20,000 runs, 100 ms and 256 by default. The cluster is of this machine and is started beforehand, as
one that is there for many evaluations; what each evaluation adds to it is measured: connecting, the
copy of the project, the processes of the shards. Contenders take turns. Needs the extra `ray`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .endpoint import EndpointProcess
from .measure import Cost, Spread, environment, execute
from .ours import Project

SHARDS = (1, 2, 4)
PROCESS = b"osmosis_executors.shards.process"
SAMPLE_S = 0.2
HOLDER = """
import logging, sys
import ray

ray.init(
    address="local", num_cpus=4, object_store_memory=100 << 20, include_dashboard=False,
    log_to_driver=False, logging_level=logging.ERROR, _node_ip_address="127.0.0.2",
)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""


def main(runs: int = 20_000, latency_ms: int = 100, batch: int = 256, rounds: int = 1) -> None:
    """Print a line a contender."""
    with (
        tempfile.TemporaryDirectory(prefix="osmosis-bench-") as name,
        EndpointProcess(latency_s=latency_ms / 1000) as endpoint,
    ):
        folder = Path(name)
        env = {**environment(folder), "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
        project = Project(folder)
        with cluster(env) as address:
            contenders: dict[str, tuple[int | None, tuple[str, ...]]] = {
                "one process": (0, ()),
                "by default": (None, ()),
                **{
                    f"{count} shard{'s' if count > 1 else ''}": (
                        None,
                        (f"--osmosis-ray={address}", f"--osmosis-shards={count}"),
                    )
                    for count in SHARDS
                },
            }
            found: dict[str, list[tuple[Cost, float, float]]] = {each: [] for each in contenders}
            for _ in range(rounds):
                for contender, (processes, more) in contenders.items():
                    command = project.command(
                        endpoint.base_url,
                        n=runs,
                        in_flight=batch,
                        processes=processes,
                        more=("--osmosis-fresh", *more),
                    )
                    with watched() as shards:
                        cost = execute(command, cwd=folder, env=env)
                    found[contender].append((cost, shards.rss_mb, shards.cpu_s))
                    print(f"{contender}: {cost.wall_s:.1f} s", file=sys.stderr, flush=True)
    show(found, runs=runs, latency_ms=latency_ms, batch=batch)


def show(
    found: Mapping[str, list[tuple[Cost, float, float]]], *, runs: int, latency_ms: int, batch: int
) -> None:
    """Print the table."""
    ideal = runs * latency_ms / 1000 / batch
    print(f"{runs:,} runs, {latency_ms} ms, B {batch}: {ideal:.1f} s would be ideal")
    print(
        f"{'':12} {'wall s':>16} {'CPU ms a run':>13} {'of it driver':>13} {'driver MB':>10} "
        f"{'shards MB':>10}"
    )
    for contender, costs in found.items():
        wall = Spread.of(cost.wall_s for cost, _, _ in costs)
        cpu = Spread.of((cost.cpu_s + cpu_s) / runs * 1000 for cost, _, cpu_s in costs)
        own = Spread.of(cost.cpu_s / runs * 1000 for cost, _, _ in costs)
        driver = Spread.of(cost.rss_mb for cost, _, _ in costs)
        shards = Spread.of(rss for _, rss, _ in costs)
        print(
            f"{contender:12} {wall.show(1):>16} {cpu.show(2):>13} {own.show(2):>13} "
            f"{driver.show(0):>10} {shards.show(0):>10}"
        )


@contextmanager
def cluster(env: Mapping[str, str]) -> Iterator[str]:
    """A cluster of this machine, and its address."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        yield holder.stdout.readline().strip()
    finally:
        holder.stdin.close()
        holder.wait()


class ShardProcesses(threading.Thread):
    """Watches the processes of shards: their peaks of memory and their processor time."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._seen: dict[int, tuple[float, float]] = {}

    @property
    def rss_mb(self) -> float:
        """The peaks of all of them, added up."""
        return sum(rss for rss, _ in self._seen.values())

    @property
    def cpu_s(self) -> float:
        """User and system time, as far as it was seen."""
        return sum(cpu for _, cpu in self._seen.values())

    def end(self) -> None:
        """Watch no longer."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Look at all processes now and then."""
        while not self._ended.wait(SAMPLE_S):
            for folder in Path("/proc").iterdir():
                if not folder.name.isdigit():
                    continue
                try:
                    if PROCESS in (folder / "cmdline").read_bytes():
                        self._seen[int(folder.name)] = _usage(folder)
                except OSError:
                    continue


def _usage(folder: Path) -> tuple[float, float]:
    status = (folder / "status").read_text()
    peak_kb = int(status.partition("VmHWM:")[2].split()[0])
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return peak_kb / 1024, (int(fields[11]) + int(fields[12])) / 100


@contextmanager
def watched() -> Iterator[ShardProcesses]:
    """Watch the shards meanwhile."""
    shards = ShardProcesses()
    shards.start()
    try:
        yield shards
    finally:
        shards.end()


if __name__ == "__main__":
    began = time.monotonic()
    main(*map(int, sys.argv[1:]))
    print(f"{time.monotonic() - began:.0f} s in all on {time.strftime('%Y-%m-%d')}")
