"""The rollouts of a session whose shards are processes on other machines.

Stands where `RolloutPool` stands in a session of one process: items wait here for their results.
What shards send arrives in one thread, is kept and counted at once, and waits for its item.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from osmosis_ai.running.code_warning import CodeWarning
from osmosis_ai.running.engine import SIGNAL_CHECK_S, EngineClosed

from ...escaping import escape_control_chars
from ...rollouts.cached import ResultCache
from ...rollouts.suite import Suite
from ...run_result import RolloutRecord, RunId
from ...session.reporting_evaluation import ReportingEvaluation
from ...storage.run_lines import record_of, run_lines
from ...storage.source_digest import differing
from .. import messages
from .fleet import Fleet
from .plan import Shard, ShardPlan

if TYPE_CHECKING:
    from ...rollouts.around import AroundRuns
    from ...session.seams import Feature

Loaded = Mapping[str, Mapping[str, str]]
LAST_RESULTS_S = 3.0
"""How long what shards have finished may take to arrive, once they were cancelled."""


class ShardRollouts:
    """Starts shards, and returns the records of their runs."""

    def __init__(
        self,
        suites: Mapping[str, Suite],
        fleet: Fleet,
        plan: ShardPlan,
        *,
        sink: ReportingEvaluation,
        cache: ResultCache,
        loaded: Loaded,
        keeps_messages: bool,
        features: Sequence[Feature] = (),
    ) -> None:
        """Runs in `cache` are not run. `loaded`: digests of the session's files.

        `keeps_messages`: conversations are needed when items are reported.
        """
        self._suites = suites
        self._numbers = {name: number for number, name in enumerate(suites)}
        self._fleet = fleet
        self._plan = plan
        self._sink = sink
        self._cache = cache
        self._loaded = loaded
        self._keeps_messages = keeps_messages
        self._features = {feature.name: feature for feature in features}
        self.around: Sequence[AroundRuns] = ()
        self._done: dict[RunId, RolloutRecord] = {}
        self.warnings: deque[CodeWarning] = deque()
        """What was found to block an event loop, until it is taken."""
        self._arrived = threading.Condition()
        self._waited_for: RunId | None = None
        self._is_cancelled = False
        self._last_by = 0.0
        self._excused: set[int] = set()
        """Shards whose process ends without any of its other runs being at fault."""
        self.last_words: str | None = None
        self.halted: str | None = None
        """Why nothing more is started, once that is so."""
        self._handlers: Mapping[str, Callable[..., None]] = {
            messages.LOADED: self._introduced,
            messages.FINISHED: self._finished,
            messages.FEATURE: self._for_feature,
            messages.PACE: self._paced,
            messages.WARNING: self._warned,
            messages.GAVE_UP: self._gave_up,
            messages.PROBLEM: self._problem,
            messages.DONE: self._ended,
        }

    # ---- what items and the session ask

    def coming(self, keys: Iterable[RunId]) -> None:
        """Divide these runs among the shards, and start those that have any."""
        for key in keys:
            if key not in self._cache.runs:
                self._plan.assign(key)
        for shard in self._plan.shards:
            if not shard.todo:
                self._plan.end(shard.number)
        for shard in self._plan.live():
            self._fleet.start(shard.number)

    def result(self, key: RunId) -> RolloutRecord:
        """Wait for a run and return its record; `EngineClosed` when it will not be run."""
        if key in self._cache.runs:
            return self._cache.record(key)
        with self._arrived:
            self._waited_for = key
            while key not in self._done:
                if not self._plan.expects(key):
                    raise EngineClosed
                self._arrived.wait(SIGNAL_CHECK_S)
            return self._done.pop(key)

    def resize(self, window: int) -> None:
        """Set how many rollouts may be in flight over all shards."""
        with self._arrived:
            self._plan.resize(window)
            self._send_windows()

    def halt(self, reason: str) -> None:
        """Start no further run in any shard."""
        if self.halted is None:
            self.halted = reason
            self._leave_waiting_shards()
            self._broadcast(messages.HALT, reason)

    def cancel(self) -> None:
        """Start nothing more and cancel what is in flight; from any thread."""
        if not self._is_cancelled:
            self._is_cancelled = True
            self._last_by = time.monotonic() + LAST_RESULTS_S
            self.halted = self.halted or "the session is ending"
            self._leave_waiting_shards()
            self._broadcast(messages.CANCEL)

    def take_last(self) -> None:
        """After `cancel`, return once all that has ended is here, or after `LAST_RESULTS_S`."""
        with self._arrived:
            left_s = max(0.0, self._last_by - time.monotonic())
            self._arrived.wait_for(lambda: not any(self._plan.live()), left_s)

    def close(self) -> None:
        """Cancel what is in flight, take what has ended, and end all shards."""
        self.cancel()
        self.take_last()
        self._fleet.close()

    def _leave_waiting_shards(self) -> None:
        """End the shards whose processes have not begun: they have nothing in flight."""
        with self._arrived:
            for shard in list(self._plan.live()):
                if not shard.has_begun:
                    self._plan.end(shard.number)
            self._arrived.notify_all()

    def _broadcast(self, kind: str, *values: Any, but: int | None = None) -> None:
        for shard in list(self._plan.live()):
            if shard.number != but:
                self._fleet.send(shard.number, kind, *values)

    def _send_windows(self) -> None:
        for number, window in self._plan.windows().items():
            if self._plan.shards[number].has_begun:
                self._fleet.send(number, messages.WINDOW, window)

    # ---- what the fleet reports, in its thread

    def receive(self, shard: int, kind: str, values: Sequence[Any]) -> None:
        """Take a message of a shard."""
        self._handlers[kind](self._plan.shards[shard], *values)

    def gone(self, shard: int, reason: str, *, suspect: bool) -> None:
        """Start the process of a shard again, where runs of it have no result yet."""
        there = self._plan.shards[shard]
        if there.has_ended:
            return
        with self._arrived:
            loss = self._plan.lose(shard, suspect=suspect and shard not in self._excused)
        self._excused.discard(shard)
        if loss.culprit is not None:
            self._blame(there, loss.culprit, reason)
        if self.halted is not None:
            self._ended(there)
        elif loss.again:
            self._fleet.start(shard)
        else:
            self._ended(there)
            if there.todo:
                self._sink.halt(f"shard {shard + 1} was lost again and again: {reason}")

    def lost(self, reason: str) -> None:
        """Halt where runs are still to come: none can be started any more."""
        if any(self._plan.live()):
            self._sink.halt(reason)

    def _introduced(self, shard: Shard, loaded: Loaded) -> None:
        """Give a shard its runs, where it has loaded what the session began with."""
        for suite, files in self._loaded.items():
            if changed := differing(files, loaded.get(suite, {})):
                name = escape_control_chars(changed[0])
                self._problem(shard, f"it has loaded another version of {name}")
                break
        with self._arrived:
            if self.halted is not None:
                self._fleet.send(shard.number, messages.CANCEL)
                return
            runs = [
                number
                for run in shard.todo
                for number in (self._numbers[run.suite], run.row_index, run.run_index)
            ]
            shard.has_begun = True
            window = self._plan.windows().get(shard.number, 0)
            self._fleet.send(shard.number, messages.BEGIN, runs, window, shard.careful)

    def _finished(self, shard: Shard, text: str, sections: Sequence[tuple[str, str]]) -> None:
        lines = text.encode("ascii")
        record = record_of(lines)
        if record is None or record.result.run_id not in shard.todo:
            return
        printed = [(title, said) for title, said in sections]
        self._keep(shard, replace(record, sections=printed), lines)

    def _keep(self, shard: Shard, record: RolloutRecord, lines: bytes) -> None:
        """Keep a run before anything else is done with it."""
        run = record.result.run_id
        self._sink.ended(run, record, lines)
        if not self._keeps_messages:
            record = replace(record, messages=[])
        with self._arrived:
            self._plan.finish(shard.number, run)
            self._done[run] = record
            if self._waited_for == run:
                self._arrived.notify_all()

    def _blame(self, shard: Shard, run: RunId, reason: str) -> None:
        suite = self._suites[run.suite]
        error = f"{reason} during this run"
        lost = suite.lost(run, error=error, error_type="worker_lost")
        record = RolloutRecord(lost, f"worker lost: {error}")
        self._keep(shard, record, run_lines(record))

    def _for_feature(self, shard: Shard, name: str, text: str) -> None:
        self._features[name].received(text)

    def _paced(self, shard: Shard, kind: str, seconds: float, said: str, place: str) -> None:
        self._sink.paced(kind, seconds, said, place)
        if seconds > 0:
            self._broadcast(messages.HOLD, seconds, but=shard.number)

    def _warned(self, shard: Shard, fields: Mapping[str, Any]) -> None:
        self.warnings.append(CodeWarning(**fields))

    def _gave_up(self, shard: Shard, reason: str) -> None:
        """Note that the run at fault has its result: no other is suspected."""
        self._excused.add(shard.number)

    def _problem(self, shard: Shard, reason: str) -> None:
        self._sink.halt(f"shard {shard.number + 1}: {reason}")

    def _ended(self, shard: Shard) -> None:
        """Divide the window among the others: nothing of this shard is in flight any more."""
        with self._arrived:
            self._plan.end(shard.number)
            self._send_windows()
            self._arrived.notify_all()
