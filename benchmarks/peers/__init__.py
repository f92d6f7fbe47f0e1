"""The same work with other evaluation tools, each in an environment of its own.

An environment is `benchmarks/.peers/<name>`, or where `OSMOSIS_BENCH_PEERS` says; one that is not
there is skipped and said. Each script beside this file takes `BASE_URL N B`, asks once a row, at
most B at a time, scores the answer by equality, and ends with 0 when all N were right.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..bench import Bench
from ..measure import CommandFailed
from ..rounds import Series, interleaved
from ..table import Line

HERE = Path(__file__).resolve().parent
PEERS = {
    "osmosis-ai": "osmosis_ai_cli.py",
    "inspect-ai": "inspect_eval.py",
    "pydantic-evals": "pydantic_evaluate.py",
    "deepeval": "deepeval_evaluate.py",
    "verifiers": "verifiers_evaluate.py",
}
"""Distribution and environment, and the script that runs in it."""
LATENCY_S = 0.1


def peers(bench: Bench) -> list[Line]:
    """Every peer whose environment is there, beside ours."""
    lines = [line for name in PEERS for line in _peer(bench, name)]
    lines[0] = Line("peers", *lines[0].cells[1:])
    return lines


def environments() -> Path:
    """The folder that holds the peers' environments."""
    return Path(os.environ.get("OSMOSIS_BENCH_PEERS", HERE.parent / ".peers"))


def _peer(bench: Bench, name: str) -> list[Line]:
    python = environments() / name / "bin" / "python"
    if not python.exists():
        return [Line("", "", name, "skipped: not installed, see benchmarks/README.md")]
    subject = f"{name} {_version(python, name)}"
    lines = []
    for latency_s in (0.0, LATENCY_S):
        n, in_flight = (64, 16) if bench.quick else (500, 64)
        endpoint = bench.endpoint(latency_s)
        script = HERE / PEERS[name]
        line = [str(python), str(script), endpoint.base_url, str(n), str(in_flight)]
        contenders = {
            "ours": bench.ours(latency_s, n=n, in_flight=in_flight),
            "theirs": bench.command(line, endpoint),
        }
        try:
            found = interleaved(contenders, repeats=min(bench.repeats, 3))
        except CommandFailed as error:
            return [*lines, Line("", "", subject, f"failed: {str(error).splitlines()[-1][:100]}")]
        setting = f"{latency_s * 1000:.0f} ms, B {in_flight}, N {n}"
        lines.append(_line(setting, subject, found["theirs"], found["ours"], n))
    return lines


def _line(setting: str, subject: str, theirs: Series, ours: Series, n: int) -> Line:
    times, share = ours.faster_than(theirs), ours.cheaper_than(theirs)
    return Line(
        "",
        setting,
        subject,
        f"takes {times.show(1)} x our time, {share.show(1)} x our CPU",
        theirs.wall_s.show(),
        theirs.cpu_ms(n).show(),
        theirs.rss_mb.show(0),
    )


def _version(python: Path, name: str) -> str:
    code = f"from importlib.metadata import version; print(version({name!r}))"
    found = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "?"
