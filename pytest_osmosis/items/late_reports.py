"""Reports of runs that have ended and whose items the session did not come to.

They are made at the end of a session that was cut short, from results alone: what a session has
counted, pytest has counted too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..run_result import REPORT_FIELD, RolloutRecord
from .protocol import failure_repr, observe, properties, timing


def late_reports(
    nodeid: str, finished: RolloutRecord, *, threshold: float, gated: bool
) -> Iterator[pytest.TestReport]:
    """Yield the three reports of a run's item; `gated`: gates decide, and not the run."""
    path, _, name = nodeid.partition("::")
    outcome = finished.result.outcome
    final = "setup" if outcome == "error" else "call"
    phases: tuple[Any, ...] = ("setup", "call", "teardown")
    for when in phases:
        if when == "call" and final == "setup":
            continue
        failed = when == final and outcome != "passed"
        report = pytest.TestReport(
            nodeid=nodeid,
            location=(path, None, name),
            keywords={},
            outcome="failed" if failed else "passed",
            longrepr=failure_repr(finished, path=path, threshold=threshold) if failed else None,
            when=when,
            user_properties=properties(finished.result),
            **(timing(finished.result) if when == final else {}),
        )
        if when == final:
            setattr(report, REPORT_FIELD, finished.result)
            if gated:
                observe(report, finished.result, threshold)
        yield report
