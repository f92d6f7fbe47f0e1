"""An xdist worker's part: starts what the controller says is coming, and sends what has ended.

Knows the channel and this process's rollouts; gathers and decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ..items.protocol import plugins_of
from ..items.runner import ItemRunner, run_id_of, run_ids
from ..options.reader import lists_only
from ..rollouts.cached import ResultCache
from ..rollouts.pool import RolloutPool
from ..run_result import RolloutRecord, RunId, RunResult, SuiteInfo
from ..session.evaluation import Evaluation
from ..session.signals import leave_to_controller
from ..spec import SessionSpec
from ..storage.excerpt import encode
from ..storage.fingerprint import EvalFingerprint
from ..storage.run_log import RunFolder, RunLog
from . import messages
from .channel import WorkerLink
from .heartbeat import Heartbeat, end_with_parent
from .processes import WORKER_PACKAGES


class Worker:
    """One a session, in each worker's process."""

    def __init__(self, config: pytest.Config) -> None:
        self._link = WorkerLink(config)
        given = json.loads(self._link.text)
        self.base_urls: Mapping[str, str] = given["base_urls"]
        """Where the embedded endpoint listens, by persona."""
        self.debug_dir = None if given["debug_dir"] is None else Path(given["debug_dir"])
        """Where the events of this session are logged."""
        self.log = RunLog(self._link.worker_id, root=config.rootpath, on_failure=self._cannot_keep)
        """The runs of this process."""
        self._take_places(given["places"])
        self._indices: dict[RunId, int] = {}
        self._heartbeat: Heartbeat | None = None
        self._unsent: list[tuple[int, str, tuple[int, int]]] = []
        self._sent: dict[RunId, RunResult] = {}
        """Results that the controller has, or gets next, and whose reports are to come."""
        self._sending = threading.Lock()

    def start(self) -> None:
        """Send signs of life, and end with the controller."""
        end_with_parent()
        self._heartbeat = Heartbeat(self._beat)

    def _beat(self) -> None:
        self._link.send(messages.ALIVE, os.getpid())

    def introduce(
        self,
        items: Iterable[pytest.Item],
        infos: Sequence[SuiteInfo],
        identities: Iterable[EvalFingerprint],
        loaded: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Send the controller what was collected, and what it cannot know of it itself.

        `loaded`: digests of each suite's files, by name.
        """
        numbers = {info.name: number for number, info in enumerate(infos)}
        runs = map(run_id_of, items)
        collected = {
            "loaded": loaded,
            "suites": [info.to_dict() for info in infos],
            "identities": [identity.to_json() for identity in identities],
            "runs": [run and (numbers[run.suite], run.row_index, run.run_index) for run in runs],
        }
        self._link.send(messages.COLLECTED, encode(collected))

    def serve(
        self,
        runner: ItemRunner,
        rollouts: RolloutPool,
        cache: ResultCache,
        items: Sequence[pytest.Item],
        key_of: Callable[[pytest.Item], RunId | None],
    ) -> None:
        """Start what the controller says is coming."""
        self._indices = {
            key: index for index, item in enumerate(items) if (key := key_of(item)) is not None
        }

        def coming(indices: list[int]) -> None:
            runner.coming(items[index] for index in indices)

        def cancel(_: None) -> None:
            rollouts.cancel()

        def cached(runs: list[tuple[int, str]]) -> None:
            for index, text in runs:
                key = key_of(items[index])
                if key is not None:
                    cache.runs[key] = RunResult.from_json(text)

        self._link.listen(
            {
                messages.WINDOW: rollouts.resize,
                messages.COMING: coming,
                messages.CACHED: cached,
                messages.PLACES: self._take_places,
                messages.HALT: rollouts.halt,
                messages.HOLD: rollouts.hold,
                messages.CANCEL: cancel,
            }
        )

    def begin(self) -> None:
        """Report that the first run starts here."""
        self._link.send(messages.BEGUN)

    def _take_places(self, places: Mapping[str, Sequence[Any]]) -> None:
        for suite, place in places.items():
            self.log.begin(suite, RunFolder(*place))

    def ended(self, key: RunId, finished: RolloutRecord) -> None:
        """Send a run that has ended, with those of the same turn of the event loop."""
        place = self.log.keep(key, finished)
        with self._sending:
            self._sent[key] = finished.result
            self._unsent.append((self._indices[key], finished.encoded, place))
            is_first = len(self._unsent) == 1
        if is_first:
            try:
                asyncio.get_running_loop().call_soon(self._send_ended)
            except RuntimeError:  # of a thread that watches the loop
                self._send_ended()

    def is_sent(self, result: RunResult) -> bool:
        """Return whether the controller has, or gets ahead of what is sent next, this result."""
        self._send_ended()
        return self._sent.pop(result.run_id, None) is result

    def _send_ended(self) -> None:
        with self._sending:
            ended, self._unsent = self._unsent, []
            if ended:
                self._link.send(messages.FINISHED, ended)

    def _cannot_keep(self, reason: str) -> None:
        self._link.send(messages.PROBLEM, reason)

    def stuck(self, reason: str) -> None:
        """End the process, which cannot run anything more: another worker takes the rest.

        The main thread may never get its turn again, so nothing gentler is left.
        """
        self._send_ended()
        self._link.send(messages.GAVE_UP, reason)
        os._exit(1)

    def paced(self, kind: str, not_before_s: float) -> None:
        """Report that the endpoint limited the rate, or answered again."""
        self._link.send(messages.PACE, kind, not_before_s)

    def close(self) -> None:
        """Send nothing more."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self.log.close()


class WorkerEvaluation(Evaluation):
    """An evaluation in one of xdist's workers."""

    is_worker = True

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        super().__init__(config, spec, {})
        self._worker = Worker(config)
        self.spec = replace(self.spec, debug_dir=self._worker.debug_dir)
        self.base_urls = self._worker.base_urls

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
        self.gates.select(Counter(run.suite for run in run_ids(items)))
        infos = [suite.info for suite in self.suites.values()]
        self._worker.introduce(items, infos, self._identities(self._marked()), self._loaded())

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the rollouts that the controller says are coming."""
        if lists_only(self.config) or not any(run_ids(items)):
            return
        cache = ResultCache(self.suites, self._worker.log)
        rollouts = self._pool(self._worker, cache, window=0)
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
