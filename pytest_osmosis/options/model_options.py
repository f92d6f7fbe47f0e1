"""The options of models and agents -> the candidates, and what they are compared with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, product
from urllib.parse import urlsplit

import pytest

from osmosis_ai.models.headers import header_mistake, is_secret, secrets_in
from osmosis_ai.secret import Secret

from ..spec import USUAL_KEY, EvalSpec, ModelSpec
from .reader import OptionReader

PROVIDER = "provider"
"""As a base URL: none, because the model's name says where it is."""
_NOT_IN_NAMES = re.compile(r"[^\w./@-]+")
"""What a name leaves out as part of a node id."""
_ATTRIBUTE = re.compile(r"(?!cmd:|mcp:).*:\w+")


def model(given: OptionReader) -> ModelSpec:
    """Return the model to evaluate; raise `pytest.UsageError`."""
    base_url, query, api_key = given("base-url"), None, given("api-key")
    if base_url is not None:
        base_url, query = _checked_base_url(given, base_url)
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


def candidates(given: OptionReader, evals: Iterable[EvalSpec]) -> Iterator[EvalSpec]:
    """Return each evaluation with every agent and model; labels then name what differs."""
    agents, names = tuple(given.distinct("agent")) or ("",), tuple(given.distinct("model"))
    baseline = given("baseline-model")
    if baseline and max(len(agents), len(names)) > 1:
        raise pytest.UsageError(
            "--osmosis-baseline-model goes with one model and one agent: the first of several "
            f"is the baseline; give --osmosis-model {baseline} before the others"
        )
    for spec in evals:
        where = spec.model.base_url, spec.model.query
        others = [_asked_like(spec.model, name, *where) for name in names[1:]]
        others += [_other_model(given, spec.model, baseline)] if baseline else []
        models = [spec.model, *(_with_price(given, other) for other in others)]
        parts = [_labels(map(_agent_label, agents)), _labels(_label(each.model) for each in models)]
        labels = [",".join(filter(None, pair)) for pair in product(*parts)]
        for label, (agent, model) in zip(labels, product(agents, models), strict=True):
            first = None if label == labels[0] else spec.name
            yield replace(
                spec,
                name=f"{spec.name} ({label})" if first else spec.name,
                agent=agent,
                model=model,
                label=label,
                candidate_of=None if model.is_baseline else first,
                baseline_of=first if model.is_baseline else None,
            )


def _other_model(given: OptionReader, model: ModelSpec, name: str) -> ModelSpec:
    """Return the baseline model."""
    other = _asked_like(model, name, *_baseline_url(given, model, name))
    other = replace(other, is_baseline=True)
    if variable := given("baseline-api-key-env"):
        return replace(other, api_key_env=variable, api_key_env_named=True, api_key=None)
    return other


def _asked_like(
    model: ModelSpec, name: str, base_url: str | None, query: Secret | None
) -> ModelSpec:
    """Return another model; the key, and secrets that go with calls, stay at the model's place."""
    other = replace(model, model=name, base_url=base_url, query=query)
    if _place(other) == _place(model):
        return other
    usual = USUAL_KEY if base_url else None
    plain = {name: value for name, value in model.headers.items() if not is_secret(name, value)}
    body = {k: v for k, v in model.extra_body.items() if not any(secrets_in({k: v}))}
    other = replace(other, api_key_env=usual, api_key_env_named=False, api_key=None)
    return replace(other, headers=plain, extra_body=body)


def _baseline_url(
    given: OptionReader, model: ModelSpec, name: str
) -> tuple[str | None, Secret | None]:
    """Return where the baseline model is asked: None at its provider, which its name says.

    Where the model's own name begins with a provider's, as at a gateway, both are the endpoint's.
    """
    from osmosis_ai.providers import names_provider

    url = given("baseline-base-url")
    if url is not None:
        if url == PROVIDER:
            return None, None
        return _checked_base_url(given, url, "baseline-base-url")
    is_embedded = replace(model, model=name, base_url=None).persona is not None
    if is_embedded or (names_provider(name) and not names_provider(model.model)):
        return None, None
    return model.base_url, model.query


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
        price = 0.0, 0.0
    return replace(model, price_per_mtok=price)


def _checked_base_url(
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


def _label(model: str) -> str:
    return _NOT_IN_NAMES.sub("-", model)


def _agent_label(agent: str) -> str:
    """Return the attribute of `module:attribute`, a command in full."""
    return _label(agent.rpartition(":")[2] if _ATTRIBUTE.fullmatch(agent) else agent)


def _labels(labels: Iterable[str]) -> Sequence[str]:
    """Return them told apart by numbers; nothing of one that is alone."""
    found: list[str] = []
    for label in labels:
        numbered = (f"{label}@{number}" for number in count(len(found) + 1))
        found.append(next(each for each in chain([label], numbered) if each not in found))
    return found if len(found) > 1 else [""]
