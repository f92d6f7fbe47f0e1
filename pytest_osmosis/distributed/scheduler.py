"""Which rollouts are in flight where: the only module that knows how xdist feeds its workers.

The controller's scheduler gives every worker a share of the batch size and as many items as it
needs to keep that share in flight; a channel of our own beside xdist's tells each worker its coming
items, and tells the controller what has finished ahead of pytest's reports. When a worker dies,
what it may have had in flight is run again one at a time, so that only the culprit is blamed.

The channel is an execnet channel handed over in `workerinput`. Messages are `(kind, value)` pairs
of builtins:

    controller -> worker   ("window", n) ("coming", [index, ...]) ("halt", reason)
                           ("cached", [(index, json, text), ...]) ("places", {suite: place})
                           ("hold", seconds) ("cancel", None)
    worker -> controller   ("suites", [json, ...]) ("selected", {suite: n}) ("alive", pid)
                           ("finished", index, json, text, decided) ("pace", kind, seconds)
                           ("identities", [json, ...]) ("problem", reason) ("gave up", reason)
                           ("loaded", {suite: {file: digest}})
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

CHANNEL = "osmosis_channel"
"""Key of the channel in xdist's `workerinput`."""
INPUT = "osmosis"
"""Key of the JSON text for the worker in `workerinput`."""
READY = 256
"""So many runs that need not be waited for may be with a worker, besides those in flight."""
REFUSED_DIST = ("loadgroup", "loadscope", "loadfile", "each")


def choose_processes(config: pytest.Config, batch_size: int) -> None:
    """Set xdist's number of workers: min(B, cores) for B > 1, unless the user said `-n`."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or not hasattr(option, "numprocesses"):
        return
    if option.dist in REFUSED_DIST:
        raise pytest.UsageError(
            f"--dist {option.dist} does not go with an evaluation: use --dist load, the default"
        )
    if getattr(option, "trace", False) and option.numprocesses:
        raise pytest.UsageError("--trace is incompatible with -n: leave one of them out")
    if option.numprocesses is None:
        alone = option.usepdb or getattr(option, "trace", False) or option.tx or option.collectonly
        if batch_size > 1 and not alone:
            option.numprocesses = min(batch_size, cores())
    elif isinstance(option.numprocesses, int):
        option.numprocesses = min(option.numprocesses, batch_size)


def limit_processes(config: pytest.Config, most: int) -> None:
    """Before any worker is started: no more than `most` of those that `-n` asked for."""
    option = config.option
    if isinstance(getattr(option, "numprocesses", None), int) and len(option.tx or ()) > most:
        option.numprocesses = most
        option.tx = option.tx[:most]


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


class CachedResult(NamedTuple):
    """A run that need not be run."""

    text: str
    """Its result as JSON."""
    why: str
    """What its item prints when it did not pass."""
    decided: bool
    """Whether nothing but the report is left of it."""


class _Worker:
    """What the controller knows of one worker."""

    def __init__(self, node: Any, channel: Any) -> None:
        self.node = node
        self.channel = channel
        self.share = 0
        self.pending: dict[int, None] = {}
        """Given and not yet reported, in order."""
        self.unfinished: set[int] = set()
        """Those of them that have not finished ahead of their report either."""
        self.finished: dict[int, CachedResult] = {}
        """Results that are known ahead of their report."""
        self.suspects: set[int] = set()
        """Given, and in flight when another worker died: they are run again one at a time."""

        self.excused = False
        """It has told whose fault its end is."""

    @property
    def alone(self) -> bool:
        """Whether it runs one at a time."""
        return bool(self.suspects)

    @property
    def is_nearly_empty(self) -> bool:
        """Whether it has nothing that it would run before it is given more."""
        return len(self.pending) < 2  # xdist runs an item once it has the next


class WindowScheduling:
    """xdist's `Scheduling`, feeding windows instead of fractions of all items."""

    def __init__(self, config: pytest.Config, *, batch_size: int, channels: dict[str, Any]) -> None:
        self.config = config
        self.collection: list[str] | None = None
        self._batch_size = batch_size
        self._channels = channels
        self._workers: dict[Any, _Worker] = {}
        self._collections: dict[Any, list[str]] = {}
        self._expected = max(1, len(getattr(config.option, "tx", None) or [0]))
        self._pool: deque[int] = deque()
        self._suspects: deque[int] = deque()
        self._rescued: dict[int, CachedResult] = {}
        """Results of workers that died before they reported them: another worker reports them."""
        self._ready = False
        self.halted: str | None = None
        """Why nothing more is started, once that is so."""
        self._lock = threading.RLock()
        self.on_collected: Callable[[], None] = lambda: None
        """Called once, when the items are known and before any is given out."""
        self.on_other_items: Callable[[str], None] = lambda reason: None
        """Told why a worker that came later is of no use."""
        self.is_judged: Callable[[str], bool] = lambda nodeid: False
        """Whether an item is no worker's to run: the controller tells of it at the end."""
        self.recall: Callable[[str], CachedResult | None] = lambda nodeid: None
        """What is known of an item's run without running it."""
        self.is_reported: Callable[[str], bool] = lambda nodeid: False
        """Whether an item's report has come."""

    # ---- what xdist asks

    @property
    def nodes(self) -> list[Any]:
        """The workers, in the order they came."""
        return list(self._workers)

    @property
    def collection_is_completed(self) -> bool:
        """Whether every worker that was started has told its items."""
        return self._ready or len(self._collections) >= self._expected

    @property
    def has_pending(self) -> bool:
        """Whether anything is left to be done."""
        return bool(self._pool or self._suspects or any(w.pending for w in self._workers.values()))

    @property
    def tests_finished(self) -> bool:
        """Whether every item has been reported."""
        return self.collection_is_completed and self._ready and not self.has_pending

    def add_node(self, node: Any) -> None:
        """A worker is up; its items are not known yet."""
        with self._lock:
            worker = self._workers[node] = _Worker(node, self._channels.get(node.gateway.id))
            if self.halted is not None:
                _tell(worker, "halt", self.halted)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """A worker's items; they must be those of the others, in the same order."""
        items = list(collection)
        if self.collection is not None and items != self.collection:
            node.shutdown()  # a replacement that sees other items can do nothing
            self.on_other_items(
                f"worker {node.gateway.id}, in the place of one that was lost, collected other "
                "items: have files changed? Nothing more is started; run the same command again"
            )
            return
        self._collections[node] = items

    def schedule(self) -> None:
        """All workers are known: give out the first items, or go on after a replacement came."""
        with self._lock:
            if not self._ready:
                first, *others = self._collections.values()
                if any(items != first for items in others):
                    raise pytest.UsageError(
                        "the workers did not collect the same items: has the data file changed?"
                    )
                self.collection = first
                self.on_collected()
                self._pool.extend(i for i, name in enumerate(first) if not self.is_judged(name))
                self._ready = True
            self._share_out()
            self._feed()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """An item has been reported."""
        with self._lock:
            worker = self._workers[node]
            worker.pending.pop(item_index, None)
            worker.unfinished.discard(item_index)
            worker.finished.pop(item_index, None)
            self._rescued.pop(item_index, None)
            if worker.alone:
                worker.suspects.discard(item_index)
                if not worker.alone and not self._suspects:
                    self._share_out()
            self._feed()

    def mark_test_pending(self, item: str) -> None:
        """An item has to be run again (asked for by other plugins)."""
        assert self.collection is not None
        with self._lock:
            self._pool.appendleft(self.collection.index(item))
            self._feed()

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Items that a worker gave back; this scheduler never asks for any."""

    def remove_node(self, node: Any) -> str | None:
        """A worker is gone: the item to blame, if it is known, and the rest is given to others.

        Raises:
            KeyError: when the worker is not known.
        """
        with self._lock:
            worker = self._workers.pop(node)
            self._collections.pop(node, None)
            collection = self.collection or []
            for index in [i for i in worker.pending if self.is_reported(collection[i])]:
                del worker.pending[index]  # it died between the report and the word of its end
            self._rescued.update(worker.finished)
            done = [index for index in worker.pending if index in worker.finished]
            left = [index for index in worker.pending if index not in worker.finished]
            in_flight = 1 if worker.alone else max(worker.share, 1)
            in_flight = 0 if worker.excused else in_flight
            suspects, others = left[:in_flight], left[in_flight:]
            culprit = None
            if len(suspects) == 1:
                culprit = suspects.pop()
            self._suspects.extend(suspects)
            self._pool.extendleft(reversed(done + others))
            self._share_out()
            self._feed()
        return None if culprit is None else collection[culprit]

    # ---- what the channel tells

    def note_finished(self, node: Any, index: int, run: CachedResult) -> None:
        """A run has finished ahead of its report: its worker can take another."""
        with self._lock:
            worker = self._workers.get(node)
            if worker is not None and index in worker.unfinished:
                worker.unfinished.discard(index)
                if run.decided:
                    worker.finished[index] = run
                self._feed()

    def excuse(self, node: Any) -> None:
        """A worker is about to end by itself, and has reported the run that is to blame."""
        with self._lock:
            if node in self._workers:
                self._workers[node].excused = True

    def resize(self, batch_size: int) -> None:
        """So many rollouts may be in flight over all workers; at least one each."""
        with self._lock:
            self._batch_size = batch_size
            self._share_out()
            self._feed()

    def halt(self, reason: str, *, keep_items: bool = False) -> None:
        """Start no further run anywhere; what is in flight is still reported.

        `keep_items`: workers go through the items that are left, and report them as not run.
        """
        with self._lock:
            self.halted = reason
            if not keep_items:
                self._pool.clear()
                self._suspects.clear()
            for worker in self._workers.values():
                _tell(worker, "halt", reason)
            self._feed()

    # ---- giving out

    def _share_out(self) -> None:
        """Divide the batch size over the workers; the shares sum to exactly that."""
        alone = [worker for worker in self._workers.values() if worker.alone]
        others = [worker for worker in self._workers.values() if not worker.alone]
        total = max(self._batch_size - len(alone), len(others))
        for place, worker in enumerate(others):
            share = total // len(others) + (place < total % len(others))
            self._resize(worker, share)

    def _resize(self, worker: _Worker, share: int) -> None:
        if worker.share != share:
            worker.share = share
            _tell(worker, "window", share)

    def _feed(self) -> None:
        """Give every worker what it lacks, a few at a time, so that the tail is level."""
        if not self._ready:
            return
        self._feed_suspects()
        workers = [w for w in self._takers() if not w.alone]
        missing = sum(max(w.share - len(w.unfinished), 0) for w in workers)
        spare = max(len(self._pool) - missing, 0)  # once all have what they may have in flight
        for worker in sorted(workers, key=lambda w: len(w.unfinished) - w.share):
            reserve = min(worker.share, spare // len(workers))
            lacking = worker.share + reserve - len(worker.unfinished)
            lacking = min(lacking, worker.share + reserve + READY - len(worker.pending))
            lacking = max(lacking, 2 - len(worker.pending))  # xdist runs one once it has the next
            if lacking > 0 and (lacking > reserve // 2 or lacking >= len(self._pool)):
                self._give(
                    worker, [self._pool.popleft() for _ in range(min(lacking, len(self._pool)))]
                )
        if not self._pool and not self._suspects:
            for worker in self._takers():
                worker.node.shutdown()

    def _takers(self) -> list[_Worker]:
        """The workers that have collected and have not been told that there is nothing more."""
        return [
            worker
            for node, worker in self._workers.items()
            if node in self._collections and not node.shutting_down
        ]

    def _feed_suspects(self) -> None:
        """One worker, nearly empty, re-runs the suspects with one in flight."""
        takers = self._takers()
        alone = next((worker for worker in takers if worker.alone), None)
        if self._suspects:
            alone = alone or next((w for w in takers if w.is_nearly_empty), None)
            if alone is None:
                return
            alone.suspects.update(self._suspects)
            self._resize(alone, 1)
            self._share_out()
            self._give(alone, list(self._suspects))
            self._suspects.clear()
        if alone is not None and self._pool and alone.is_nearly_empty:
            self._give(alone, [self._pool.popleft()])

    def _give(self, worker: _Worker, indices: list[int]) -> None:
        if not indices:
            return
        worker.pending.update(dict.fromkeys(indices))
        worker.unfinished.update(indices)
        known = self._known(worker, indices)
        if known:
            _tell(worker, "cached", [(i, run.text, run.why) for i, run in known.items()])
        _tell(worker, "coming", indices)
        worker.node.send_runtest_some(indices)

    def _known(self, worker: _Worker, indices: list[int]) -> dict[int, CachedResult]:
        """Those of a worker's items whose runs need not be run: they are in flight nowhere."""
        assert self.collection is not None
        found = {
            index: self._rescued.get(index) or self.recall(self.collection[index])
            for index in indices
        }
        known = {index: run for index, run in found.items() if run is not None}
        for index, run in known.items():
            worker.unfinished.discard(index)
            if run.decided:
                worker.finished[index] = run
        return known


def _tell(worker: _Worker, kind: str, value: Any) -> None:
    if worker.channel is not None:
        _send(worker.channel, kind, value)


def _send(channel: Any, kind: str, value: Any) -> None:
    try:
        channel.send((kind, value))
    except OSError:
        return  # closed, or its worker is dying: xdist tells of that itself


class ControllerLink:
    """The controller's ends of the channels, one a worker."""

    def __init__(self, receive: Callable[[Any, tuple[Any, ...]], None]) -> None:
        self.channels: dict[str, Any] = {}
        self._receive = receive

    def open(self, node: Any, text: str) -> None:
        """Hand a new worker its end of a channel, and `text`."""
        channel = node.gateway.newchannel()
        node.workerinput[CHANNEL] = channel
        node.workerinput[INPUT] = text
        self.channels[node.gateway.id] = channel
        channel.setcallback(lambda message: self._receive(node, message))

    def broadcast(self, kind: str, value: Any, *, but: Any = None) -> None:
        """Tell all workers, or all but one."""
        spared = None if but is None else but.gateway.id
        for worker, channel in self.channels.items():
            if worker != spared:
                _send(channel, kind, value)


class WorkerLink:
    """A worker's end of its channel; harmless where there is none."""

    def __init__(self, config: pytest.Config) -> None:
        self._channel = config.workerinput[CHANNEL]  # type: ignore[attr-defined]

    def send(self, *message: Any) -> None:
        """Tell the controller; a controller that is gone is no news."""
        try:
            self._channel.send(message)
        except OSError:
            return

    def listen(self, handle: dict[str, Callable[[Any], None]]) -> None:
        """Call `handle[kind](value)` for every message, in xdist's receiver thread.

        When the controller is gone, that is `cancel`.
        """

        def receive(message: tuple[str, Any]) -> None:
            kind, value = message
            handle[kind](value)

        self._channel.setcallback(receive, endmarker=("cancel", None))


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is an xdist worker."""
    return hasattr(config, "workerinput")
