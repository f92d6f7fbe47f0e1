"""Gates on any number that a run has, summed up over runs: `p95(duration_s) <= 20`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ...analysis.gates.names import CHECKS, FAMILIES, Gate
from ...options.table import FeatureEntry

if TYPE_CHECKING:
    from ...analysis.metrics import Definition
    from ...run_result import SuiteInfo


def _definitions() -> Iterable[Definition]:
    from .definitions import definitions

    return definitions()


def _check(gate: Gate, suites: Collection[SuiteInfo], about: Collection[SuiteInfo]) -> None:
    """Refuse what is counted once for suites that share rollouts: of the others it would be 0."""
    number = gate.metric.kind.rstrip(")").partition("(")[2]
    if number not in ("tokens", "cost_usd", "llm_calls", "turns"):
        return
    leaders = [each.shares for each in about]
    for each in about:
        if each.shares and leaders.count(each.shares) > 1:
            from ...analysis.gates.parser import GateError

            raise GateError(
                gate.text,
                f"{each.name} shares its rollouts with another test, and {number} of each counts "
                f"once for both: run one of them alone",
            )


def _register() -> None:
    FAMILIES.append(_definitions)
    CHECKS.append(_check)


NUMBERS = FeatureEntry("numbers", register=_register)
