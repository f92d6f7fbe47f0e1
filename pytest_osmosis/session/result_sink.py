"""Take in results in the reporting process: record them, store them, count them for the budget.

They come from workers under xdist, else from this process's own rollouts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..run_result import RunId, RunResult
from ..spec import SessionSpec
from ..storage.run_store import RunStore
from .budget import RunBudget
from .recorder import Recorder

if TYPE_CHECKING:
    from ..run_result import RolloutRecord
    from .reporting_evaluation import ReportingEvaluation


class ResultSink:
    """One a session."""

    def __init__(
        self, spec: SessionSpec, recorder: Recorder, store: RunStore, *, runs: ReportingEvaluation
    ) -> None:
        """`runs` halts and resizes the process's own rollouts, or those of its workers."""
        self.recorder = recorder
        self.store = store
        self._runs = runs
        self.supervisor = RunBudget(
            batch_size=spec.batch_size,
            budget=spec.budget,
            selected=recorder.selected,
            halt=self.halt,
            resize=runs.resize_runs,
        )

    def received(self, run: RunId, result: RunResult) -> None:
        """Take the result of a run that has ended, and is kept; from any thread."""
        self.recorder.note(run, result)
        if self.store.log.has_unscored and self.store.take_back(result):  # it was paid before
            result = replace(result, tokens=0, cost_usd=None, llm_calls=0)
        self.supervisor.ended(result, others_scored=self.store.resumes)

    def ended(self, run: RunId, record: RolloutRecord, lines: bytes | None = None) -> None:
        """Keep a run of this process, or of a shard by the lines that it has sent, and take it."""
        self.store.log.keep(run, record, lines)
        self.received(run, record.result)

    def paced(self, kind: str, not_before_s: float) -> None:
        """Note that a call was refused for its rate, or answered after one had been."""
        if kind == "ok":
            self.supervisor.answered()
        else:
            self.supervisor.pressed()

    def halt(self, reason: str, *, spent: Callable[[], str] | None = None) -> None:
        """Start no further run, for this reason; `spent`: see `budget.Halt`."""
        self.recorder.halt(reason, spent=spent)
        self._runs.halt_runs(reason)

    def stuck(self, reason: str) -> None:
        """Halt: nothing more can be run in this process."""
        self.halt(reason)

    def close(self) -> None:
        """Write out what was kept, and close; harmless when repeated."""
        self.supervisor.close()
        self.store.close()
