"""Budgets of money, tokens and time: `--osmosis-max-cost`, `-max-total-tokens`, `-max-time`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...options import values
from ...options.table import FeatureEntry, Option, OptionSet

if TYPE_CHECKING:
    from ...options.reader import OptionReader

_OPTIONS = (
    Option(
        "max-cost",
        "stop starting runs at this cost in dollars; needs a model whose price is known",
        values.number("a number of dollars above 0", lambda value: value > 0),
        metavar="USD",
        fills="budget.cost_usd",
        reaches="usage",
    ),
    Option(
        "max-total-tokens",
        "stop starting runs once this many tokens are used",
        values.whole_number(1),
        metavar="N",
        fills="budget.tokens",
        reaches="usage",
    ),
    Option(
        "max-time",
        "stop starting runs after this many seconds",
        values.positive_seconds,
        metavar="S",
        fills="budget.time_s",
    ),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a session may use before it starts no further run; None is no limit."""

    cost_usd: float | None = None
    tokens: int | None = None
    time_s: float | None = None


def _read(given: OptionReader) -> Budget | None:
    budget = Budget(**given.fields("budget"))
    return None if budget == Budget() else budget


BUDGETS = FeatureEntry(
    "budgets",
    [OptionSet("limits", _OPTIONS, after="import-timeout")],
    read=_read,
    feature="BudgetsFeature",
)
