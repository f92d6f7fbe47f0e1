"""Evaluations as the store sees them, made in a line."""

from __future__ import annotations

from pathlib import Path

from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.spec import Keeping
from pytest_osmosis.storage.fingerprint import DIGEST_LENGTH, EvalFingerprint, RunPlan
from pytest_osmosis.storage.run_store import RunStore
from tests.support.made_results import info

SUITE = "data.jsonl"
ROWS, N = 3, 2


def evaluation(
    *, rows: str = "abc", model: str = "calc-7b", source: str = "1", name: str = SUITE
) -> EvalFingerprint:
    """An evaluation with a row for each letter of `rows`, twice each."""
    digests = "".join(letter * DIGEST_LENGTH for letter in rows)
    return EvalFingerprint(
        info(name=name, n=N, rows=len(rows), model=model),
        {"model": model},
        {"agent.py": source},
        RunPlan(N, range(len(rows)), digests),
    )


def ended(row: int, run: int, **fields: object) -> RunResult:
    """A run that has ended; it passed unless `fields` say otherwise."""
    usual: dict[str, object] = {"success": True, "passed": True, "answer": f"{row}.{run}"}
    return RunResult(SUITE, row, run, **{**usual, **fields})  # type: ignore[arg-type]


ALL = [ended(row, run) for row in range(ROWS) for run in range(N)]


def store_in(root: Path, keeping: Keeping | None = None, **options: object) -> RunStore:
    """A store that raises what keeps it from keeping."""

    def fail(reason: str) -> None:
        raise AssertionError(reason)

    usual: dict[str, object] = {"on_failure": fail}
    return RunStore(keeping or Keeping(), root=root, **{**usual, **options})  # type: ignore[arg-type]


def keep(
    root: Path,
    *runs: RunResult,
    identity: EvalFingerprint | None = None,
    is_ended: bool = False,
) -> Path:
    """Keep these runs as a session that is cut short after them, or ends; return the folder."""
    store = store_in(root)
    store.open([identity or evaluation()])
    store.begin([SUITE])
    for run in runs:
        store.log.keep(run.run_id, RolloutRecord(run))
        store.log.report(run.run_id, run)
    folder = Path(store.places()[SUITE].folder)
    if is_ended:
        store.end()
    store.close()
    return folder
