"""A suite's previous complete evaluation, from the journals that are kept.

The one in the suite's own folder if it is complete, else the newest complete one that was put
aside. Knows journals and folders; no session that goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.aggregate import aggregate
from ..analysis.baseline import Baseline, baseline_of
from ..analysis.planned_rows import PlannedRows, row_key
from ..dataset.dataset import DIGEST_LENGTH
from . import journal
from .fingerprint import RunPlan
from .journal import FILE, JournalError
from .kept_result import kept_runs, planned_info
from .resume import is_complete

if TYPE_CHECKING:
    from ..run_result import SuiteInfo
    from ..suite_results import SuiteResult


def last_complete(info: SuiteInfo, folder: Path) -> Baseline | None:
    """The evaluation, or None; what cannot be read is passed over."""
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
    size = DIGEST_LENGTH
    return PlannedRows(
        indices=plan.indices,
        names=[plan.names[at] if plan.names else f"row-{i}" for at, i in enumerate(plan.indices)],
        keys=[row_key(index, ids.get(index)) for index in plan.indices],
        digests=[plan.digests[at : at + size] for at in range(0, len(plan.digests), size)],
    )
