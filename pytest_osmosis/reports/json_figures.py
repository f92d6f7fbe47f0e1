"""What every part of the JSON report is made of: figures, counts, and the models' base."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

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


def interval_of(figure: Figure | None) -> Interval | None:
    """Return the interval of a figure, if it has one."""
    if figure is None or figure.low is None or figure.high is None:
        return None
    return Interval(figure.low, figure.high, figure.method or "", figure.confidence or 0.0)
