"""The result of an evaluation that is kept, aggregated from its journal as at the end of a session.

Also of a suite's previous one, to be compared with. Knows journals and folders; no session that
continues.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.aggregate import CONFIDENCE, aggregate
from ..analysis.baseline import Baseline, baseline_of
from ..analysis.planned_rows import PlannedRows, row_key
from ..run_result import RunResult, SuiteInfo
from ..verdicts import gate_result_of
from . import journal
from .fingerprint import RunPlan
from .journal import FILE, JournalError, Replay
from .resume import is_complete, planned

if TYPE_CHECKING:
    from ..suite_results import SuiteResult


def kept_suite(
    kept: Replay, *, confidence: float | None = CONFIDENCE, figures: bool = True
) -> SuiteResult:
    """Return the figures of the runs that have ended, of the rows that were last asked for.

    And what they came to.
    """
    plan = RunPlan.from_json(kept.plan)
    runs = _ended(kept, plan)
    repeated = planned(kept.repeated, plan)
    info = planned_info(kept, plan)
    suite = aggregate(
        info,
        runs,
        selected=plan.total,
        confidence=confidence,
        repeated=repeated,
        figures=figures,
    )
    return replace(suite, verdicts=tuple(map(gate_result_of, kept.gates)), verdict=kept.verdict)


def planned_info(kept: Replay, plan: RunPlan) -> SuiteInfo:
    """Return the suite as the journal has it; n and rows as they were last asked for."""
    return replace(SuiteInfo.from_dict(kept.header["info"]), n=plan.n, rows=len(plan.indices))


def _ended(kept: Replay, plan: RunPlan) -> list[RunResult]:
    return [kept.runs[key].result for key in plan.runs() if key in kept.runs]


def last_complete(info: SuiteInfo, folder: Path) -> Baseline | None:
    """Return a suite's previous complete evaluation, or None; what cannot be read is passed over.

    The one in the suite's own folder if it is complete, else the newest one that was put aside.
    """
    own = _subject(info)
    for each in _newest_first(folder):
        try:
            kept = journal.replay(each)
            if is_complete(kept) and _subject(SuiteInfo.from_dict(kept.header["info"])) == own:
                return _baseline(kept, info)
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


def _baseline(kept: Replay, info: SuiteInfo) -> Baseline:
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
