"""When the runs of a process are offered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_osmosis.items.report_contents import FailureSections
from pytest_osmosis.items.runner import ItemRunner
from pytest_osmosis.run_result import RunId

FIRST, SECOND, THIRD, FOURTH = (RunId("suite", row, 0) for row in range(4))


class Offered:
    """Rollouts of which none is run."""

    def __init__(self) -> None:
        self.runs: list[RunId] = []

    def coming(self, keys: Iterable[RunId]) -> None:
        self.runs += keys

    def close(self) -> None: ...


@pytest.fixture
def offered() -> Offered:
    return Offered()


@pytest.fixture
def begun() -> list[int]:
    return []


@pytest.fixture
def runner(
    request: pytest.FixtureRequest, offered: Offered, begun: list[int]
) -> Iterator[ItemRunner]:
    rollouts: Any = offered
    runner = ItemRunner(
        request.config,
        rollouts,
        sections=FailureSections({}, lambda run: None),
        on_begin=lambda: begun.append(len(offered.runs)),
        on_report=lambda run, result: None,
    )
    yield runner
    runner.close()


@pytest.fixture
def test_of(request: pytest.FixtureRequest) -> Callable[[RunId], Any]:
    """Return the test of a run, as pytest has it."""
    return lambda run: SimpleNamespace(
        callspec=SimpleNamespace(params={"rollout": run}),
        config=request.config,
        get_closest_marker=lambda name: None,
        iter_markers=lambda name: (),
    )


def test_no_run_is_offered_before_the_session_comes_to_one(
    runner: ItemRunner,
    offered: Offered,
    begun: list[int],
    test_of: Callable[[RunId], Any],
    request: pytest.FixtureRequest,
):
    runner.coming([request.node, test_of(FIRST)])
    runner.coming([test_of(SECOND)])
    runner.reach(request.node)  # a test: no run yet
    assert offered.runs == [] == begun
    runner.begin(FIRST)
    runner.coming([test_of(THIRD)])
    runner.begin(SECOND)
    assert offered.runs == [FIRST, SECOND, THIRD]
    assert begun == [0]  # once, and before any


def test_runs_behind_an_ordinary_test_wait_for_its_end(
    runner: ItemRunner,
    offered: Offered,
    begun: list[int],
    test_of: Callable[[RunId], Any],
    request: pytest.FixtureRequest,
):
    ordinary = request.node
    runner.coming([test_of(FIRST), ordinary, test_of(SECOND)])
    runner.coming([test_of(THIRD), ordinary])
    runner.coming([ordinary, test_of(FOURTH)])
    runner.begin(FIRST)
    runner.reach(test_of(FIRST))
    runner.begin(FIRST)  # a test that is run again
    assert offered.runs == [FIRST]
    runner.reach(ordinary)
    assert offered.runs == [FIRST]
    runner.begin(SECOND)
    assert offered.runs == [FIRST, SECOND, THIRD]
    runner.reach(ordinary)
    runner.begin(RunId("suite", 9, 0))  # known to nobody: the others keep their place
    assert offered.runs == [FIRST, SECOND, THIRD]
    runner.reach(ordinary)
    runner.begin(FOURTH)
    assert offered.runs == [FIRST, SECOND, THIRD, FOURTH]
    assert begun == [0]


def test_runs_that_the_session_has_passed_are_not_started(
    runner: ItemRunner,
    offered: Offered,
    test_of: Callable[[RunId], Any],
    request: pytest.FixtureRequest,
):
    runner.coming([test_of(FIRST), request.node, test_of(SECOND)])
    runner.begin(SECOND)  # a fixture of the first has failed
    assert offered.runs == [SECOND]


def test_all_runs_are_offered_where_ordinary_tests_touch_none(
    runner: ItemRunner,
    offered: Offered,
    begun: list[int],
    test_of: Callable[[RunId], Any],
    request: pytest.FixtureRequest,
):
    runner.coming([request.node, test_of(FIRST), request.node, test_of(SECOND)])
    runner.begin_all()
    assert offered.runs == [FIRST, SECOND]
    runner.begin(FIRST)
    assert begun == [0]
