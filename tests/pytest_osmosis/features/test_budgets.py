"""Budgets: what runs take ends the session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from pytest_osmosis.features.budgets import Budget
from pytest_osmosis.features.budgets.feature import BudgetsFeature
from pytest_osmosis.run_result import RunResult

CONFIG: Any = None
"""Budgets need none of pytest's."""


class Runs:
    """A session with a budget, and what ended it."""

    def __init__(self, budget: Budget) -> None:
        self.reasons: list[str] = []
        self.halted = threading.Event()
        self.spent: Callable[[], str] | None = None
        self.feature = BudgetsFeature(CONFIG, budget)
        self.feature.open((), self._halt)

    def _halt(self, reason: str, *, spent: Callable[[], str] | None = None) -> None:
        self.reasons.append(reason)
        self.spent = spent
        self.halted.set()


def run(index: int, **fields: object) -> RunResult:
    return RunResult("suite", index, 0, **fields)  # type: ignore[arg-type]


@pytest.mark.fault("a budget of money where the price is not known")
@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (
            Budget(tokens=100),
            "the tokens of a run are not known: --osmosis-max-total-tokens cannot be kept",
        ),
        (Budget(cost_usd=1.0), "the cost of a run is not known: --osmosis-max-cost cannot be kept"),
    ],
)
def test_a_budget_of_what_is_not_known_ends_the_session(budget, reason):
    runs = Runs(budget)
    runs.feature.run_made(run(0, llm_calls=0, tokens=None, cost_usd=None))
    runs.feature.run_made(run(1, llm_calls=1, tokens=9, cost_usd=0.25))
    assert runs.reasons == []
    runs.feature.run_made(run(2, llm_calls=1, tokens=None, cost_usd=None))
    assert runs.reasons == [reason]


@pytest.mark.parametrize(
    ("budget", "name", "reason", "used"),
    [
        (Budget(tokens=100), "tokens", "the budget of 100 tokens is spent", "125 used"),
        (Budget(cost_usd=1.0), "cost_usd", "the budget of $1 is spent", "$1.2500 used"),
    ],
)
def test_a_spent_budget_of_tokens_or_money_ends_the_session(budget, name, reason, used):
    runs = Runs(budget)
    whole = getattr(budget, name)
    for index, share in enumerate((0.75, 0.25, 0.25)):  # the last one was in flight
        assert runs.reasons == ([] if index < 2 else [reason])
        runs.feature.run_made(run(index, llm_calls=1, **{name: type(whole)(whole * share)}))
    assert runs.reasons == [reason]
    assert runs.spent is not None and runs.spent() == f"{reason} ({used})"


def test_a_spent_budget_of_time_ends_the_session():
    runs = Runs(Budget(time_s=0.01))
    runs.feature.first_run()
    assert runs.halted.wait(60)
    assert runs.reasons == ["the time budget of 0.01 s is spent"]


def test_a_session_that_ends_in_time_is_not_stopped_afterwards():
    runs = Runs(Budget(time_s=60))
    runs.feature.first_run()
    runs.feature.close()
    assert runs.reasons == []
