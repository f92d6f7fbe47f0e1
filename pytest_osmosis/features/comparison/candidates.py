"""Candidates and the baseline model: which there are, how each is asked, what gates call them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, product
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from osmosis_ai.models.headers import is_secret, secrets_in
from osmosis_ai.secret import Secret

from ...analysis.gates.names import CONDITIONS, Gate
from ...analysis.gates.parser import GateError
from ...options.model_options import checked_base_url, with_price
from ...spec import USUAL_KEY, EvalSpec, ModelSpec, SessionSpec

if TYPE_CHECKING:
    from ...options.reader import OptionReader
    from ...run_result import SuiteInfo

BASELINE_MODEL = "--osmosis-baseline-model"
PROVIDER = "provider"
"""As a base URL: none, because the model's name says where it is."""
_NOT_IN_NAMES = re.compile(r"[^\w./@-]+")
"""What a name leaves out as part of a node id."""
_ATTRIBUTE = re.compile(r"(?!cmd:|mcp:).*:\w+")


def planned(spec: SessionSpec, given: OptionReader, baseline: str | None) -> SessionSpec:
    """Return the session with every agent and model on each data file; labels name what differs.

    `baseline` is the baseline model. Raises `pytest.UsageError`.
    """
    agents, names = tuple(given.distinct("agent")) or ("",), tuple(given.distinct("model"))
    if max(len(agents), len(names)) > 1:
        if baseline:
            raise pytest.UsageError(
                "--osmosis-baseline-model goes with one model and one agent: the first of several "
                f"is the baseline; give --osmosis-model {baseline} before the others"
            )
    elif not baseline:
        return spec
    if baseline and spec.defaults is not None:
        model = _without_usual_key(given, spec.defaults.model, baseline)
        spec = replace(
            spec,
            defaults=replace(spec.defaults, model=model),
            evals=tuple(replace(each, model=model) for each in spec.evals),
        )
    several = (_candidates(each, given, agents, names, baseline) for each in spec.evals)
    return replace(spec, evals=tuple(chain.from_iterable(several)))


def _candidates(
    spec: EvalSpec,
    given: OptionReader,
    agents: Sequence[str],
    names: Sequence[str],
    baseline: str | None,
) -> Iterator[EvalSpec]:
    where = spec.model.base_url, spec.model.query
    others = [_asked_like(spec.model, name, *where) for name in names[1:]]
    others += [_other_model(given, spec.model, baseline)] if baseline else []
    models = [spec.model, *(with_price(given, other) for other in others)]
    parts = [_labels(map(_agent_label, agents)), _labels(_label(each.model) for each in models)]
    labels = [",".join(filter(None, pair)) for pair in product(*parts)]
    for label, (agent, model) in zip(labels, product(agents, models), strict=True):
        first = None if label == labels[0] else spec.name
        is_baseline = model.option == BASELINE_MODEL
        yield replace(
            spec,
            name=f"{spec.name} ({label})" if first else spec.name,
            agent=agent or spec.agent,
            model=replace(model, role="candidate") if first and not is_baseline else model,
            label=label,
            leader=None if is_baseline else first,
            companion_of=first if is_baseline else None,
        )


def _without_usual_key(given: OptionReader, model: ModelSpec, baseline: str) -> ModelSpec:
    """Return the model; without the key that a base URL gets unasked, if that is the baseline's."""
    if model.base_url is None or model.api_key_env_named:
        return model
    other = _other_model(given, model, baseline)
    if other.base_url is not None or other.persona is not None or other.api_key_env_named:
        return model
    from osmosis_ai.providers import host_of, key_variables

    provider = _place(other)
    hosts = {host_of(provider), f"api.{provider}.com"}
    if USUAL_KEY not in key_variables(provider) or urlsplit(model.base_url).netloc in hosts:
        return model
    return replace(model, api_key_env=None, no_key=f"{USUAL_KEY} is the baseline model's")


def _other_model(given: OptionReader, model: ModelSpec, name: str) -> ModelSpec:
    """Return the baseline model."""
    from osmosis_ai.providers import names_provider

    other = _asked_like(model, name, *_baseline_url(given, model, name))
    remark = ""
    if other.base_url is not None and names_provider(name):
        remark = " (its provider: --osmosis-baseline-base-url provider)"
    other = replace(other, option=BASELINE_MODEL, role="baseline", remark=remark)
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
        return checked_base_url(given, url, "baseline-base-url")
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


def check_candidate(gate: Gate, infos: Collection[SuiteInfo], about: Collection[SuiteInfo]) -> None:
    """Raise GateError for a gate about no candidate, or about agents of one short name."""
    agents, named = dict.fromkeys(info.agent for info in about), dict(gate.only).get("agent")
    if named is not None and len(agents) > 1:
        problem = f"several agents are called {named!r}: {', '.join(agents)}; name one so"
        raise GateError(gate.text, problem)
    if about:
        return
    there = dict.fromkeys(
        f"{name}={value}"
        for info in infos
        for name, values_of in CONDITIONS.items()
        for value in values_of(info)
    )
    first = "; the first candidate is what others are compared with" if gate.minus else ""
    problem = f"there is no such candidate, only {', '.join(there)}{first}"
    raise GateError(gate.text, problem)
