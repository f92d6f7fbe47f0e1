"""When the runs of a process are offered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from osmosis_ai.secret import Redactor
from pytest_osmosis.items.runner import ItemRunner
from pytest_osmosis.run_result import RunId

FIRST, SECOND, THIRD = (RunId("suite", row, 0) for row in range(3))


class Offered:
    """Rollouts of which none is run."""

    def __init__(self) -> None:
        self.runs: list[RunId] = []

    def coming(self, keys: Iterable[RunId]) -> None:
        self.runs += keys

    def close(self) -> None: ...


def test_no_run_is_offered_before_the_session_comes_to_one(request: pytest.FixtureRequest) -> None:
    rollouts: Any = Offered()
    begun: list[int] = []
    runner = ItemRunner(
        request.config,
        rollouts,
        redact=Redactor(),
        indifferent=(),
        on_begin=lambda: begun.append(len(rollouts.runs)),
    )
    try:
        runner.coming([FIRST])
        runner.coming([SECOND])
        assert runner.run(request.node, None) is None  # a test: no run yet
        assert rollouts.runs == [] == begun
        runner.begin()
        runner.coming([THIRD])
        runner.begin()
        assert rollouts.runs == [FIRST, SECOND, THIRD]
        assert begun == [0]  # once, and before any
    finally:
        runner.close()
