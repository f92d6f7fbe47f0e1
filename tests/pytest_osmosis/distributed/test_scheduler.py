"""The scheduler with nodes and channels that write down what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_osmosis.distributed.scheduler import CachedResult, WindowScheduling

ITEMS = [f"data.jsonl::row-{index}[run-0]" for index in range(12)]


class Node:
    """A worker as xdist shows it."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Channel:
    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def send(self, message: tuple[Any, ...]) -> None:
        self.sent.append(message)

    def values(self, kind: str) -> list[Any]:
        return [value for sent, value in self.sent if sent == kind]


class Listener:
    """A controller that knows no earlier results and has seen no report."""

    def __init__(self) -> None:
        self.reported: set[str] = set()
        self.known: dict[str, CachedResult] = {}
        self.other: list[str] = []

    def collected(self, nodeids: Sequence[str]) -> None:
        self.items = list(nodeids)

    def other_items(self, worker: str) -> None:
        self.other.append(worker)

    def is_gate(self, nodeid: str) -> bool:
        return nodeid.startswith("gates::")

    def cached(self, nodeid: str) -> CachedResult | None:
        return self.known.get(nodeid)

    def is_reported(self, nodeid: str) -> bool:
        return nodeid in self.reported


class Session:
    """Two workers and their scheduler."""

    def __init__(self, batch_size: int, items: Sequence[str] = ITEMS) -> None:
        self.listener = Listener()
        self.channels = {"gw0": Channel(), "gw1": Channel(), "gw2": Channel()}
        config: Any = SimpleNamespace(option=SimpleNamespace(tx=["popen", "popen"]))
        self.scheduling = WindowScheduling(
            config, self.listener, batch_size=batch_size, channels=self.channels
        )
        self.items = items
        self.nodes = [self.start(name) for name in ("gw0", "gw1")]

    def start(self, name: str) -> Node:
        node = Node(name)
        self.scheduling.add_node(node)
        self.scheduling.add_node_collection(node, self.items)
        if self.scheduling.collection_is_completed:
            self.scheduling.schedule()
        return node

    def finish(self, node: Node, index: int) -> None:
        run = CachedResult(f"result {index}", "", True)
        self.scheduling.note_finished(node, index, run)

    def report(self, node: Node, index: int) -> None:
        self.listener.reported.add(self.items[index])
        self.scheduling.mark_test_complete(node, index)


@pytest.fixture
def session() -> Session:
    return Session(batch_size=5)


def windows(session: Session) -> list[int]:
    return [session.channels[name].values("window")[-1] for name in ("gw0", "gw1")]


def test_the_shares_sum_to_the_batch_size(session: Session) -> None:
    assert windows(session) == [3, 2]
    session.scheduling.resize(2)
    assert windows(session) == [1, 1]


def test_every_item_is_given_once_and_then_workers_are_shut_down(session: Session) -> None:
    while session.scheduling.has_pending:
        for node in session.nodes:
            for index in node.given:
                if session.items[index] not in session.listener.reported:
                    session.finish(node, index)
                    session.report(node, index)
    given = [index for node in session.nodes for index in node.given]
    assert sorted(given) == list(range(12))
    assert session.scheduling.tests_finished
    assert all(node.shutting_down for node in session.nodes)


def test_a_gate_is_given_to_no_worker() -> None:
    session = Session(4, ["gates::mean >= 1", *ITEMS[:3]])
    assert sorted(index for node in session.nodes for index in node.given) == [1, 2, 3]


def test_a_result_that_a_lost_worker_had_is_reported_by_another(session: Session) -> None:
    first, second = session.nodes
    done, *_ = first.given
    session.finish(first, done)
    assert session.scheduling.remove_node(first) is None
    third = session.start("gw2")
    for _ in range(50):
        for node in (second, third):
            for index in node.given:
                if session.items[index] not in session.listener.reported:
                    session.report(node, index)
    told = [*session.channels["gw1"].values("cached"), *session.channels["gw2"].values("cached")]
    assert told == [[(done, f"result {done}", "")]]
    assert len(session.listener.reported) == len(ITEMS)


def test_the_only_run_in_flight_is_blamed_for_the_end_of_its_worker() -> None:
    session = Session(batch_size=2)
    first = session.nodes[0]
    assert session.scheduling.remove_node(first) == ITEMS[first.given[0]]


def test_suspects_are_run_again_one_at_a_time(session: Session) -> None:
    first, second = session.nodes
    suspects = first.given[:3]
    assert session.scheduling.remove_node(first) is None
    for index in second.given[:]:
        session.report(second, index)
    third = session.start("gw2")
    alone = second if set(suspects) <= set(second.given) else third
    assert session.channels[alone.gateway.id].values("window")[-1] == 1


def test_a_worker_with_other_items_is_shut_down(session: Session) -> None:
    session.scheduling.remove_node(session.nodes[0])
    session.items = ITEMS[:3]
    late = session.start("gw2")
    assert late.shutting_down
    assert session.listener.other == ["gw2"]
    assert late.given == []


def test_after_a_halt_nothing_more_is_given(session: Session) -> None:
    before = [list(node.given) for node in session.nodes]
    session.scheduling.halt("enough")
    for node, given in zip(session.nodes, before, strict=True):
        for index in given:
            session.report(node, index)
    assert [node.given for node in session.nodes] == before
    assert session.channels["gw0"].values("halt") == ["enough"]
    assert session.scheduling.tests_finished
