"""Evaluations that are kept, made up in a line, for tests of what reads them."""

from __future__ import annotations

from pathlib import Path

from pytest_osmosis.run_result import RolloutRecord, RunResult, SuiteInfo
from pytest_osmosis.storage import journal, run_directory
from pytest_osmosis.storage.fingerprint import EvalFingerprint, RunPlan
from pytest_osmosis.storage.kept_result import kept_suite
from pytest_osmosis.storage.replay import replay
from pytest_osmosis.storage.run_lines import run_lines


def kept(
    folder: Path,
    name: str,
    *,
    done: int,
    started: float,
    rows: int = 2,
    n: int = 1,
    eval_fn: str = "r:f",
) -> Path:
    """An evaluation of two rows, of which some are done."""
    info = SuiteInfo("d.jsonl", "a:b", "/d.jsonl", "m", "host", (eval_fn,), n, 1.0, rows, "x")
    plan = RunPlan(n, list(range(rows)), "x" * 12 * rows)
    data = EvalFingerprint(info, {"model": "m", "seed": 3}, {"a.py": "1"}, plan).to_json()
    ahead = data.pop("plan")
    path = folder / name
    run_directory.make_private(path)
    header = {"name": name, "created_at": started, **data}
    journal.create(path, header, {"number": 1, "plan": ahead})
    add(path, *(RunResult("d.jsonl", row, 0, passed=row == 0) for row in range(done)))
    if done == rows:
        with (path / journal.FILE).open("ab") as file:
            file.write(journal.verdict_line(kept_suite(replay(path), figures=False)))
    return path


def add(folder: Path, *runs: RunResult | RolloutRecord) -> None:
    """Append runs to the journal of an evaluation."""
    records = (run if isinstance(run, RolloutRecord) else RolloutRecord(run) for run in runs)
    with (folder / journal.FILE).open("ab") as file:
        file.writelines(run_lines(record) for record in records)
