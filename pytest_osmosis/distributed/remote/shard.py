"""The runs of one shard: started as the driver orders, and sent to it when they have ended.

The driver alone keeps, decides and reports.
"""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from osmosis_ai.running.engine import EngineClosed

from ...rollouts.pool import RolloutPool
from ...run_result import RolloutRecord, RunId
from ...storage.run_lines import run_lines
from .. import messages
from .shard_plugin import Link

_LOOK_S = 0.1
"""How often a shard that starts nothing more looks whether all has ended."""


class ShardRuns:
    """The runs of one shard, from the driver's order to its end."""

    def __init__(self, link: Link, suites: Iterable[str]) -> None:
        self._link = link
        self._suites = list(suites)
        self._orders: queue.SimpleQueue[tuple[list[int], int] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[RolloutRecord | None] = queue.SimpleQueue()
        self._gave_up: str | None = None
        """Why this process ends once what has ended is sent."""
        self._rollouts: RolloutPool | None = None

    def serve(self, rollouts: RolloutPool, loaded: Mapping[str, Mapping[str, str]]) -> None:
        """Run what the driver orders; return when all of it has ended, or is not wanted."""
        self._rollouts = rollouts
        self._link.listen(self._heard)
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
            if record is not None:
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

    def paced(self, kind: str, not_before_s: float) -> None:
        """Report that the endpoint limited the rate, or answered again."""
        self._link.send(messages.PACE, kind, not_before_s)

    def stuck(self, reason: str) -> None:
        """End the process, which cannot run anything more: another takes the rest."""
        self._gave_up = reason
        self._ended.put(None)

    # ---- what the driver says, in the link's thread

    def _heard(self, kind: str, values: Sequence[Any]) -> None:
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
