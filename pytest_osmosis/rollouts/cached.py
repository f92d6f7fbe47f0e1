"""Runs of earlier sessions, which are reported without being run again.

In the process that reports they come from its `RunStore`; a worker gets them from the controller.
The tests of marked functions run again, on the recorded conversation. So do the eval functions of a
run whose judge failed, which is no cached one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..run_result import RolloutRecord, RunId, RunResult
from ..storage.run_log import RunLog

if TYPE_CHECKING:
    from .suite import Suite


class ResultCache:
    """Their results; in a worker each is added before its item is run."""

    def __init__(
        self,
        suites: Mapping[str, Suite],
        log: RunLog | None = None,
        runs: dict[RunId, RunResult] | None = None,
    ) -> None:
        """`log` reads what was said in earlier sessions; None: there were none."""
        self._suites = suites
        self.log = log
        self.runs = {} if runs is None else runs

    def record(self, run: RunId) -> RolloutRecord:
        """Return a run, ready to be reported."""
        result, suite = self.runs[run], self._suites[run.suite]
        if not suite.spec.marked:
            return RolloutRecord(result)
        assert self.log is not None
        record = self.log.record(run)
        assert record is not None
        decided = replace(record.result, suite=run.suite, cached=True, answer=result.answer)
        row = suite.dataset.row(run.row_index)
        metadata = {**row.metadata(), **run.position()}
        return replace(record, result=decided, ground_truth=row.ground_truth, metadata=metadata)
