"""Which rollouts are in flight where.

The scheduler gives every worker a share of the batch size, and as many items as it needs to keep
that share in flight; the channel beside xdist's tells each worker its coming items, and the
scheduler what has finished ahead of pytest's reports. When a worker dies, what it may have had in
flight is run again one at a time, so that only the culprit is blamed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from .messages import CACHED, COMING, HALT, WINDOW, send
from .shares import shares

PREFETCH = 256
"""At most so many runs that need not be waited for are with a worker, besides those in flight."""


@dataclass(frozen=True, slots=True)
class CachedResult:
    """A run that need not be run."""

    text: str
    """Its result as JSON."""
    decided: bool
    """Whether the result is final: no asserts of a test are still to come."""


class Listener(Protocol):
    """Who knows the runs of the items."""

    def begin_items(self, nodeids: Sequence[str]) -> None:
        """Open what is kept of their suites, before any item is given out."""

    def followers(self, nodeids: Sequence[str]) -> Mapping[int, Sequence[int]]:
        """Return, by the place of an item, those of the others that have the same rollout."""

    def cached(self, nodeid: str) -> CachedResult | None:
        """Return the run of an item that an earlier session kept."""

    def is_reported(self, nodeid: str) -> bool:
        """Return whether the item's report has come."""

    def other_items(self, worker: str) -> None:
        """Note that a worker has collected other items than the first."""


class _Worker:
    """The controller's record of one worker."""

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
        self.unsent: set[int] = set()
        """Given when it had died already, before its end was noticed."""
        self.suspects: set[int] = set()
        """Given, and in flight when another worker died: they are run again one at a time."""

        self.excused = False
        """It has reported the run that makes it end."""

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

    def __init__(
        self,
        config: pytest.Config,
        listener: Listener,
        *,
        batch_size: int,
        channels: Mapping[str, Any],
    ) -> None:
        """`channels` are those of the workers, by the id of their gateway."""
        self.config = config
        self.collection: list[str] | None = None
        self._listener = listener
        self._batch_size = batch_size
        self._channels = channels
        self._workers: dict[Any, _Worker] = {}
        self._collections: dict[Any, list[str]] = {}
        self._expected = max(1, len(getattr(config.option, "tx", None) or [0]))
        self._pool: deque[int] = deque()
        self._followers: dict[int, Sequence[int]] = {}
        """Items that are given out with another, to the worker that has its rollout."""
        self._with_leader: set[int] = set()
        """All of these."""
        self._suspects: deque[int] = deque()
        self._rescued: dict[int, CachedResult] = {}
        """Results of workers that died before they reported them: another worker reports them."""
        self._ready = False
        self.halted: str | None = None
        """Why nothing more is started, once that is so."""
        self._lock = threading.RLock()

    # ---- what xdist asks

    @property
    def nodes(self) -> list[Any]:
        """The workers, in the order they came."""
        return list(self._workers)

    @property
    def collection_is_completed(self) -> bool:
        """Whether every worker that was started has sent its items."""
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
            worker = self._workers[node] = _Worker(node, self._channels[node.gateway.id])
            if self.halted is not None:
                send(worker.channel, HALT, self.halted)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """A worker's items; they must be those of the others, in the same order."""
        items = list(collection)
        if self.collection is not None and items != self.collection:
            node.shutdown()  # a replacement that sees other items can do nothing
            self._listener.other_items(node.gateway.id)
            return
        self._collections[node] = items

    def schedule(self) -> None:
        """All workers are known: give out the first items, or continue after a replacement came."""
        with self._lock:
            if not self._ready:
                first, *others = self._collections.values()
                if any(items != first for items in others):
                    raise pytest.UsageError(
                        "the workers did not collect the same items: has the data file changed?"
                    )
                self.collection = first
                self._listener.begin_items(first)
                self._followers = dict(self._listener.followers(first))
                self._with_leader = {i for each in self._followers.values() for i in each}
                self._pool.extend(
                    index for index in range(len(first)) if index not in self._with_leader
                )
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
        """Do nothing: this scheduler never asks a worker to give items back."""

    def remove_node(self, node: Any) -> str | None:
        """A worker is gone: the item to blame, if it is known, and the rest is given to others.

        Raises:
            KeyError: when the worker is not known.
        """
        with self._lock:
            worker = self._workers.pop(node)
            self._collections.pop(node, None)
            collection = self.collection or []
            for index in [i for i in worker.pending if self._listener.is_reported(collection[i])]:
                del worker.pending[index]  # it died between the report and the word of its end
            self._rescued.update(worker.finished)
            done = [index for index in worker.pending if index in worker.finished]
            left = [index for index in worker.pending if index not in worker.finished]
            unsent = [index for index in left if index in worker.unsent]
            left = [index for index in left if index not in worker.unsent]
            in_flight = 1 if worker.alone else max(worker.share, 1)
            if worker.excused or getattr(node, "workeroutput", None) is not None:
                in_flight = 0  # it ended in order: what is left came after its shutdown
            suspects, others = left[:in_flight], left[in_flight:]
            culprit = None
            if len(suspects) == 1:
                culprit = suspects.pop()
            self._suspects.extend(suspects + [i for i in unsent if i in worker.suspects])
            others += [index for index in unsent if index not in worker.suspects]
            self._pool.extendleft(reversed(done + others))
            self._share_out()
            self._feed()
        return None if culprit is None else collection[culprit]

    # ---- what the channel tells

    def note_finished(self, node: Any, runs: Mapping[int, CachedResult]) -> None:
        """Runs have finished ahead of their reports: their worker can take others."""
        with self._lock:
            worker = self._workers.get(node)
            if worker is None:
                return
            for index, run in runs.items():
                if index in worker.unfinished:
                    worker.unfinished.discard(index)
                    if run.decided:
                        worker.finished[index] = run
            self._feed()

    def excuse(self, node: Any) -> None:
        """Blame no run for the end of a worker that has reported the run that is to blame."""
        with self._lock:
            if node in self._workers:
                self._workers[node].excused = True

    def resize(self, batch_size: int) -> None:
        """Set how many rollouts may be in flight over all workers; at least one each."""
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
                send(worker.channel, HALT, reason)
            self._feed()

    def shut_down(self) -> None:
        """Have every worker end, and give none another item."""
        with self._lock:
            for node in self._workers:
                node.shutdown()

    # ---- giving out

    def _share_out(self) -> None:
        """Divide the batch size over the workers; the shares sum to exactly that."""
        alone = [worker for worker in self._workers.values() if worker.alone]
        others = [worker for worker in self._workers.values() if not worker.alone]
        total = max(self._batch_size - len(alone), len(others))
        for worker, share in zip(others, shares(total, len(others)), strict=True):
            self._resize(worker, share)

    def _resize(self, worker: _Worker, share: int) -> None:
        if worker.share != share:
            worker.share = share
            send(worker.channel, WINDOW, share)

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
            lacking = min(lacking, worker.share + reserve + PREFETCH - len(worker.pending))
            lacking = max(lacking, 2 - len(worker.pending))  # xdist runs one once it has the next
            if lacking > 0 and (lacking > reserve // 2 or lacking >= len(self._pool)):
                self._give(
                    worker, [self._pool.popleft() for _ in range(min(lacking, len(self._pool)))]
                )
        if not self._pool and not self._suspects:
            for worker in self._takers():
                worker.node.shutdown()

    def _takers(self) -> list[_Worker]:
        """The workers that have collected and have not been shut down."""
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
        indices = [at for index in indices for at in (index, *self._followers.pop(index, ()))]
        worker.pending.update(dict.fromkeys(indices))
        worker.unfinished.update(index for index in indices if index not in self._with_leader)
        known = self._known(worker, indices)
        if known:
            send(worker.channel, CACHED, [(i, run.text) for i, run in known.items()])
        send(worker.channel, COMING, indices)
        try:
            worker.node.send_runtest_some(indices)
        except OSError:  # xdist calls `remove_node` when it notices
            worker.unsent.update(indices)

    def _known(self, worker: _Worker, indices: list[int]) -> dict[int, CachedResult]:
        """Those of a worker's items whose runs need not be run: they are in flight nowhere."""
        assert self.collection is not None
        found = {
            index: self._rescued.get(index) or self._listener.cached(self.collection[index])
            for index in indices
        }
        known = {index: run for index, run in found.items() if run is not None}
        for index, run in known.items():
            worker.unfinished.discard(index)
            if run.decided:
                worker.finished[index] = run
        return known
