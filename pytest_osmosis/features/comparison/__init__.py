"""Baselines, candidates, and what differs between them: the whole of comparisons."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...analysis.gates.names import CHECKS, CONDITIONS, DIFFERENCES, Gate
from ...options.table import BY_NAME, FeatureEntry, Option, OptionSet
from ...reports.formats import ConfigField, SectionFormat

if TYPE_CHECKING:
    from ...analysis.score_table import ScoreTable
    from ...options.reader import OptionReader
    from ...run_result import SuiteInfo
    from ...verdicts import GateResult

LAST = "last"
"""As a baseline: the suite's previous complete evaluation."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the suites of a session are compared with, besides the first of several candidates."""

    report: Path | None = None
    """The report of an earlier session."""
    last: bool = False
    """Or each suite's previous complete evaluation."""
    model: str | None = None
    """Or this model's runs of the same rows, in this session."""

    @property
    def has_baseline(self) -> bool:
        """Whether every suite is compared with something."""
        return self != Asked()


def _has_several(given: OptionReader) -> bool:
    """Return whether several evaluations run the same rows."""
    several = any(len(given.distinct(name)) > 1 for name in ("agent", "model"))
    return several or bool(given("baseline-model"))


def _lacking(given: OptionReader, label: str) -> Iterator[str]:
    if not _has_several(given):
        yield f"{BY_NAME['model'].flag_name} or {BY_NAME['agent'].flag_name} of each candidate"


def _read(given: OptionReader) -> Asked | None:
    baseline = given("baseline")
    if not (baseline or _has_several(given)):
        return None
    return Asked(
        report=given.path("baseline", baseline) if baseline and baseline != LAST else None,
        last=baseline == LAST,
        model=given("baseline-model"),
    )


def _verdict(
    gate: Gate, table: ScoreTable, baseline: ScoreTable, confidence: float | None
) -> GateResult:
    if gate.metric.definition.measure is not None:
        from .numbers import against as of_numbers

        return of_numbers(gate, table, baseline, confidence)
    from .gates import against

    return against(gate, table, baseline, confidence)


def _check(gate: Gate, suites: Collection[SuiteInfo], about: Collection[SuiteInfo]) -> None:
    if gate.only or not about:
        from .candidates import check_candidate

        check_candidate(gate, suites, about)


def _register() -> None:
    CONDITIONS["model"] = lambda info: [info.model]
    CONDITIONS["agent"] = lambda info: dict.fromkeys([info.agent, info.agent.rpartition(":")[2]])
    DIFFERENCES["baseline"] = _verdict
    CHECKS.append(_check)


_BASELINE = (
    Option(
        "baseline",
        "compare with an earlier session: its JSON report, or 'last' for the suite's previous "
        "complete evaluation",
        metavar="FILE|last",
        excludes=("baseline-model",),
    ),
    Option(
        "baseline-model",
        "run the same rows with this model too, and compare",
        metavar="NAME",
        reaches="model",
    ),
    Option(
        "baseline-base-url",
        "base URL of --osmosis-baseline-model (default: its provider where the name is "
        "provider/model, else --osmosis-base-url); 'provider' for LiteLLM's provider/model",
        metavar="URL",
        needs=("baseline-model",),
    ),
    Option(
        "baseline-api-key-env",
        "variable that holds the key of --osmosis-baseline-model (default: the model's where both "
        "are asked at one endpoint, else as of --osmosis-api-key-env)",
        metavar="NAME",
        needs=("baseline-model",),
    ),
)

COMPARISON = FeatureEntry(
    "comparison",
    [OptionSet("the baseline", _BASELINE, after="gates")],
    read=_read,
    feature="ComparisonFeature",
    lacking=_lacking,
    section=SectionFormat(
        "baseline",
        "features.comparison.saved",
        "features.comparison.overview",
        companions=("baseline_models", "baseline_of"),
    ),
    config_fields=[
        ConfigField(
            "candidate_of",
            "leader",
            str | None,
            None,
            "the first candidate's evaluation, which it is compared with",
        )
    ],
    register=_register,
)
