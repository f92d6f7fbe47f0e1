"""An xdist worker's part: starts what the controller says is coming, and sends what has ended.

Knows the channel and this process's rollouts; gathers and decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ..items.protocol import WORKER_PACKAGES, plugins_of
from ..items.runner import ItemRunner, run_id_of, run_ids
from ..rollouts.cached import ResultCache
from ..rollouts.pool import RolloutPool
from ..run_result import RolloutRecord, RunId, RunResult
from ..session.evaluation import Evaluation
from ..session.seams import Feature
from ..session.signals import leave_to_controller
from ..spec import SessionSpec
from ..storage.excerpt import encode
from ..storage.run_log import RunFolder, RunLog
from . import messages
from .heartbeat import live_with_parent
from .processes import worker_input


class WorkerEvaluation(Evaluation):
    """An evaluation in one of xdist's workers."""

    is_worker = True

    def __init__(
        self, config: pytest.Config, spec: SessionSpec, features: Sequence[Feature]
    ) -> None:
        of_xdist = worker_input(config)
        self._channel = of_xdist[messages.CHANNEL]
        given = json.loads(of_xdist[messages.INPUT])
        debug_dir = None if given["debug_dir"] is None else Path(given["debug_dir"])
        self._log = RunLog(of_xdist["workerid"], root=config.rootpath, on_failure=self._cannot_keep)
        super().__init__(config, replace(spec, debug_dir=debug_dir), features, {})
        self.base_urls = given["base_urls"]
        self._take_places(given["places"])
        self._indices: dict[RunId, int] = {}
        self._unsent: list[tuple[int, str, tuple[int, int]]] = []
        self._sent: dict[RunId, RunResult] = {}
        """Results that the controller has, or gets next, and whose reports are to come."""
        self._sending = threading.Lock()

    # ---- the session's life

    def start(self) -> None:
        """Read rows and import code, which the controller has checked; send signs of life."""
        leave_to_controller()
        live_with_parent(lambda: self._send(messages.ALIVE, os.getpid()))
        try:
            self._find_keys()
            self._prepare()
        except pytest.UsageError as error:
            self._send(messages.REFUSED, str(error))
            raise

    def collected(self, items: list[pytest.Item]) -> None:
        """Send the controller what was collected, and what it cannot know of it itself."""
        self.gates.select(Counter(run.suite for run in run_ids(items)))
        numbers = {name: number for number, name in enumerate(self.suites)}
        runs = map(run_id_of, items)
        collected = {
            "loaded": self._loaded(),
            "suites": [suite.info.to_dict() for suite in self.suites.values()],
            "identities": [each.to_json() for each in self._identities(self._of_tests())],
            "runs": [run and (numbers[run.suite], run.row_index, run.run_index) for run in runs],
        }
        self._send(messages.COLLECTED, encode(collected))

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the rollouts that the controller says are coming."""
        if not any(run_ids(items)):
            return
        cache = ResultCache(self.suites, self._log)
        rollouts = self._pool(self, cache, window=0)
        runner = ItemRunner(
            self.config,
            rollouts,
            relays=plugins_of(self.config, WORKER_PACKAGES),
            sections=self.sections,
            on_begin=lambda: self._send(messages.BEGUN),
            on_report=self._log.report,
        )
        self._run_with(runner, items)
        self._indices = {run: at for at, item in enumerate(items) if (run := run_id_of(item))}
        self._listen(runner, rollouts, cache, items)

    def close(self) -> None:
        """Cancel what is in flight, and send nothing more."""
        super().close()
        self._log.close()

    # ---- what the controller says, in xdist's receiver thread

    def _listen(
        self,
        runner: ItemRunner,
        rollouts: RolloutPool,
        cache: ResultCache,
        items: Sequence[pytest.Item],
    ) -> None:
        def coming(indices: list[int]) -> None:
            runner.coming(items[index] for index in indices)

        def cancel(_: None) -> None:
            rollouts.cancel()

        def cached(runs: list[tuple[int, str]]) -> None:
            for index, text in runs:
                if run := run_id_of(items[index]):
                    cache.runs[run] = RunResult.from_json(text)

        handle: dict[str, Callable[[Any], None]] = {
            messages.WINDOW: rollouts.resize,
            messages.COMING: coming,
            messages.CACHED: cached,
            messages.PLACES: self._take_places,
            messages.HALT: rollouts.halt,
            messages.HOLD: rollouts.hold,
            messages.CANCEL: cancel,
        }

        def receive(message: tuple[str, Any]) -> None:
            kind, value = message
            handle[kind](value)

        # When the controller has exited, that is `CANCEL`.
        self._channel.setcallback(receive, endmarker=(messages.CANCEL, None))

    def _take_places(self, places: Mapping[str, Sequence[Any]]) -> None:
        for suite, place in places.items():
            self._log.begin(suite, RunFolder(*place))

    # ---- what becomes of runs; from any thread

    def _send(self, kind: str, *values: Any) -> None:
        messages.send(self._channel, kind, *values)

    def ended(self, run: RunId, record: RolloutRecord) -> None:
        """Send a run that has ended, with those of the same turn of the event loop."""
        place = self._log.keep(run, record)
        with self._sending:
            self._sent[run] = record.result
            self._unsent.append((self._indices[run], record.encoded, place))
            is_first = len(self._unsent) == 1
        if is_first:
            try:
                asyncio.get_running_loop().call_soon(self._send_ended)
            except RuntimeError:  # of a thread that watches the loop
                self._send_ended()

    def _send_ended(self) -> None:
        with self._sending:
            ended, self._unsent = self._unsent, []
            if ended:
                self._send(messages.FINISHED, ended)

    def _is_sent(self, result: RunResult) -> bool:
        self._send_ended()
        return self._sent.pop(result.run_id, None) is result

    def _record(self, run: RunId) -> RolloutRecord | None:
        return self._log.record(run)

    def _cannot_keep(self, reason: str) -> None:
        self._send(messages.PROBLEM, reason)

    def stuck(self, reason: str) -> None:
        """End the process, which cannot run anything more: another worker takes the rest.

        The main thread may never get its turn again, so nothing gentler is left.
        """
        self._send_ended()
        self._send(messages.GAVE_UP, reason)
        os._exit(1)

    def paced(self, kind: str, not_before_s: float, said: str, place: str) -> None:
        """Report that the endpoint limited the rate, or answered again."""
        self._send(messages.PACE, kind, not_before_s, said, place)
