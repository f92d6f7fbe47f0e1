"""A suite's previous complete evaluation, among those that are kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...analysis.planned_rows import PlannedRows, row_key
from ...run_result import SuiteInfo
from ...storage import journal
from ...storage.fingerprint import RunPlan
from ...storage.journal import FILE, JournalError, Replay
from ...storage.kept_result import kept_suite
from ...storage.resume import is_complete
from .baseline import Baseline, baseline_of

if TYPE_CHECKING:
    from ...suite_results import SuiteResult


def last_complete(info: SuiteInfo, folder: Path) -> Baseline | None:
    """Return a suite's previous complete evaluation, or None; what cannot be read is passed over.

    The one in the suite's own folder if it is complete, else the newest one that was put aside.
    """
    own = _subject(info)
    for each in _newest_first(folder):
        try:
            kept = journal.replay(each)
            if is_complete(kept) and _subject(SuiteInfo.from_dict(kept.header["info"])) == own:
                return _baseline(kept)
        except (JournalError, OSError, KeyError, TypeError):
            continue
    return None


def _subject(info: SuiteInfo) -> tuple[str, str, str]:
    """What an evaluation is of, wherever its data lie; a folder's name may stand for several."""
    return info.agent, info.model, Path(info.data).name


def _newest_first(folder: Path) -> Iterator[Path]:
    """The suite's folder, then those that were put aside; their names end with their time."""
    if (folder / FILE).is_file():
        yield folder
    aside = folder.parent.glob(f"{folder.name}@*/{FILE}")
    yield from sorted((path.parent for path in aside), reverse=True)


def _baseline(kept: Replay) -> Baseline:
    plan, suite = RunPlan.from_json(kept.plan), kept_suite(kept, figures=False)
    begun = time.strftime("%Y-%m-%d %H:%M", time.gmtime(kept.header["created_at"]))
    return baseline_of(suite, f"{suite.info.model} of {begun} UTC", _rows(plan, suite))


def _rows(plan: RunPlan, suite: SuiteResult) -> PlannedRows:
    ids = {row.row_index: row.row_id for row in suite.rows}
    return PlannedRows(
        indices=plan.indices,
        names=list(plan.row_of_name),
        keys=[row_key(index, ids.get(index)) for index in plan.indices],
        digests=list(plan.digest_of.values()),
    )
