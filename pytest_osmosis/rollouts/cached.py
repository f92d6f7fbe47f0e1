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
    from ..storage.run_store import RunStore
    from .suite import Suite


class ResultCache:
    """Those that were added: in a worker, each before its item is run."""

    def __init__(self, suites: Mapping[str, Suite], log: RunLog | None = None) -> None:
        """`log` reads what was said in earlier sessions; None: there were none."""
        self._suites = suites
        self._log = log
        self._added: dict[RunId, RunResult | None] = {}
        """None once it was taken: the engine may ask for a run after its item has taken it."""

    def add(self, run: RunId, result: RunResult) -> None:
        """Add a run."""
        self._added[run] = result

    def __contains__(self, run: RunId) -> bool:
        return run in self._added

    def take(self, run: RunId) -> RolloutRecord:
        """Return a run, ready to be reported; once."""
        result, suite = self._find(run), self._suites[run.suite]
        assert result is not None
        if not suite.spec.marked:
            return RolloutRecord(result)
        assert self._log is not None
        record = self._log.record(run)
        assert record is not None
        decided = replace(record.result, suite=run.suite, cached=True, answer=result.answer)
        row, position = suite.dataset.row(run.row_index), run._asdict()
        del position["suite"]
        metadata = {**row.metadata(), **position}
        return replace(record, result=decided, ground_truth=row.ground_truth, metadata=metadata)

    def unscored(self, run: RunId) -> RolloutRecord | None:
        """Return a run that lacks nothing but what a judge would say; in the engine's thread."""
        return None if self._log is None else self._log.unscored(run)

    def _find(self, run: RunId) -> RunResult | None:
        result, self._added[run] = self._added[run], None
        return result


class StoreCache(ResultCache):
    """Those of a `RunStore`, in a session without workers."""

    def __init__(self, suites: Mapping[str, Suite], store: RunStore) -> None:
        super().__init__(suites, store.log)
        self._store = store

    def __contains__(self, run: RunId) -> bool:
        return self._store.resumes and self._store.has(run)

    def _find(self, run: RunId) -> RunResult | None:
        return self._store.kept(run)
