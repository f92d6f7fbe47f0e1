"""How much code the main job is, whatever the machine: tokens imported, tokens of functions called.

The main job is one agent on one dataset in one process, with a gate, a JSON and a JUnit report.
What counts as a token is `.ci/budget.py`'s to say.
"""

from __future__ import annotations

import runpy
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from .bench import Bench
from .table import Line

BUDGET = Path(__file__).parents[1] / ".ci" / "budget.py"
FILES = ("--osmosis-gate=mean >= 0", "--osmosis-output=main.json", "--junitxml=main.xml")


@dataclass(frozen=True, slots=True)
class Size:
    """What whoever follows the main job has to read."""

    modules: int
    imported: int
    """Tokens of the modules of ours that are imported."""
    functions: int
    called: int
    """Tokens of the functions that are entered at least once."""


LIMITS = Size(modules=201, imported=151_200, functions=1_412, called=81_200)
"""They may only fall."""


def size(bench: Bench) -> Size:
    """Run the main job, and count."""
    observed = bench.ours(0.0, n=3, in_flight=2, plugin="bench_main_job", more=FILES)()
    [found] = observed.inside
    positions = cast(
        "Callable[[str], list[tuple[int, int]]]", runpy.run_path(str(BUDGET))["python_tokens"]
    )
    lines = {file: [line for line, _ in positions(_text(file))] for file in found["files"]}
    entered: defaultdict[str, set[int]] = defaultdict(set)
    for file, first, last in found["spans"]:
        entered[file].update(range(first, last + 1))
    return Size(
        modules=len(found["files"]),
        imported=sum(map(len, lines.values())),
        functions=len(found["spans"]),
        called=sum(line in entered[file] for file in entered for line in lines[file]),
    )


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def main_job(bench: Bench) -> list[Line]:
    """Tokens that the main job imports and calls."""
    found = size(bench)
    return [
        Line(
            "the main job",
            "N 3, a gate, JSON, JUnit",
            "imports",
            f"{found.modules} modules, {found.imported:,} tokens",
            goal=f"{LIMITS.imported:,} at most",
        ),
        Line(
            "",
            "",
            "calls",
            f"{found.functions:,} functions, {found.called:,} tokens",
            goal=f"{LIMITS.called:,} at most",
        ),
    ]
