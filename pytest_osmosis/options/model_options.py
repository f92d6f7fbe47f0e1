"""The options of a model -> the model to evaluate."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from osmosis_ai.models.headers import header_mistake
from osmosis_ai.secret import Secret

from ..spec import USUAL_KEY, ModelSpec
from .reader import OptionReader


def model(given: OptionReader) -> ModelSpec:
    """Return the model to evaluate; raise `pytest.UsageError`."""
    base_url, query, api_key = given("base-url"), None, given("api-key")
    if base_url is not None:
        base_url, query = checked_base_url(given, base_url)
    chosen = ModelSpec(
        model=next(iter(given("model")), ""),
        base_url=base_url,
        query=query,
        headers=_headers(given),
        api_key_env=given("api-key-env") or (USUAL_KEY if base_url else None),
        api_key_env_named=given.raw("api-key-env") is not None,
        api_key=Secret(api_key, name=given.spelled("api-key")) if api_key else None,
        sampling={
            name: value for name, value in given.fields("sampling").items() if value is not None
        },
        **{name: value for name, value in given.fields("model").items() if value is not None},
    )
    return with_price(given, chosen)


def with_price(given: OptionReader, model: ModelSpec) -> ModelSpec:
    """Return the model with the price that is given."""
    return replace(model, price_per_mtok=given("price-per-mtok"))


def checked_base_url(
    given: OptionReader, text: str, option: str = "base-url"
) -> tuple[str, Secret | None]:
    """Return the URL in its usual form, and its query; raise `pytest.UsageError` for no URL."""
    from osmosis_ai.models.transport.base_url import split_query

    try:
        return split_query(text)
    except ValueError as error:
        raise pytest.UsageError(f"{given.spelled(option)}: {error}") from None


def _headers(given: OptionReader) -> dict[str, Secret]:
    """Return the headers of each call; a variable's value is read now."""
    found: dict[str, Secret] = {}
    for text in given("header"):
        name, _, value = text.partition("=")
        name = name.strip()
        if name.lower() in map(str.lower, found):
            raise pytest.UsageError(f"{given.spelled('header')} {name} is given twice")
        found[name] = _header_value(given, name, value)
    return found


def _header_value(given: OptionReader, name: str, value: str) -> Secret:
    if not value.startswith("$"):
        return Secret(value)
    variable = value[1:].removeprefix("{").removesuffix("}")
    text = os.environ.get(variable, "")
    problem = f"{variable} is not set" if not text else header_mistake(name, text, of_agent=False)
    if problem is not None:
        raise pytest.UsageError(f"{given.spelled('header')} {name}={value}: {problem}")
    return Secret(text, f"${variable}")
