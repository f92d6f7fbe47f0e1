"""Runs of earlier sessions, which are reported without being run again.

In the process that reports they come from its `RunStore`; a worker gets them from the controller.
The tests of marked functions run again, on the recorded conversation. So do the eval functions of a
run whose judge failed, which is no cached one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..run_result import NO_JUDGEMENT, CachedRun, RolloutRecord, RunId
from ..storage.transcripts import RunFolder, Transcripts

if TYPE_CHECKING:
    from ..storage.run_store import RunStore
    from .suite import Suite


class ResultCache:
    """Those that were added: in a worker, each before its item is run."""

    def __init__(
        self, suites: Mapping[str, Suite], places: Callable[[], Mapping[str, RunFolder]]
    ) -> None:
        """`places` says where the transcripts of each suite are."""
        self._suites = suites
        self._places = places
        self._transcripts: dict[str, Transcripts] = {}
        self._unscored: dict[str, Transcripts | None] = {}
        self._added: dict[RunId, CachedRun | None] = {}
        """None once it was taken: the engine may ask for a run after its item has taken it."""

    def add(self, run: RunId, cached: CachedRun) -> None:
        """Add a run."""
        self._added[run] = cached

    def __contains__(self, run: RunId) -> bool:
        return run in self._added

    def take(self, run: RunId) -> RolloutRecord:
        """Return a run, ready to be reported; once."""
        cached = self._find(run)
        assert cached is not None
        if not self._suites[run.suite].spec.marked:
            return RolloutRecord(cached.result, cached.why)
        return self._with_conversation(run, cached)

    def unscored(self, run: RunId) -> RolloutRecord | None:
        """Return a run that lacks nothing but what a judge would say; in the engine's thread."""
        if run.suite not in self._unscored:
            there = self._places().get(run.suite)
            found = Transcripts(Path(there.folder)) if there and there.has_unscored else None
            self._unscored[run.suite] = found
        said, key = self._unscored[run.suite], (run.row_index, run.run_index)
        record = said.read(key) if said is not None and said.has_messages(key) else None
        if record is None or record.result.error_kind not in NO_JUDGEMENT:
            return None
        return replace(record, result=replace(record.result, suite=run.suite))

    def _find(self, run: RunId) -> CachedRun | None:
        cached, self._added[run] = self._added[run], None
        return cached

    def _with_conversation(self, run: RunId, cached: CachedRun) -> RolloutRecord:
        row = self._suites[run.suite].dataset.row(run.row_index)
        if run.suite not in self._transcripts:
            self._transcripts[run.suite] = Transcripts(Path(self._places()[run.suite].folder))
        record = self._transcripts[run.suite].read((run.row_index, run.run_index))
        assert record is not None
        answer = cached.result.answer
        return replace(
            record,
            result=replace(record.result, suite=run.suite, cached=True, answer=answer),
            ground_truth=row.ground_truth,
            metadata={**row.metadata(), "row_index": run.row_index, "run_index": run.run_index},
        )


class StoreCache(ResultCache):
    """Those of a `RunStore`, in a session without workers."""

    def __init__(self, suites: Mapping[str, Suite], store: RunStore) -> None:
        super().__init__(suites, store.places)
        self._store = store

    def __contains__(self, run: RunId) -> bool:
        return self._store.has(run)

    def _find(self, run: RunId) -> CachedRun | None:
        return self._store.kept(run)
