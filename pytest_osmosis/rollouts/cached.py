"""Runs of earlier sessions, which are reported without being run again.

In the process that reports they come from its `RunStore`; a worker gets them from the controller.
Tests that score a run are run again, on the recorded conversation. So do the eval functions of a
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
        if not suite.spec.scored_by_test:
            return RolloutRecord(result)
        record = self._read(run)
        decided = replace(record.result, suite=run.suite, cached=True, answer=result.answer)
        payer = self.payer_of(run) or run
        return replace(record, result=decided, paid=None if payer == run else self.runs[payer])

    def payer_of(self, run: RunId) -> RunId | None:
        """Return the run of an earlier session that is the same rollout, and has its usage."""
        what = self._suites[run.suite].info.shares
        names = [name for name, each in self._suites.items() if each.info.shares == what]
        kept = (run._replace(suite=name) for name in (names if what else [run.suite]))
        found = [(self.runs[each].tokens or 0, each) for each in kept if each in self.runs]
        return max(found)[1] if found else None

    def holds(self, run: RunId) -> bool:
        """Return whether a run that has ended can be read as it was: `rollout_of`."""
        return run in self.runs or (self.log is not None and self.log.is_whole(run))

    def rollout_of(self, run: RunId) -> RolloutRecord:
        """Return a run, of this session or an earlier one, for another suite to share."""
        if run not in self.runs:
            return self._read(run)
        record = self.record(run)
        return replace(record, result=replace(record.result, cached=False))

    def _read(self, run: RunId) -> RolloutRecord:
        """Return a run that tests score as it ended, with what was said."""
        assert self.log is not None
        record = self.log.record(run)
        assert record is not None
        row = self._suites[run.suite].dataset.row(run.row_index)
        metadata = {**row.metadata(), **run.position()}
        return replace(record, ground_truth=row.ground_truth, metadata=metadata)
