"""The result of an evaluation that is kept, aggregated from its journal as at the end of a session.

Knows journals; does not know how an evaluation goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.aggregate import CONFIDENCE, aggregate
from ..run_result import RunResult, SuiteInfo
from .fingerprint import RunPlan
from .journal import FILE, Reader, Replay
from .lines import RowRun, result_of

if TYPE_CHECKING:
    from ..suite_results import SuiteResult


def kept_suite(folder: Path, kept: Replay) -> SuiteResult:
    """Return the figures of the runs that have ended, of the rows that were last asked for.

    Raises:
        JournalError: when a run's line was changed since the journal was read.
    """
    plan = RunPlan.from_json(kept.plan)
    info = planned_info(kept, plan)
    runs = (
        replace(run, cached=False)
        for run, _ in kept_runs(folder, kept, plan.runs(), suite=info.name)
    )
    return aggregate(info, runs, selected=plan.total, confidence=CONFIDENCE)


def planned_info(kept: Replay, plan: RunPlan) -> SuiteInfo:
    """Return the suite as the journal has it; n and rows as they were last asked for."""
    return replace(SuiteInfo.from_dict(kept.header["info"]), n=plan.n, rows=len(plan.indices))


def kept_runs(
    folder: Path, kept: Replay, runs: Iterable[RowRun], *, suite: str
) -> Iterator[tuple[RunResult, str]]:
    """Yield those of the runs that have ended, as a suite's, with why each did not pass."""
    reader = Reader(folder / FILE)
    try:
        for key in runs:
            if key in kept.runs:
                fields, why = reader.run(kept.runs[key])
                yield result_of(fields, suite, cached=True), why
    finally:
        reader.close()
