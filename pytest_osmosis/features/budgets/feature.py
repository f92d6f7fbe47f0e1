"""Budgets at the seams: every run that was made counts, and a spent budget ends the session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...escaping import dollars
from ...rollouts.prepare import endpoint_of
from ...session.seams import Feature, Halt

if TYPE_CHECKING:
    import pytest

    from ...rollouts.suite import Suite
    from ...run_result import RunResult
    from ...spec import EvalSpec, ModelSpec, SessionSpec
    from . import Budget


class BudgetsFeature(Feature):
    """Counts what runs take, and halts at most once; from any thread."""

    def __init__(self, config: pytest.Config, budget: Budget) -> None:
        self._budget = budget
        self._defaults: EvalSpec | None = None
        self._halt: Halt | None = None
        self._tokens = 0
        self._cost_usd = 0.0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Return the session, in which a budget of money counts the embedded model as free."""
        if self._budget.cost_usd is not None:
            evals = tuple(map(_with_free_model, spec.evals))
            defaults = None if spec.defaults is None else _with_free_model(spec.defaults)
            spec = replace(spec, evals=evals, defaults=defaults)
        self._defaults = spec.defaults
        return spec

    def open(self, suites: Iterable[Suite], halt: Halt) -> None:
        """Take what ends the session.

        Raise ConfigurationError where a budget is in dollars and a price is not known: it would
        never be spent. A session that lists items spends nothing, and needs no price.
        """
        self._halt = halt
        if self._budget.cost_usd is None:
            return
        models = [suite.spec.model for suite in suites]
        if not models and self._defaults is not None:
            models = [self._defaults.model]
        for model in models:
            if model.model and model.is_asked and not _has_price(model):
                raise ConfigurationError(
                    f"--osmosis-max-cost: the price of {model.model!r} at {endpoint_of(model)} is "
                    "not known, so the budget would never be spent: give --osmosis-price-per-mtok "
                    "IN,OUT (dollars per million tokens of prompts and of completions), or "
                    "--osmosis-max-total-tokens instead"
                )

    def first_run(self) -> None:
        """Start the clock of the time budget."""
        limit_s = self._budget.time_s
        if limit_s is not None:
            reason = f"the time budget of {limit_s:g} s is spent"
            self._timer = threading.Timer(limit_s, self._stop, args=(reason, lambda: reason))
            self._timer.daemon = True
            self._timer.start()

    def run_made(self, run: RunResult) -> None:
        """Count what a run took."""
        with self._lock:
            self._tokens += run.tokens or 0
            self._cost_usd += run.cost_usd or 0.0
            unknown, spent = self._unknown(run), self._spent()
        if unknown is not None:
            self._stop(unknown)
        elif spent is not None:
            self._stop(*spent)

    def close(self) -> tuple[()]:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
        return ()

    def _stop(self, reason: str, spent: Callable[[], str] | None = None) -> None:
        with self._lock:
            halt, self._halt = self._halt, None
        if halt is not None:
            halt(reason, spent=spent)

    def _unknown(self, run: RunResult) -> str | None:
        """Return which budget cannot be kept, since what a run took is not known."""
        if not (run.llm_calls or run.success):
            return None
        hint = "" if run.llm_calls else "; osmosis_ai.record(client) counts a function's calls"
        if self._budget.cost_usd is not None and run.spent_usd is None:
            return f"the cost of a run is not known: --osmosis-max-cost cannot be kept{hint}"
        if self._budget.tokens is not None and run.tokens is None:
            reason = "the tokens of a run are not known: --osmosis-max-total-tokens cannot be kept"
            return reason + hint
        return None

    def _spent(self) -> tuple[str, Callable[[], str]] | None:
        """Return which budget is spent, without and with what was used."""
        tokens, cost_usd = self._budget.tokens, self._budget.cost_usd
        if tokens is not None and self._tokens >= tokens:
            reason = f"the budget of {tokens:,} tokens is spent"
            return reason, lambda: f"{reason} ({self._tokens:,} used)"
        if cost_usd is not None and self._cost_usd >= cost_usd:
            reason = f"the budget of ${cost_usd:g} is spent"
            return reason, lambda: f"{reason} ({dollars(self._cost_usd)} used)"
        return None


def _with_free_model(spec: EvalSpec) -> EvalSpec:
    model = spec.model
    if model.persona is None or model.price_per_mtok is not None:
        return spec
    return replace(spec, model=replace(model, price_per_mtok=(0.0, 0.0)))


def _has_price(model: ModelSpec) -> bool:
    if model.price_per_mtok is not None:
        return True
    if model.base_url is not None:
        return False
    from osmosis_ai.models.litellm.library import has_price

    return has_price(model.model)
