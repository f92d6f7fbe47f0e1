"""Measures and prints: `python -m benchmarks`, or `tox -e bench`; README.md tells what."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .bench import Bench
from .cells import CELLS
from .peers import peers
from .table import Line, as_markdown, as_text, machine

PAGE = Path(__file__).resolve().parent / "MEASUREMENTS.md"
ALL = (*CELLS, "peers")
EVERYTHING = [name for name in ALL if name != "goals"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements that were asked for."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.only if name not in ALL]:
        parser.error(f"no measurement is called {unknown[0]!r}: there are {', '.join(ALL)}")
    repeats = given.repeats or (1 if given.quick else 5)
    lines: list[Line] = []
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="osmosis-bench-") as folder,
        Bench.opened(Path(folder), repeats=repeats, quick=given.quick) as bench,
    ):
        for name in given.only or EVERYTHING:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            lines += peers(bench) if name == "peers" else CELLS[name](bench)
    if given.quick:  # the goals are for other sizes
        lines = [replace(line, goal="") for line in lines]
    notes = [
        *machine(),
        f"medians of {repeats}, contenders interleaved; {time.monotonic() - began:.0f} s in all"
        f" on {time.strftime('%Y-%m-%d')}",
    ]
    print("\n".join([*notes, "", as_text(lines)]))
    if given.write is not None:
        given.write.write_text(as_markdown(lines, notes=notes, command="tox -e bench -- --write"))
        print(f"\nwritten: {given.write}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", help=f"of {', '.join(ALL)}; default: all but goals")
    parser.add_argument("--quick", action="store_true", help="small numbers: does it still work?")
    parser.add_argument("--repeats", type=int, help="rounds (5, or 1 with --quick)")
    parser.add_argument(
        "--write",
        nargs="?",
        type=Path,
        const=PAGE,
        help="rewrite the page of measurements, or a FILE",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
