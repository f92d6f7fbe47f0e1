"""The options of models -> the model to evaluate, and the one it is compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from osmosis_ai.secret import Secret

from ..spec import USUAL_KEY, EvalSpec, ModelSpec
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
    chosen = ModelSpec(
        model=given("model") or "",
        base_url=base_url,
        api_key_env=given("api-key-env") or (USUAL_KEY if base_url else None),
        api_key_env_named=given.raw("api-key-env") is not None,
        api_key=Secret(api_key, name=given.spelled("api-key")) if api_key else None,
        sampling={
            name: value for name, value in given.fields("sampling").items() if value is not None
        },
        **given.fields("model"),
        replay=given.raw("replay"),
        needs_key=given("replay") is None or given("replay-missing") == "ask",
    )
    if _usual_key_is_the_baselines(given, chosen):
        chosen = replace(chosen, api_key_env=None)
    return _with_price(given, chosen)


def _usual_key_is_the_baselines(given: OptionReader, model: ModelSpec) -> bool:
    """Return whether the key that a base URL gets unasked is that of the baseline's provider."""
    name = given("baseline-model")
    if name is None or model.base_url is None or model.api_key_env_named:
        return False
    other = _other_model(given, model, name)
    if other.base_url is not None or other.persona is not None or other.api_key_env_named:
        return False
    from osmosis_ai.providers import host_of, key_variables

    provider = _place(other)
    hosts = {host_of(provider), f"api.{provider}.com"}
    return USUAL_KEY in key_variables(provider) and urlsplit(model.base_url).netloc not in hosts


def with_baseline_model(given: OptionReader, evals: Iterable[EvalSpec]) -> Iterator[EvalSpec]:
    """Return each evaluation, and the same with the baseline model; labels then name the models."""
    name = given("baseline-model")
    for spec in evals:
        if name is None:
            yield spec
            continue
        other = _other_model(given, spec.model, name)
        other = _with_price(given, other)
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
    """Return the baseline model; it has the model's key where it is asked at the same place."""
    base_url = _baseline_url(given, model, name)
    other = replace(model, model=name, base_url=base_url, is_baseline=True)
    if variable := given("baseline-api-key-env"):
        return replace(other, api_key_env=variable, api_key_env_named=True, api_key=None)
    if _place(other) == _place(model):
        return other
    usual = USUAL_KEY if base_url else None
    return replace(other, api_key_env=usual, api_key_env_named=False, api_key=None)


def _baseline_url(given: OptionReader, model: ModelSpec, name: str) -> str | None:
    """Return where the baseline model is asked: None at its provider, which its name says.

    Where the model's own name begins with a provider's, as at a gateway, both are the endpoint's.
    """
    from osmosis_ai.providers import names_provider

    url = given("baseline-base-url")
    if url is not None:
        return None if url == PROVIDER else _checked_base_url(given, url, "baseline-base-url")
    is_embedded = replace(model, model=name, base_url=None).persona is not None
    if is_embedded or (names_provider(name) and not names_provider(model.model)):
        return None
    return model.base_url


def _place(model: ModelSpec) -> str:
    """Return what a key belongs to: a base URL, else a provider."""
    from osmosis_ai.providers import parse_model_name

    if model.base_url is not None:
        return model.base_url
    try:
        return parse_model_name(model.model).provider
    except ValueError:  # what needs the name says so
        return ""


def _with_price(given: OptionReader, model: ModelSpec) -> ModelSpec:
    """Return the model with the price that is given; what a budget counts of ours is free."""
    price = given("price-per-mtok")
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
