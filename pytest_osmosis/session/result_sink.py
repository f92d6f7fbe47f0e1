"""Take in results in the reporting process: record them, store them, count them for the budget.

They come from workers under xdist, else from this process's own rollouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..results import RunResult
from ..spec import SessionSpec
from ..storage.store import RunStore
from ..storage.transcripts import TranscriptWriter
from .budget import RunBudget
from .recorder import Recorder

if TYPE_CHECKING:
    from ..results import RolloutRecord


class ResultSink:
    """One a session."""

    def __init__(self, spec: SessionSpec, recorder: Recorder, *, root: Path) -> None:
        self.recorder = recorder
        self.keeper = RunStore(
            spec.keeping,
            root=root,
            answers=spec.answers,
            transcribes=spec.trajectories is not None,
            on_failure=self.halt,
        )
        recorder.keeper = self.keeper
        self._logs = TranscriptWriter("main")
        self.halt_runs: Callable[[str], None] = lambda reason: None
        """Start no further run; set by the part that starts runs."""
        self.resize_runs: Callable[[int], None] = lambda window: None
        """Limit the rollouts in flight; set by the part that starts runs."""
        self.supervisor = RunBudget(
            batch_size=spec.batch_size,
            budget=spec.budget,
            halt=self.halt,
            resize=self.resize,
        )

    def ended(self, result: RunResult, text: str, why: str = "", *, decided: bool = True) -> None:
        """A run has ended, `text` is its JSON; from any thread.

        `decided` unless asserts of a test are to come.
        """
        self.keeper.keep(result, text, why)
        if decided:
            self.recorder.note(result, text)
        self.supervisor.ended(result)

    def run_here_ended(
        self, finished: RolloutRecord, *, decided: bool, redact: Callable[[str], str]
    ) -> None:
        """The same for a run of this process, whose conversation is kept as well."""
        text = finished.encoded()
        problem = self._logs.write(finished, redact=redact)
        self.ended(finished.result, text, finished.explanation, decided=decided)
        if problem is not None:
            self.halt(problem)

    def begin_keeping(self, suites: Iterable[str]) -> None:
        """Runs of these suites are about to start in this process; ConfigurationError."""
        self.keeper.begin(suites)
        for suite, there in self.keeper.places().items():
            self._logs.begin(suite, there)

    def paced(self, kind: str, not_before_s: float) -> None:
        """A call was refused for its rate, or was answered after one had been."""
        if kind == "ok":
            self.supervisor.answered()
        else:
            self.supervisor.pressed()

    def resize(self, window: int) -> None:
        """Limit the rollouts in flight."""
        self.resize_runs(window)

    def halt(self, reason: str) -> None:
        """Start no further run, for this reason."""
        self.recorder.halt(reason)
        self.halt_runs(reason)

    def close(self) -> None:
        """Nothing more comes; what was kept is on disk. Idempotent."""
        self.supervisor.close()
        self._logs.close()
        self.keeper.close()
