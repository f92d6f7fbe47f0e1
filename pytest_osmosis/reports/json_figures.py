"""What every part of the JSON report is made of: figures, counts, and the models' base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, create_model

from ..analysis.metrics import METRICS
from ..analysis.statistics.estimators import REPORTED_KS
from ..verdicts import Interval

MOST = 2**53
"""Of anything that is counted: up to here a float is exact."""

Whole = Annotated[int, Field(ge=0, le=MOST)]
Milliseconds = Annotated[Whole, BeforeValidator(lambda ms: round(ms) if type(ms) is float else ms)]
"""Earlier reports had fractions."""


class ReportModel(BaseModel):
    """A part of the report."""

    model_config = ConfigDict(
        strict=True, allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class Figure(ReportModel):
    """A figure, and its confidence interval where that is defined."""

    value: float
    low: float | None = None
    high: float | None = None
    method: str | None = None
    confidence: float | None = None


def _by_k() -> dict[str, JsonValue]:
    """Return the fields of the metrics that take a k, as patterns in JSON Schema."""
    ks = ", ".join(map(str, REPORTED_KS))
    return {
        f"^{each.field.format(k='[0-9]+')}$": {
            "anyOf": [{"type": "number"}, {"type": "null"}],
            "description": f"{each.name}k, for k in {ks} and n, as far as k <= n",
        }
        for each in METRICS.values()
        if each.in_summary and each.takes_k
    }


_CORE = "mean", "std", "min", "max"
"""Figures that every report has; those that came later have a default, so that it can be read."""


class CoreFunction(ReportModel):
    """One eval function over all runs; a missing score counts as 0.0.

    Where no run has a score its figures are null, and there are no intervals. For n > 1 there are
    further fields, by patterns: the metrics of the table that take a k; null where every row has
    fewer runs.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra={"patternProperties": _by_k()})

    scored: Whole = 0
    missing: Whole = 0
    recorded: bool = Field(
        default=False,
        description="tests have recorded it, in some runs; its figures are over those",
    )
    threshold: float | None = Field(
        default=None,
        description="of an eval function that has its own; of a recorded score that has one, and "
        "with it the metrics that count passes",
    )
    intervals: dict[str, Figure] = Field(
        default_factory=dict, description="of the metrics that have one, by the names of fields"
    )


if TYPE_CHECKING:
    EvalFnSummary = CoreFunction
else:
    EvalFnSummary = create_model(
        "EvalFnSummary",
        __base__=CoreFunction,
        __doc__=CoreFunction.__doc__,
        **{
            each.field: (float | None, ... if each.field in _CORE else None)
            for each in METRICS.values()
            if each.in_summary and not each.takes_k
        },
    )


def interval_of(figure: Figure | None) -> Interval | None:
    """Return the interval of a figure, if it has one."""
    if figure is None or figure.low is None or figure.high is None:
        return None
    return Interval(figure.low, figure.high, figure.method or "", figure.confidence or 0.0)
