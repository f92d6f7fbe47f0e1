"""What a command takes: wall, processor and memory of it and of every process it starts.

Knows nothing of what the command does. Numbers are compared as ratios within one round, since the
machine is never as quiet twice.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.05
_TAIL = 3000


class CommandFailed(Exception):
    """A measured command ended with another status than 0."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one execution took."""

    wall_s: float
    """From its start to its end: imports and shutdown are part of it."""
    cpu_s: float
    """User and system time of all its processes."""
    rss_mb: float
    """The peaks of all its processes, added up."""
    started_at: float
    """Wall clock."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Several observations of one number."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The observations."""
        return cls(tuple(values))

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    def show(self, digits: int = 2) -> str:
        """Median, and the range when there is one."""
        text = f"{self.median:.{digits}f}"
        if len(self.values) == 1:
            return text
        return f"{text} ({min(self.values):.{digits}f}–{max(self.values):.{digits}f})"


def execute(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], expect: int | None = 0
) -> Cost:
    """Run the command to its end; `expect` is its exit status, None any."""
    with tempfile.TemporaryFile() as output:
        started_at, started = time.time(), time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        memory = _Memory(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        memory.end()
        process.returncode = os.waitstatus_to_exitcode(status)
        if expect is not None and process.returncode != expect:
            output.seek(0)
            text = output.read().decode("utf-8", "replace")[-_TAIL:]
            raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    peak_mb = usage.ru_maxrss / 1024  # kB on Linux
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, max(memory.total_mb, peak_mb), started_at)


def environment(folder: Path) -> dict[str, str]:
    """The environment of measured commands: bytecode is cached, in `folder`, and nothing is set.

    Temporary folders are of its own: pytest would remove those of other sessions of the machine.
    """
    dropped = ("PYTEST_", "OSMOSIS_", "PYTHON", "OPENAI_", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    kept["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    kept["TMPDIR"] = str(folder / "temporary")
    (folder / "temporary").mkdir(exist_ok=True)
    return kept


class _Memory:
    """Watches the high-water marks of a process and its descendants, where /proc tells them."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peaks_kb: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def total_mb(self) -> float:
        """All peaks added up."""
        return sum(self._peaks_kb.values()) / 1024

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            for pid in _tree(self._pid):
                peak = _high_water_kb(pid)
                if peak:
                    self._peaks_kb[pid] = max(peak, self._peaks_kb.get(pid, 0))


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        except OSError:
            continue
        found.extend(int(child) for child in text.split())
    return found


def _high_water_kb(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    except OSError:
        return 0  # it has just ended
    return 0
