"""The evaluation in one of xdist's workers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ..items.protocol import plugins_of
from ..items.runner import ItemRunner, own_rollouts, run_id_of, run_ids, with_other_parameters
from ..options.reader import lists_only
from ..rollouts.cached import ResultCache
from ..run_result import RolloutRecord, RunId, RunResult
from ..session.evaluation import Evaluation
from ..session.signals import leave_to_controller
from ..spec import SessionSpec
from .compat import WORKER_PACKAGES
from .worker import Worker


class WorkerEvaluation(Evaluation):
    """An evaluation in one of xdist's workers."""

    is_worker = True

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        super().__init__(config, spec, {})
        self._worker = Worker(config)
        self.spec = replace(self.spec, debug_dir=self._worker.debug_dir)

    def start(self) -> None:
        """Read rows and import code; the controller has checked them."""
        leave_to_controller()
        self._worker.start()
        self._prepare()

    def plan(self) -> list[str]:
        """Return nothing: the controller prints it."""
        return []

    def collected(self, items: list[pytest.Item]) -> None:
        """Send the controller what was collected."""
        infos = [suite.info for suite in self.suites.values()]
        counts = Counter(run.suite for run in run_ids(items))
        identities, named = self._identities(self._marked()), with_other_parameters(items)
        self._worker.introduce(infos, counts, identities, self._loaded(), named)

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the rollouts that the controller says are coming."""
        if lists_only(self.config) or not any(run_ids(items)):
            return
        cache = ResultCache(self.suites, self._worker.log)
        rollouts = own_rollouts(
            self.spec,
            self.suites,
            self._worker,
            window=0,
            base_urls=self._worker.base_urls,
            cache=cache,
        )
        runner = ItemRunner(
            self.config,
            rollouts,
            indifferent=WORKER_PACKAGES,
            relays=plugins_of(self.config, WORKER_PACKAGES),
            sections=self.sections,
            on_begin=self._worker.begin,
            on_report=self._worker.log.report,
        )
        self._run_with(runner, items)
        self._worker.serve(runner, rollouts, cache, items, run_id_of)

    def _record(self, run: RunId) -> RolloutRecord | None:
        return self._worker.log.record(run)

    def _is_sent(self, result: RunResult) -> bool:
        return self._worker.is_sent(result)

    def close(self) -> None:
        """Cancel what is in flight, and send nothing more."""
        super().close()
        self._worker.close()
