"""The evaluation in the session of a shard: it prepares the suites, and runs their rollouts."""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from osmosis_ai.running.engine import EngineClosed

from ...items import capture
from ...rollouts.cached import ResultCache
from ...rollouts.pool import RolloutPool
from ...run_result import RolloutRecord, RunId
from ...session.evaluation import Evaluation
from ...session.seams import Feature
from ...session.signals import leave_to_controller
from ...spec import EvalSpec, SessionSpec
from ...storage.run_lines import run_lines
from .. import messages
from .shard_plugin import Link, ShardPlugin


class ShardEvaluation(Evaluation):
    """An evaluation whose items are elsewhere."""

    is_worker = True

    def __init__(
        self,
        config: pytest.Config,
        spec: SessionSpec,
        features: Sequence[Feature],
        plugin: ShardPlugin,
    ) -> None:
        super().__init__(config, _moved(spec, plugin), features, {})
        self._plugin = plugin
        plugin.serve = self.serve

    def start(self) -> None:
        """Read rows and import code; the driver has checked them."""
        leave_to_controller()
        self._find_keys()
        self._prepare()
        self._start_embedded()

    def serve(self) -> None:
        """Run what the driver orders."""
        suites = self.suites
        link = self._plugin.link
        runs = ShardRuns(link, suites)
        self._send_text = runs.for_feature
        end_routing = capture.route(self.config)
        rollouts = self._pool(runs, ResultCache(suites), window=0)
        try:
            runs.serve(rollouts, self._loaded())
            link.flush()
        finally:
            rollouts.close()
            end_routing()


def _moved(spec: SessionSpec, plugin: ShardPlugin) -> SessionSpec:
    """Return the spec with the paths of the copy in the place of the driver's."""
    before, now = f"{plugin.driver_root}/", f"{plugin.root}/"

    def moved(text: str) -> str:
        return now + text.removeprefix(before) if text.startswith(before) else text

    def all_moved(each: EvalSpec) -> EvalSpec:
        return replace(
            each,
            agent=moved(each.agent),
            eval_fns=tuple(map(moved, each.eval_fns)),
            grader=None if each.grader is None else moved(each.grader),
        )

    evals = zip(spec.evals, plugin.data, strict=True)
    return replace(
        spec,
        evals=tuple(replace(all_moved(each), data=data) for each, data in evals),
        defaults=None if spec.defaults is None else all_moved(spec.defaults),
    )


_LOOK_S = 0.1
"""How often a shard that starts nothing more looks whether all has ended."""


class ShardRuns:
    """The runs of one shard, from the driver's order to its end."""

    def __init__(self, link: Link, suites: Iterable[str]) -> None:
        self._link = link
        self._suites = list(suites)
        self._orders: queue.SimpleQueue[tuple[list[int], int] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[RolloutRecord | tuple[str, str] | None] = queue.SimpleQueue()
        self._gave_up: str | None = None
        """Why this process ends once what has ended is sent."""
        self._rollouts: RolloutPool | None = None

    def serve(self, rollouts: RolloutPool, loaded: Mapping[str, Mapping[str, str]]) -> None:
        """Run what the driver orders; return when all of it has ended, or is not wanted."""
        self._rollouts = rollouts
        self._link.listen(self._receive)
        self._link.send(messages.LOADED, loaded)
        order = self._orders.get()
        if order is None:
            return
        numbers, careful = order
        triples = zip(*[iter(numbers)] * 3, strict=True)
        runs = [RunId(self._suites[suite], row, run) for suite, row, run in triples]
        for run in runs[:careful]:  # what one of them has sent is there when the next one begins
            rollouts.coming([run])
            self._send_all(rollouts, 1)
            self._link.flush()
        rollouts.coming(runs[careful:])
        self._send_all(rollouts, len(runs) - careful)
        self._link.send(messages.DONE)

    def _send_all(self, rollouts: RolloutPool, left: int) -> None:
        """Send this many runs as they end; fewer where nothing more is started."""
        while left:
            # Asked before the queue is looked at: what ends in between is in it.
            is_over = rollouts.halted is not None and not rollouts.in_flight
            wait_s = 0.0 if is_over else _LOOK_S if rollouts.halted else None
            try:
                record = self._ended.get(timeout=wait_s)
            except queue.Empty:
                if is_over:
                    return
                continue
            if isinstance(record, tuple):
                self._link.send(messages.FEATURE, *record)
            elif record is not None:
                left -= 1
                while rollouts.warnings:
                    warning = rollouts.warnings.popleft()
                    self._link.send(messages.WARNING, asdict(warning))
                self._send(record)
                with contextlib.suppress(EngineClosed):  # it was given up, and ended all the same
                    rollouts.result(record.result.run_id)
            elif self._gave_up is not None:
                self._link.send(messages.GAVE_UP, self._gave_up)
                self._link.flush()
                os._exit(1)

    def _send(self, record: RolloutRecord) -> None:
        lines = run_lines(record)
        self._link.send(messages.FINISHED, lines.decode("ascii"), list(record.sections))

    # ---- the receiver of the process's runs, in the engine's thread

    def ended(self, run: RunId, record: RolloutRecord) -> None:
        """Have a run that has ended sent."""
        self._ended.put(record)

    def for_feature(self, name: str, text: str) -> None:
        """Have a feature's text sent, ahead of the run that it belongs to."""
        self._ended.put((name, text))

    def paced(self, kind: str, not_before_s: float, said: str, place: str) -> None:
        """Report that the endpoint limited the rate, or answered again."""
        self._link.send(messages.PACE, kind, not_before_s, said, place)

    def stuck(self, reason: str) -> None:
        """End the process, which cannot run anything more: another takes the rest."""
        self._gave_up = reason
        self._ended.put(None)

    # ---- what the driver says, in the link's thread

    def _receive(self, kind: str, values: Sequence[Any]) -> None:
        rollouts = self._rollouts
        assert rollouts is not None
        if kind == messages.BEGIN:
            rollouts.resize(values[1])
            self._orders.put((values[0], values[2]))
        elif kind == messages.WINDOW:
            rollouts.resize(values[0])
        elif kind == messages.HOLD:
            rollouts.hold(values[0])
        elif kind == messages.HALT:
            rollouts.halt(values[0])
            self._wake()
        elif kind == messages.CANCEL:
            rollouts.cancel()
            self._wake()

    def _wake(self) -> None:
        """Have a thread that waits look again: nothing more may come."""
        self._orders.put(None)
        self._ended.put(None)
