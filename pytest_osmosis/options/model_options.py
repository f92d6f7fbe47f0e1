"""The options of models -> the model to evaluate, and the one it is compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from osmosis_ai.secret import Secret

from ..spec import EvalSpec, ModelSpec
from .reader import OptionReader

PROVIDER = "provider"
"""As a base URL: none, because the model's name says where it is."""
_NOT_IN_NAMES = re.compile(r"[^\w./@-]+")
"""What a model's name leaves out as part of a node id."""


def model(given: OptionReader) -> ModelSpec:
    """Return the model to evaluate; raise `pytest.UsageError`."""
    base_url, api_key = given("base-url"), given("api-key")
    if base_url is not None:
        base_url = _checked_base_url(given, base_url)
    sampling = {
        name: given(name.replace("_", "-")) for name in ("temperature", "max_tokens", "top_p")
    }
    chosen = ModelSpec(
        model=given("model") or "",
        base_url=base_url,
        api_key_env=given("api-key-env") or ("OPENAI_API_KEY" if base_url else None),
        api_key_env_named=given.raw("api-key-env") is not None,
        api_key=Secret(api_key, name=given.spelled("api-key")) if api_key else None,
        sampling={name: value for name, value in sampling.items() if value is not None},
        seed=given("seed"),
    )
    return _with_price(given, chosen, "price-per-mtok")


def with_baseline_model(given: OptionReader, evals: Iterable[EvalSpec]) -> Iterator[EvalSpec]:
    """Return each evaluation, and the same with the baseline model; labels then name the models."""
    name = given("baseline-model")
    for spec in evals:
        if name is None:
            yield spec
            continue
        other = _other_model(given, spec.model, name)
        other = _with_price(given, other, "baseline-price-per-mtok")
        labels = [_label(spec.model), _label(other)]
        if labels[0] == labels[1]:
            labels[1] += "@baseline"
        yield replace(spec, label=labels[0])
        yield replace(
            spec,
            name=f"{spec.name} ({name})",
            model=other,
            label=labels[1],
            baseline_of=spec.name,
        )


def _other_model(given: OptionReader, model: ModelSpec, name: str) -> ModelSpec:
    """Return the baseline model: at the model's own endpoint unless another is given."""
    url, variable = given("baseline-base-url"), given("baseline-api-key-env")
    if url is None:
        other = replace(model, model=name)
        if not variable:
            return other
        return replace(other, api_key_env=variable, api_key_env_named=True, api_key=None)
    elsewhere = None if url == PROVIDER else _checked_base_url(given, url, "baseline-base-url")
    return replace(
        model,
        model=name,
        base_url=elsewhere,
        api_key_env=variable or ("OPENAI_API_KEY" if elsewhere else None),
        api_key_env_named=bool(variable),
        api_key=None,
    )


def _with_price(given: OptionReader, model: ModelSpec, option: str) -> ModelSpec:
    """Return the model with the price that is given; what a budget counts of ours is free."""
    price = given(option)
    if price is None and model.persona is not None and given("max-cost"):
        price = (0.0, 0.0)
    return replace(model, price_per_mtok=price)


def _checked_base_url(given: OptionReader, text: str, option: str = "base-url") -> str:
    """Return the URL in its usual form; raise `pytest.UsageError` when it is not one."""
    from osmosis_ai.models.transport.base_url import normalise_base_url

    try:
        return str(normalise_base_url(text))
    except ValueError as error:
        raise pytest.UsageError(f"{given.spelled(option)}: {error}") from None


def _label(model: ModelSpec) -> str:
    return _NOT_IN_NAMES.sub("-", model.model)
