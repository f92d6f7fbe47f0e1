"""Whether LiteLLM knows what a model costs."""

from __future__ import annotations

from ...providers import parse_model_name
from .library import load


def has_price(model: str) -> bool:
    """Return whether the price of `provider/model` is known; LiteLLM is imported for it."""
    name = parse_model_name(model)
    try:
        info = load().get_model_info(name.model, custom_llm_provider=name.provider)
    except Exception:  # noqa: BLE001 - LiteLLM raises plain exceptions for what it does not know
        return False
    return bool(info.get("input_cost_per_token") or info.get("output_cost_per_token"))
