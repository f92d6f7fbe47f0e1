"""The evaluation in xdist's controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..run_result import RunId
from ..session.reporting_evaluation import ReportingEvaluation
from ..spec import SessionSpec
from .controller import Controller
from .processes import limit_processes
from .scheduler import WindowScheduling


class ControllerEvaluation(ReportingEvaluation):
    """An evaluation in xdist's controller: it collects and runs no item."""

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        super().__init__(config, spec)
        self._controller = Controller(
            config, self.sink, self.gates, self.suites, worker_timeout_s=spec.worker_timeout_s
        )

    def start(self) -> None:
        """Check everything, and give workers the digests of what was checked."""
        super().start()
        self._controller.compare_with(self._loaded())

    def _honour_limits(self) -> None:
        super()._honour_limits()
        limit_processes(self.config, self.spec.batch_size)

    def worker_starts(self, node: Any) -> None:
        """Give a worker its channel and what it must know."""
        self._controller.introduce(node, self.base_urls, self.spec.debug_dir)

    def make_scheduler(self) -> WindowScheduling:
        """Return the scheduler that keeps every worker's window full."""
        return self._controller.make_scheduler(self.spec.batch_size)

    def worker_crashed(self, report: pytest.TestReport, node: Any) -> None:
        """Put the result of a run that ended its worker into the report."""
        self._controller.blame(report, node)

    def worker_ended(self, node: Any) -> None:
        """Watch a worker no longer."""
        self._controller.worker_down(node)

    def collected(self, items: list[pytest.Item]) -> None:
        """Do nothing: workers collect."""

    def begin(self, items: list[pytest.Item]) -> None:
        """Do nothing: workers start rollouts."""

    def items(self, session: pytest.Session) -> Iterator[tuple[str, RunId]]:
        """Yield the node ids of the session's runs, and the runs."""
        return self._controller.items()

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
