"""The options of gates and baselines -> what decides the evaluation."""

from __future__ import annotations

import pytest

from ..escaping import escape_control_chars
from ..spec import Deciding
from .reader import OptionReader

LAST = "last"
"""As a baseline: the suite's previous complete evaluation."""


def deciding(given: OptionReader) -> Deciding:
    """Return gates, confidence and baseline."""
    gates = tuple(given.distinct("gate", canonical=lambda text: _canonical(given, text)))
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
    for name in ("baseline-base-url", "baseline-api-key-env", "baseline-price-per-mtok"):
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


def _canonical(given: OptionReader, text: str) -> str:
    from ..analysis.gates.parser import GateError, parse_gate

    try:
        return parse_gate(text).text
    except GateError as error:
        raise pytest.UsageError(gate_mistake(error, given.spelled("gate"))) from None


def gate_mistake(error: ValueError, option: str = "--osmosis-gate") -> str:
    """Return what is wrong with a gate, under the name of the option."""
    return f"{option} {escape_control_chars(str(error)).removeprefix('gate ')}"
