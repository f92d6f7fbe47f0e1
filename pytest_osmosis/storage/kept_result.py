"""The result of an evaluation that is kept, aggregated from its journal as at the end of a session.

Also of a suite's previous one, to be compared with. Knows journals and folders; no session that
goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.aggregate import CONFIDENCE, aggregate
from ..analysis.baseline import Baseline, baseline_of
from ..analysis.planned_rows import PlannedRows, row_key
from ..run_result import RunResult, SuiteInfo
from . import journal
from .fingerprint import RunPlan
from .journal import FILE, JournalEntry, JournalError, Reader, Replay
from .lines import RowRun, result_of
from .resume import is_complete, planned

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
    repeated = [run for run, _ in _read_runs(folder, planned(kept.repeated, plan), suite=info.name)]
    return aggregate(info, runs, selected=plan.total, confidence=CONFIDENCE, repeated=repeated)


def planned_info(kept: Replay, plan: RunPlan) -> SuiteInfo:
    """Return the suite as the journal has it; n and rows as they were last asked for."""
    return replace(SuiteInfo.from_dict(kept.header["info"]), n=plan.n, rows=len(plan.indices))


def kept_runs(
    folder: Path, kept: Replay, runs: Iterable[RowRun], *, suite: str
) -> Iterator[tuple[RunResult, str]]:
    """Return those of the runs that have ended, as a suite's, with why each did not pass."""
    entries = (kept.runs[key] for key in runs if key in kept.runs)
    return _read_runs(folder, entries, suite=suite)


def _read_runs(
    folder: Path, entries: Iterable[JournalEntry], *, suite: str
) -> Iterator[tuple[RunResult, str]]:
    reader = Reader(folder / FILE)
    try:
        for entry in entries:
            fields, why = reader.run(entry)
            yield result_of(fields, suite, cached=True), why
    finally:
        reader.close()


def last_complete(info: SuiteInfo, folder: Path) -> Baseline | None:
    """Return a suite's previous complete evaluation, or None; what cannot be read is passed over.

    The one in the suite's own folder if it is complete, else the newest one that was put aside.
    """
    for kept in _newest_first(folder):
        try:
            if is_complete(kept):
                return _read(kept, info)
        except (JournalError, OSError, KeyError, TypeError):
            continue
    return None


def _newest_first(folder: Path) -> Iterator[Path]:
    """The suite's folder, then those that were put aside; their names end with their time."""
    if (folder / FILE).is_file():
        yield folder
    aside = folder.parent.glob(f"{folder.name}@*/{FILE}")
    yield from sorted((path.parent for path in aside), reverse=True)


def _read(folder: Path, info: SuiteInfo) -> Baseline:
    kept = journal.replay(folder / FILE)
    plan = RunPlan.from_json(kept.plan)
    told = planned_info(kept, plan)
    runs = (run for run, _ in kept_runs(folder, kept, plan.runs(), suite=info.name))
    suite = aggregate(told, runs, selected=plan.total)
    begun = time.strftime("%Y-%m-%d %H:%M", time.gmtime(kept.header["created_at"]))
    return baseline_of(suite, f"{told.model} of {begun} UTC", _rows(plan, suite))


def _rows(plan: RunPlan, suite: SuiteResult) -> PlannedRows:
    ids = {row.row_index: row.row_id for row in suite.rows}
    return PlannedRows(
        indices=plan.indices,
        names=list(plan.row_of_name),
        keys=[row_key(index, ids.get(index)) for index in plan.indices],
        digests=list(plan.digest_of.values()),
    )
