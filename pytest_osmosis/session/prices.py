"""A budget in dollars needs prices: without one it would never be spent."""

from __future__ import annotations

import pytest

from ..rollouts.prepare import endpoint_of
from ..spec import EvalSpec, ModelSpec, SessionSpec


def check(spec: SessionSpec) -> None:
    """Raise `pytest.UsageError` when a budget in dollars is given and a price is not known."""
    if spec.budget.cost_usd is None or spec.rescore is not None:
        return
    for asked in spec.evals or [spec.defaults]:
        if asked is not None and asked.model.model and not _is_known(asked.model):
            raise pytest.UsageError(_unknown(asked))


def _is_known(model: ModelSpec) -> bool:
    if model.price_per_mtok is not None:
        return True
    if model.base_url is not None:
        return False
    from osmosis_ai.models.litellm.prices import has_price

    return has_price(model.model)


def _unknown(asked: EvalSpec) -> str:
    option = "--osmosis-price-per-mtok"
    if asked.baseline_of is not None:
        option = "--osmosis-baseline-price-per-mtok"
    return (
        f"--osmosis-max-cost: the price of {asked.model.model!r} at {endpoint_of(asked.model)} is "
        f"not known, so the budget would never be spent: give {option} IN,OUT (dollars per million "
        "tokens of prompts and of completions), or --osmosis-max-total-tokens instead"
    )
