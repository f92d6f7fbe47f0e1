"""The evaluation in xdist's controller."""

from __future__ import annotations

import pytest

from ..run_result import RunId, RunResult
from ..session.reporting_evaluation import ReportingEvaluation
from ..spec import SessionSpec
from .controller import Controller
from .processes import limit_processes


class ControllerEvaluation(ReportingEvaluation):
    """An evaluation in xdist's controller: it collects and runs no item."""

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        super().__init__(config, spec)
        self._controller = Controller(config, spec, self.sink, self.gates, self.suites)

    def start(self) -> None:
        """Check everything, and note what workers must know of it."""
        super().start()
        self._controller.begin(self.spec, self._loaded(), self.base_urls)

    def _honour_limits(self) -> None:
        super()._honour_limits()
        limit_processes(self.config, self.spec.batch_size)

    def collected(self, items: list[pytest.Item]) -> None:
        """Do nothing: workers collect."""

    def begin(self, items: list[pytest.Item]) -> None:
        """Do nothing: workers start rollouts."""

    def _take_sent(self, run: RunId) -> RunResult:
        return self._controller.take_sent(run)

    def halt_runs(self, reason: str) -> None:
        """Start no further run in any worker."""
        self._controller.halt(reason)

    def resize_runs(self, window: int) -> None:
        """Set how many rollouts may be in flight over all workers."""
        self._controller.resize(window)

    def cancel(self) -> None:
        """Have the workers cancel what they have in flight, and end."""
        self._controller.cancel()

    def close(self) -> None:
        """Stop the watchdog, then close the rest."""
        self._controller.close()
        super().close()
