"""The driver's side of shards, with a fleet and a sink that only write down what they are asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.running.engine import EngineClosed
from osmosis_ai.secret import Secret, mask_everywhere
from pytest_osmosis.distributed import messages
from pytest_osmosis.distributed.shards import rollouts
from pytest_osmosis.distributed.shards.plan import MAX_LOSSES, ShardPlan
from pytest_osmosis.distributed.shards.rollouts import ShardRollouts
from pytest_osmosis.features.cassettes import CassetteSpec
from pytest_osmosis.features.cassettes.feature import Cassettes
from pytest_osmosis.rollouts.cached import ResultCache
from pytest_osmosis.run_result import RolloutRecord, RunId, RunResult
from pytest_osmosis.session.seams import Feature
from pytest_osmosis.storage.run_lines import record_of, run_lines

CONFIG: Any = None
"""Cassettes need none of pytest's."""
LOADED = {"data": {"agent.py": "1", "data.jsonl": "2"}}


class FakeFleet:
    """Writes down what it is asked."""

    capacity = 2

    def __init__(self) -> None:
        self.started: list[int] = []
        self.sent: list[tuple[Any, ...]] = []
        self.closed = False

    def start(self, shard: int) -> None:
        self.started.append(shard)

    def send(self, shard: int, kind: str, *values: Any) -> None:
        self.sent.append((shard, kind, *values))

    def take(self) -> list[tuple[Any, ...]]:
        taken, self.sent = self.sent, []
        return taken

    def close(self) -> None:
        self.closed = True


class FakeSink:
    """Keeps results, in order, and halts the rollouts as a session does."""

    rollouts: ShardRollouts

    def __init__(self) -> None:
        self.kept: list[RunResult] = []
        self.paces: list[tuple[str, float, str, str]] = []
        self.halts: list[str] = []

    def ended(self, run: RunId, record: RolloutRecord, lines: bytes) -> None:
        assert record_of(lines) is not None
        self.kept.append(record.result)

    def paced(self, kind: str, seconds: float, said: str, place: str) -> None:
        self.paces.append((kind, seconds, said, place))

    def halt(self, reason: str) -> None:
        self.halts.append(reason)
        self.rollouts.halt(reason)


class FakeSuite:
    """As much of a suite as is asked of one."""

    class spec:
        scored_by_test = False

    def lost(self, run: RunId, *, error: str, error_type: Any) -> RunResult:
        return RunResult("data", run.row_index, 0, error=error, error_type=error_type)


class Driver:
    """Two shards, four in flight, rows from 0."""

    def __init__(
        self, rows: int = 8, *, known: int | None = None, features: Sequence[Feature] = ()
    ) -> None:
        self.fleet, self.sink = FakeFleet(), FakeSink()
        suites: Any = {"data": FakeSuite()}
        cache = ResultCache(suites)
        if known is not None:
            cache.runs[RunId("data", known, 0)] = RunResult("data", known, 0)
        plan = ShardPlan(2, 4, lambda run: run.row_index % 2)
        fleet, sink = self.fleet, self.sink
        self.rollouts = self.sink.rollouts = ShardRollouts(
            suites,
            fleet,  # type: ignore[arg-type]
            plan,
            sink=sink,  # type: ignore[arg-type]
            cache=cache,
            loaded=LOADED,
            keeps_messages=False,
            features=features,
        )
        self.rollouts.coming(RunId("data", row, 0) for row in range(rows))

    def begin(self, *shards: int) -> None:
        for shard in shards or (0, 1):
            self.rollouts.receive(shard, messages.LOADED, [LOADED])

    def finish(self, row: int, *, shard: int | None = None) -> None:
        record = RolloutRecord(RunResult("data", row, 0, success=True, passed=True))
        values = [run_lines(record).decode(), [["Captured stdout", "said"]]]
        self.rollouts.receive(row % 2 if shard is None else shard, messages.FINISHED, values)

    def result(self, row: int) -> RolloutRecord:
        return self.rollouts.result(RunId("data", row, 0))


def test_each_shard_gets_every_second_row_and_half_of_the_window():
    driver = Driver(5)
    assert driver.fleet.started == [0, 1]
    driver.begin()
    assert driver.fleet.take() == [
        (0, messages.BEGIN, [0, 0, 0, 0, 2, 0, 0, 4, 0], 2, 0),
        (1, messages.BEGIN, [0, 1, 0, 0, 3, 0], 2, 0),
    ]


def test_recorded_calls_are_written_down_masked_and_those_that_cannot_be_end_the_session(
    tmp_path: Path,
):
    mask_everywhere(Secret("sk-of-the-driver-alone"))
    cassettes = Cassettes(CONFIG, CassetteSpec(tmp_path / "taped"))
    halts: list[str] = []
    cassettes.open((), halts.append)
    driver = Driver(features=[cassettes])
    driver.begin()
    for shard in (0, 1):
        lines = f'{{"part": "{shard}", "value": "sk-of-the-driver-alone"}}\n'
        driver.rollouts.receive(shard, messages.FEATURE, ["cassettes", lines])
    [part] = (tmp_path / "taped").iterdir()
    assert part.read_text() == "".join(
        f'{{"part": "{shard}", "value": "***"}}\n' for shard in (0, 1)
    )
    assert [*cassettes.close()] == []
    other = Cassettes(CONFIG, CassetteSpec(tmp_path / "other"))
    other.open((), halts.append)
    (tmp_path / "other").rmdir()
    other.received(lines)
    assert halts == ["calls cannot be recorded: No such file or directory"]


def test_a_result_is_kept_at_once_and_waits_for_its_item():
    driver = Driver()
    driver.begin()
    driver.finish(2)
    driver.finish(0)
    assert [run.row_index for run in driver.sink.kept] == [2, 0]
    record = driver.result(0)
    assert (record.result.passed, record.sections) == (True, [("Captured stdout", "said")])
    waiting = threading.Timer(0.01, driver.finish, [3])
    waiting.start()
    assert driver.result(3).result.row_index == 3
    waiting.join()


def test_a_run_that_is_kept_already_is_no_shards():
    driver = Driver(3, known=1)
    assert driver.fleet.started == [0]
    assert driver.result(1).result.row_index == 1


def test_a_result_that_comes_twice_counts_once():
    driver = Driver()
    driver.begin()
    driver.finish(0)
    driver.finish(0)
    assert len(driver.sink.kept) == 1


def test_the_window_of_a_shard_that_has_ended_goes_to_the_others():
    driver = Driver(3)
    driver.begin()
    driver.fleet.take()
    driver.finish(1)
    driver.rollouts.receive(1, messages.DONE, [])
    assert driver.fleet.take() == [(0, messages.WINDOW, 4)]


def test_a_429_holds_the_other_shards_and_makes_all_windows_smaller():
    driver = Driver()
    driver.begin()
    driver.fleet.take()
    driver.rollouts.receive(0, messages.PACE, ["rate_limited", 1.5, "429", "m at x"])
    driver.rollouts.resize(3)
    assert driver.sink.paces == [("rate_limited", 1.5, "429", "m at x")]
    assert driver.fleet.take() == [
        (1, messages.HOLD, 1.5),
        (0, messages.WINDOW, 2),
        (1, messages.WINDOW, 1),
    ]


def test_a_halted_session_waits_for_what_is_in_flight_alone():
    driver = Driver()
    driver.begin(0)
    driver.rollouts.halt("the budget is spent")
    assert driver.fleet.take()[-1] == (0, messages.HALT, "the budget is spent")
    driver.finish(0)
    assert driver.result(0).result.passed
    with pytest.raises(EngineClosed):  # its shard has not begun
        driver.result(1)
    driver.rollouts.receive(0, messages.DONE, [])
    with pytest.raises(EngineClosed):
        driver.result(2)
    assert driver.rollouts.halted == "the budget is spent"


def test_a_shard_that_comes_after_the_halt_is_sent_away():
    driver = Driver()
    driver.rollouts.halt("decided")
    driver.begin(1)
    assert driver.fleet.sent == [(1, messages.CANCEL)]


def test_a_lost_shard_makes_again_only_what_has_no_result():
    driver = Driver()
    driver.begin()
    driver.finish(2)
    driver.rollouts.gone(0, "NodeDiedError", suspect=False)
    driver.fleet.take()
    driver.begin(0)
    assert driver.fleet.started == [0, 1, 0]
    assert driver.fleet.take() == [(0, messages.BEGIN, [0, 0, 0, 0, 4, 0, 0, 6, 0], 2, 0)]


def test_a_run_that_ends_two_processes_is_an_error_of_its_own():
    driver = Driver()
    driver.begin()
    for _ in range(2):
        driver.rollouts.gone(0, "its process was ended by SIGSEGV", suspect=True)
        driver.begin(0)
    record = driver.result(0)
    assert record.result.error_type == "worker_lost"
    assert record.frames == "worker lost: its process was ended by SIGSEGV during this run"
    assert driver.fleet.take()[-1] == (0, messages.BEGIN, [0, 2, 0, 0, 4, 0, 0, 6, 0], 2, 1)


def test_a_shard_that_is_lost_too_often_halts_the_session():
    driver = Driver()
    for _ in range(MAX_LOSSES + 1):
        driver.rollouts.gone(0, "the node died", suspect=False)
    assert driver.sink.halts == ["shard 1 was lost again and again: the node died"]
    with pytest.raises(EngineClosed):
        driver.result(0)


def test_a_shard_with_another_version_of_a_file_runs_nothing():
    driver = Driver()
    other = {"data": {**LOADED["data"], "agent.py": "changed"}}
    driver.rollouts.receive(0, messages.LOADED, [other])
    assert driver.sink.halts == ["shard 1: it has loaded another version of agent.py"]
    assert driver.fleet.sent == [(0, messages.CANCEL)]


def test_what_stops_a_process_for_good_blames_no_other_run():
    driver = Driver()
    driver.begin()
    driver.rollouts.receive(0, messages.GAVE_UP, ["holds the event loop"])
    driver.rollouts.gone(0, "died", suspect=True)
    driver.begin(0)
    assert not driver.sink.kept
    assert driver.fleet.take()[-1][-2:] == (2, 0)  # both of its window at once


def test_an_interrupted_session_takes_what_shards_have_finished():
    driver = Driver()
    driver.begin()
    driver.rollouts.cancel()

    def arrive() -> None:
        driver.finish(0)
        driver.rollouts.receive(0, messages.DONE, [])
        driver.finish(1)
        driver.rollouts.gone(1, "its process has ended", suspect=False)

    arriving = threading.Timer(0.01, arrive)
    arriving.start()
    driver.rollouts.take_last()
    assert [run.row_index for run in driver.sink.kept] == [0, 1]
    arriving.join()


def test_a_shard_that_says_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rollouts, "LAST_RESULTS_S", 0.01)
    driver = Driver()
    driver.begin()
    driver.rollouts.cancel()
    driver.rollouts.take_last()
    driver.rollouts.close()
    assert driver.fleet.closed


def test_the_end_of_a_session_cancels_all_shards_and_closes_the_fleet():
    driver = Driver()
    driver.begin()
    driver.fleet.take()
    driver.rollouts.cancel()
    for shard in (0, 1):
        driver.rollouts.receive(shard, messages.DONE, [])
    driver.rollouts.close()
    assert driver.fleet.take()[:2] == [(0, messages.CANCEL), (1, messages.CANCEL)]
    assert driver.fleet.closed
