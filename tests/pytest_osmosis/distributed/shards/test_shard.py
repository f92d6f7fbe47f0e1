"""The runs of a shard: what has ended is sent, however the shard ends."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from osmosis_ai.running.code_warning import CodeWarning
from osmosis_ai.running.engine import EngineClosed
from pytest_osmosis.distributed import messages
from pytest_osmosis.distributed.shards.shard_evaluation import ShardRuns
from pytest_osmosis.run_result import RolloutRecord, RunId, RunResult
from pytest_osmosis.storage.run_lines import record_of

PATIENCE_S = 60.0


class FakeLink:
    """A driver that orders ten runs, and keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.heard: Callable[[str, Sequence[Any]], None] | None = None
        self.flushed = 0

    def send(self, kind: str, *values: Any) -> None:
        self.sent.append((kind, values))

    def listen(self, heard: Callable[[str, Sequence[Any]], None]) -> None:
        self.heard = heard
        runs = [number for row in range(10) for number in (0, row, 0)]
        heard(messages.BEGIN, [runs, 2, 0])

    def flush(self) -> None:
        self.flushed = len(self.sent)

    @property
    def rows(self) -> list[int]:
        """The rows whose results were sent."""
        finished = [values for kind, values in self.sent if kind == messages.FINISHED]
        records = [record_of(values[0].encode()) for values in finished]
        return [record.result.row_index for record in records if record is not None]


class FakePool:
    """Rollouts that end when a test says so; their engine never hands a result over."""

    def __init__(self) -> None:
        self.in_flight = 2
        self.halted: str | None = None
        self.offered = threading.Event()
        self.cancelled: Callable[[], None] = lambda: None
        self.asked: deque[RunId] = deque()
        self.warnings: deque[CodeWarning] = deque()

    def resize(self, window: int) -> None: ...

    def coming(self, runs: Sequence[RunId]) -> None:
        self.offered.set()

    def result(self, run: RunId) -> RolloutRecord:
        raise EngineClosed

    def cancel(self) -> None:
        self.halted = "the session is ending"
        self.cancelled()


class Shard:
    """A shard that serves in a thread."""

    def __init__(self) -> None:
        self.link, self.pool = FakeLink(), FakePool()
        self.runs = ShardRuns(self.link, ["data"])
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        assert self.pool.offered.wait(PATIENCE_S)

    def _serve(self) -> None:
        serve: Any = self.runs.serve
        with contextlib.suppress(SystemExit):
            serve(self.pool, {})

    def end(self, row: int) -> None:
        record = RolloutRecord(RunResult("data", row, 0, success=True, passed=True))
        self.runs.ended(record.result.run_id, record)

    def cancel(self) -> None:
        assert self.link.heard is not None
        self.link.heard(messages.CANCEL, [])


def test_a_cancelled_shard_sends_all_that_has_ended_and_says_that_it_is_done():
    shard = Shard()
    shard.end(0)

    def the_last_one_ends() -> None:
        shard.end(1)
        shard.pool.in_flight = 0

    shard.pool.cancelled = the_last_one_ends
    shard.cancel()
    shard.thread.join(PATIENCE_S)
    assert shard.link.rows == [0, 1]
    assert shard.link.sent[-1] == (messages.DONE, ())


def test_texts_of_a_feature_are_sent_ahead_of_the_run_that_they_belong_to():
    shard = Shard()
    for row in range(10):
        shard.runs.for_feature("cassettes", f'{{"row": {row}}} ü\n')
        shard.end(row)
    shard.thread.join(PATIENCE_S)
    assert shard.link.rows == [*range(10)]
    assert [kind for kind, _ in shard.link.sent[1:3]] == [messages.FEATURE, messages.FINISHED]
    texts = [values[1] for kind, values in shard.link.sent if kind == messages.FEATURE]
    assert texts == [f'{{"row": {row}}} ü\n' for row in range(10)]


def test_a_shard_that_can_run_nothing_more_sends_what_has_ended_and_ends(
    monkeypatch: pytest.MonkeyPatch,
):
    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(os, "_exit", leave)
    shard = Shard()
    for row in range(3):
        shard.end(row)
    shard.runs.stuck("the loop is held")
    shard.thread.join(PATIENCE_S)
    assert shard.link.rows == [0, 1, 2]
    assert shard.link.sent[-1] == (messages.GAVE_UP, ("the loop is held",))
    assert shard.link.flushed == len(shard.link.sent)
