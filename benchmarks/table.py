"""Lines of measurements, as text for a terminal and as Markdown for the docs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

HEAD = (
    "measure",
    "setting",
    "subject",
    "result",
    "wall s",
    "CPU ms / rollout",
    "peak RSS MB",
    "at least",
)
PACKAGES = (
    "pytest-osmosis",
    "pytest",
    "pytest-xdist",
    "execnet",
    "aiohttp",
    "pydantic",
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; everything but the first three may be empty."""

    measure: str
    setting: str
    subject: str
    result: str = ""
    wall: str = ""
    cpu: str = ""
    rss: str = ""
    goal: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """In the order of `HEAD`."""
        return (
            *(self.measure, self.setting, self.subject, self.result),
            *(self.wall, self.cpu, self.rss, self.goal),
        )


def as_text(lines: Sequence[Line]) -> str:
    """Columns in line."""
    rows = [HEAD, *(line.cells for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def as_markdown(lines: Sequence[Line], *, notes: Iterable[str], command: str) -> str:
    """The whole page, without what is aimed at."""
    head = HEAD[:-1]
    rows = [head, tuple("---" for _ in head), *(line.cells[:-1] for line in lines)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    found = "\n".join(f"- {note}" for note in notes)
    return PAGE.format(command=command, notes=found, table=table)


PAGE = """# Measurements

The last run of the benchmark, as it was written by `{command}`. `README.md` says what is
measured and how; `docs/performance.md` says what it means for you.

{notes}

*ours / bare* is the wall of a bare aiohttp loop that sends the same requests and does nothing else,
divided by ours: 1.00 would be an evaluation that costs nothing. *efficiency* is the ideal wall,
requests x latency / requests in flight, divided by the measured one. Walls are those of whole
commands: interpreter, imports, collection and the report are part of them. In parentheses the
smallest and the largest of all rounds.

{table}
"""


def machine() -> list[str]:
    """Where and with what it was measured."""
    versions = ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)))
    return [
        f"{_processor()}, {_cores()} cores, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, {versions}",
        f"pytest-osmosis is installed {_installed()}",
    ]


def _installed() -> str:
    url = distribution("pytest-osmosis").read_text("direct_url.json")
    is_editable = json.loads(url or "{}").get("dir_info", {}).get("editable", False)
    return "as an editable copy" if is_editable else "from a wheel"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2] for line in text.splitlines() if line.startswith("model name")]
    return names[0].strip() if names else platform.machine()
