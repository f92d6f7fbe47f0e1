"""The scheduler with made-up workers: who is given which items, and what follows from a death."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_osmosis.distributed.scheduler import CachedResult, WindowScheduling


class Worker:
    """An xdist node and its channel, which keep what they are sent."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.messages: list[tuple[str, Any]] = []
        self.given: list[int] = []
        self.shutting_down = False
        self.has_died = False

    def send(self, message: tuple[str, Any]) -> None:
        self.messages.append(message)

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        if self.has_died:
            raise OSError("cannot send (already closed?)")
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def messages_of(self, kind: str) -> list[Any]:
        """The values of the messages of a kind."""
        return [value for of, value in self.messages if of == kind]

    @property
    def window(self) -> int:
        """How many rollouts it may have in flight."""
        return self.messages_of("window")[-1]


@dataclass
class Listener:
    """What a session answers to the scheduler, and what it hears."""

    kept: dict[str, CachedResult] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    collections: list[list[str]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    followed: dict[int, list[int]] = field(default_factory=dict)

    def begin_items(self, nodeids: Sequence[str]) -> None:
        self.collections.append(list(nodeids))

    def followers(self, nodeids: Sequence[str]) -> dict[int, list[int]]:
        return self.followed

    def other_items(self, worker: str) -> None:
        self.others.append(worker)

    def cached(self, nodeid: str) -> CachedResult | None:
        return self.kept.get(nodeid)

    def is_reported(self, nodeid: str) -> bool:
        return nodeid in self.reported


class Bench:
    """A scheduler over `count` items with its workers up and everything given out that can be."""

    def __init__(
        self,
        count: int,
        *,
        batch_size: int,
        workers: int,
        listener: Listener | None = None,
    ) -> None:
        self.items = [f"data.jsonl::row-{index}[run-0]" for index in range(count)]
        self.listener = listener or Listener()
        self.workers = [Worker(f"gw{number}") for number in range(workers)]
        self.channels: dict[str, Any] = {each.gateway.id: each for each in self.workers}
        self.reported: list[int] = []
        """Items that were reported, in order."""
        self.scheduling = scheduling(self.listener, batch_size, self.channels)
        for worker in self.workers:
            self.scheduling.add_node(worker)
        for worker in self.workers:
            assert not self.scheduling.collection_is_completed
            self.scheduling.add_node_collection(worker, self.items)
        self.scheduling.schedule()

    def replacement(self, name: str = "gw9") -> Worker:
        """Another worker, in the place of one that died."""
        worker = Worker(name)
        self.channels[name] = worker
        self.scheduling.add_node(worker)
        self.scheduling.add_node_collection(worker, self.items)
        self.scheduling.schedule()
        return worker

    def report(self, worker: Worker, *indices: int) -> None:
        for index in indices:
            self.reported.append(index)
            self.scheduling.mark_test_complete(worker, index)

    def run_all(self, seed: int = 0) -> list[int]:
        """Report items in each worker's order, workers by chance, until all is done."""
        chance = random.Random(seed)
        places = dict.fromkeys(self.scheduling.nodes, 0)
        while not self.scheduling.tests_finished:
            able = [
                worker
                for worker in self.scheduling.nodes
                if len(worker.given) - places[worker] > (0 if worker.shutting_down else 1)
            ]
            worker = chance.choice(able)
            self.report(worker, worker.given[places[worker]])
            places[worker] += 1
        return self.reported


def scheduling(listener: Listener, batch_size: int, channels: dict[str, Any]) -> WindowScheduling:
    config: Any = SimpleNamespace(option=SimpleNamespace(tx=list(channels)))
    return WindowScheduling(config, listener, batch_size=batch_size, channels=channels)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("batch_size", [7, 8, 10, 64])
def test_the_shares_of_all_workers_sum_to_the_batch_size(batch_size: int, workers: int):
    bench = Bench(500, batch_size=batch_size, workers=workers)
    shares = [worker.window for worker in bench.workers]
    assert sum(shares) == batch_size
    assert max(shares) - min(shares) <= 1


def test_another_batch_size_is_shared_out_at_once_and_leaves_each_worker_one():
    bench = Bench(100, batch_size=8, workers=2)
    bench.scheduling.resize(5)
    assert [worker.window for worker in bench.workers] == [3, 2]
    bench.scheduling.resize(1)
    assert [worker.window for worker in bench.workers] == [1, 1]


def test_the_items_are_known_before_any_is_given_out():
    bench = Bench(5, batch_size=2, workers=2)
    assert bench.listener.collections == [bench.items]
    assert bench.scheduling.collection == bench.items


def test_what_is_coming_is_announced_to_the_worker_in_the_same_order():
    bench = Bench(40, batch_size=6, workers=2)
    for worker in bench.workers:
        assert [index for some in worker.messages_of("coming") for index in some] == worker.given


@pytest.mark.parametrize(("count", "batch_size", "workers"), [
    (1, 4, 2), (2, 2, 2), (17, 3, 2), (100, 8, 3), (600, 64, 2), (50, 1, 1),
])  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_every_item_is_given_to_one_worker_once(
    count: int, batch_size: int, workers: int, seed: int
):
    bench = Bench(count, batch_size=batch_size, workers=workers)
    reported = bench.run_all(seed)
    assert sorted(reported) == list(range(count))
    assert sorted(index for each in bench.workers for index in each.given) == list(range(count))
    assert all(worker.shutting_down for worker in bench.workers)
    assert not bench.scheduling.has_pending


def test_the_tail_is_level_a_slow_worker_keeps_no_more_than_it_may_run():
    bench = Bench(100, batch_size=8, workers=2)
    slow, fast = bench.workers
    while not fast.shutting_down:
        done = len(fast.given) - 2
        bench.report(fast, *(index for index in fast.given[:done] if index not in bench.reported))
    assert len(slow.given) <= 2 * slow.window
    assert len(fast.given) >= 100 - 2 * slow.window


def test_a_run_that_has_finished_makes_room_before_its_item_is_reported():
    bench = Bench(100, batch_size=4, workers=1)
    [worker] = bench.workers
    before = len(worker.given)
    for index in worker.given[:before]:
        bench.scheduling.note_finished(worker, {index: CachedResult("{}", decided=True)})
    assert len(worker.given) >= before + worker.window


def test_the_only_run_in_flight_is_blamed_and_the_rest_is_run_by_a_replacement():
    bench = Bench(10, batch_size=2, workers=2)
    first, second = bench.workers
    held = list(first.given)
    assert bench.scheduling.remove_node(first) == bench.items[held[0]]
    third = bench.replacement()
    bench.run_all()
    given = second.given + third.given
    assert sorted(given) == sorted(set(range(10)) - {held[0]})


def test_several_runs_in_flight_are_suspects_that_one_worker_runs_one_at_a_time():
    bench = Bench(40, batch_size=6, workers=2)
    first, second = bench.workers
    suspects = first.given[: first.window]
    assert bench.scheduling.remove_node(first) is None
    third = bench.replacement()
    assert third.window == 1
    assert third.given[: len(suspects)] == suspects
    assert second.window == 5
    assert bench.scheduling.remove_node(third) == bench.items[suspects[0]]


def test_a_worker_that_died_unnoticed_is_not_blamed_for_what_it_was_never_sent():
    bench = Bench(12, batch_size=2, workers=2)
    dead = bench.workers[0]
    [running, *_] = dead.given
    before = len(dead.given)
    dead.has_died = True
    bench.report(dead, *dead.given[1:])
    assert len(dead.given) == before
    assert bench.scheduling.remove_node(dead) == bench.items[running]
    bench.reported.append(running)
    replacement = bench.replacement()
    assert running not in replacement.given
    bench.run_all()
    assert sorted(bench.reported) == list(range(12))


def test_suspects_that_reach_no_worker_stay_suspects():
    bench = Bench(40, batch_size=4, workers=2)
    dead, other = bench.workers
    suspects = dead.given[:2]
    assert bench.scheduling.remove_node(dead) is None
    while suspects not in other.messages_of("coming"):
        waiting = [index for index in other.given if index not in bench.reported]
        other.has_died = len(waiting) == 2
        bench.report(other, waiting[0])
    assert bench.scheduling.remove_node(other) == bench.items[waiting[1]]
    replacement = bench.replacement()
    assert set(suspects) <= set(replacement.given)
    assert replacement.window == 1


def test_when_the_suspects_are_done_the_batch_size_is_shared_out_again():
    bench = Bench(60, batch_size=6, workers=2)
    first, second = bench.workers
    bench.scheduling.remove_node(first)
    third = bench.replacement()
    for index in list(third.given):
        bench.report(third, index)
    assert third.window + second.window == 6
    assert {third.window, second.window} == {3}


def test_a_result_that_came_before_its_worker_died_is_reported_by_another():
    bench = Bench(40, batch_size=2, workers=2)
    first, second = bench.workers
    done, culprit = first.given[:2]
    kept = CachedResult('{"passed": true}', decided=True)
    bench.scheduling.note_finished(first, {done: kept})
    assert bench.scheduling.remove_node(first) == bench.items[culprit]
    bench.run_all()
    cached = [entry for some in second.messages_of("cached") for entry in some]
    assert cached == [(done, kept.text)]
    assert done in second.given
    assert culprit not in second.given


def test_a_worker_that_reported_whose_fault_its_end_is_leaves_nobody_to_blame():
    bench = Bench(10, batch_size=2, workers=2)
    first, second = bench.workers
    held = list(first.given)
    bench.scheduling.excuse(first)
    assert bench.scheduling.remove_node(first) is None
    bench.run_all()
    assert set(held) <= set(second.given)


def test_a_worker_that_ended_in_order_leaves_nobody_to_blame():
    bench = Bench(10, batch_size=1, workers=1)
    [worker] = bench.workers
    vars(worker)["workeroutput"] = {"exitstatus": 0}  # as xdist sets it
    assert bench.scheduling.remove_node(worker) is None


def test_after_the_workers_are_shut_down_nothing_more_is_given():
    bench = Bench(100, batch_size=4, workers=2)
    first, second = bench.workers
    before = list(first.given), list(second.given)
    bench.scheduling.shut_down()
    bench.scheduling.note_finished(first, {first.given[0]: CachedResult("", decided=True)})
    bench.report(second, second.given[0])
    assert (first.given, second.given) == before
    assert first.shutting_down and second.shutting_down


def test_an_item_that_was_reported_is_neither_blamed_nor_run_again():
    bench = Bench(10, batch_size=2, workers=2)
    first, second = bench.workers
    done, culprit = first.given[:2]
    bench.listener.reported.add(bench.items[done])
    assert bench.scheduling.remove_node(first) == bench.items[culprit]
    bench.run_all()
    assert done not in second.given


def test_after_a_halt_nothing_more_is_given_and_every_worker_gets_the_reason():
    bench = Bench(100, batch_size=4, workers=2)
    before = [list(worker.given) for worker in bench.workers]
    bench.scheduling.halt("the budget is spent")
    assert [worker.given for worker in bench.workers] == before
    for worker in bench.workers:
        assert worker.messages_of("halt") == ["the budget is spent"]
        assert worker.shutting_down
    assert bench.scheduling.has_pending  # what is in flight is still reported
    for worker in bench.workers:
        bench.report(worker, *worker.given)
    assert bench.scheduling.tests_finished


def test_a_worker_that_comes_after_a_halt_is_halted_at_once():
    bench = Bench(10, batch_size=2, workers=1)
    bench.scheduling.halt("enough")
    assert bench.replacement().messages_of("halt") == ["enough"]


def test_a_halt_may_let_the_workers_report_the_items_that_are_left():
    bench = Bench(30, batch_size=4, workers=2)
    bench.scheduling.halt("every gate is decided", keep_items=True)
    assert sorted(bench.run_all()) == list(range(30))


def test_workers_that_collected_different_items_are_a_usage_error():
    listener = Listener()
    one, other = Worker("gw0"), Worker("gw1")
    made = scheduling(listener, 2, {"gw0": one, "gw1": other})
    for worker, items in ((one, ["a", "b"]), (other, ["a", "c"])):
        made.add_node(worker)
        made.add_node_collection(worker, items)
    with pytest.raises(pytest.UsageError, match="did not collect the same items"):
        made.schedule()
    assert one.given == other.given == []


def test_a_replacement_with_other_items_is_sent_away_and_reported():
    bench = Bench(10, batch_size=2, workers=2)
    worker = bench.channels["gw2"] = Worker("gw2")
    bench.scheduling.add_node(worker)
    bench.scheduling.add_node_collection(worker, [*bench.items, "one more"])
    assert worker.shutting_down
    assert bench.listener.others == ["gw2"]
    bench.scheduling.schedule()
    assert worker.given == []


def test_runs_that_are_kept_take_no_place_and_reach_the_worker_before_their_items():
    kept = {
        f"data.jsonl::row-{row}[run-0]": CachedResult(str(row), decided=True) for row in range(50)
    }
    bench = Bench(60, batch_size=2, workers=1, listener=Listener(kept=kept))
    [worker] = bench.workers
    assert len(worker.given) > worker.window
    kinds = [kind for kind, _ in worker.messages if kind != "window"]
    assert kinds[:2] == ["cached", "coming"]
    assert sorted(bench.run_all()) == list(range(60))
    assert len([entry for some in worker.messages_of("cached") for entry in some]) == 50


def test_an_item_that_another_plugin_wants_again_is_run_again():
    bench = Bench(40, batch_size=2, workers=2)
    again = bench.workers[0].given[0]
    bench.report(bench.workers[0], again)
    bench.scheduling.mark_test_pending(bench.items[again])
    bench.run_all()
    assert sum(worker.given.count(again) for worker in bench.workers) == 2


def test_a_channel_that_is_closed_does_not_stop_the_others():
    bench = Bench(10, batch_size=2, workers=2)

    def closed(message: object) -> None:
        raise OSError("cannot send to <Channel>")

    bench.workers[0].send = closed  # type: ignore[method-assign]
    bench.scheduling.halt("enough")
    assert bench.workers[1].messages_of("halt") == ["enough"]


def test_items_with_one_rollout_are_given_to_one_worker_and_take_one_place():
    listener = Listener(followed={index: [index + 4] for index in range(4)})
    bench = Bench(8, batch_size=2, workers=2, listener=listener)
    assert [set(worker.given) for worker in bench.workers] == [{0, 4, 1, 5}, {2, 6, 3, 7}]
    assert sorted(bench.run_all(0)) == list(range(8))
