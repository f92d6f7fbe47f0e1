"""Options to what decides: gates, confidence, and what the session is compared with.

Gates are parsed here, so that a mistake in one is a usage error before anything is loaded; whether
they suit the data and the eval functions is checked when those are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from .escaping import escape_control_chars
from .spec import Deciding, EvalSpec, ModelSpec

if TYPE_CHECKING:
    from .options import Given

LAST = "last"
"""As a baseline: the suite's previous complete evaluation."""
PROVIDER = "provider"
"""As a base URL: none, the model's name says where it is."""
_UNFIT = re.compile(r"[^\w./@-]+")


def deciding(given: Given) -> Deciding:
    """What the options say; `pytest.UsageError` for what cannot be."""
    gates = tuple(_gates(given))
    if given("stop-when-decided") and not gates:
        raise pytest.UsageError(
            f"{given.spelled('stop-when-decided')} needs a gate that can be decided: "
            "give --osmosis-gate too"
        )
    baseline, model = given("baseline"), given("baseline-model")
    if baseline and model:
        raise pytest.UsageError(
            f"{given.spelled('baseline')} and {given.spelled('baseline-model')} are two "
            "baselines: give one of them"
        )
    for name in ("baseline-base-url", "baseline-api-key-env"):
        if given(name) and not model:
            raise pytest.UsageError(f"{given.spelled(name)} needs --osmosis-baseline-model too")
    return Deciding(
        gates=gates,
        confidence=given("confidence"),
        stop_when_decided=given("stop-when-decided"),
        baseline=given.path("baseline", baseline) if baseline and baseline != LAST else None,
        last=baseline == LAST,
        baseline_model=model,
    )


def _gates(given: Given) -> Iterator[str]:
    texts = given("gate")
    if not texts:
        return
    from .gates.parser import GateError, parse_gate

    seen: set[str] = set()
    for text in texts:
        try:
            gate = parse_gate(text)
        except GateError as error:
            raise pytest.UsageError(told(error, given.spelled("gate"))) from None
        if gate.text in seen:
            raise pytest.UsageError(
                f"{given.spelled('gate')} {gate.text!r} is given twice; give it once"
            )
        seen.add(gate.text)
        yield gate.text


def told(error: ValueError, option: str = "--osmosis-gate") -> str:
    """A gate's mistake under the name of the option."""

    return f"{option} {escape_control_chars(str(error)).removeprefix('gate ')}"


def with_baseline_model(given: Given, evals: Iterable[EvalSpec]) -> Iterator[EvalSpec]:
    """Each evaluation, and the same with the baseline model; run names then tell the models."""
    name = given("baseline-model")
    for spec in evals:
        if name is None:
            yield spec
            continue
        other = _other_model(given, spec.model, name)
        labels = [label(spec.model), label(other)]
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


def _other_model(given: Given, model: ModelSpec, name: str) -> ModelSpec:
    """Asked where the model under test is, unless something else is said."""
    from .build_spec import checked_base_url

    url, variable = given("baseline-base-url"), given("baseline-api-key-env")
    if url is None:
        return replace(
            model,
            model=name,
            api_key_env=variable or model.api_key_env,
            api_key_env_named=bool(variable) or model.api_key_env_named,
            api_key=None if variable else model.api_key,
        )
    elsewhere = None if url == PROVIDER else checked_base_url(given, url, "baseline-base-url")
    return replace(
        model,
        model=name,
        base_url=elsewhere,
        api_key_env=variable or ("OPENAI_API_KEY" if elsewhere else None),
        api_key_env_named=bool(variable),
        api_key=None,
    )


def label(model: ModelSpec) -> str:
    """The model's name as part of a node id."""
    return _UNFIT.sub("-", model.model)
