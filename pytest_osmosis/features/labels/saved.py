"""What people said of runs in the JSON report: its pydantic models, and how it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, RootModel

from ...analysis.statistics.kappa import Agreement
from ...reports.json_figures import ReportModel, Whole
from ...suite_results import SuiteResult
from ...verdicts import Interval

if TYPE_CHECKING:
    from .people import Judged, People


class SavedLimits(ReportModel):
    """A confidence interval."""

    low: float
    high: float
    method: str
    confidence: float


class SavedMark(ReportModel):
    """What a person said of a run."""

    row_index: Whole
    run_index: Whole
    is_right: bool


class SavedMean(ReportModel):
    """The share of rows that people would call right, by their marks and the judge's scores."""

    value: float
    interval: SavedLimits | None = Field(description="null: too few marks")
    weight: float = Field(description="how much the judge counts; 0: the marks alone")


class SavedAgreement(ReportModel):
    """Cohen's kappa of the verdicts of an eval function and of people."""

    observed: float
    kappa: float | None
    interval: SavedLimits | None


class JudgedFunction(ReportModel):
    """An eval function beside people."""

    marks: list[SavedMark] = Field(description="those that count")
    rows: Whole = Field(description="rows that have one")
    other_rubric: Whole = Field(description="marks left out, as they were made by another rubric")
    corrected: SavedMean | None
    agreement: SavedAgreement | None


class SavedPeople(RootModel[dict[str, JudgedFunction]]):
    """What people said of runs, by eval function."""


Model = SavedPeople


def read(saved: SavedPeople, suite: SuiteResult) -> People:
    """Return what a report holds."""
    from .people import People  # brings numpy

    return People(tuple(_judged(name, each) for name, each in saved.root.items()))


def _judged(name: str, saved: JudgedFunction) -> Judged:
    from ...analysis.statistics.prediction_powered import CorrectedMean
    from .people import Judged

    mean, agreement = saved.corrected, saved.agreement
    return Judged(
        name,
        tuple((each.row_index, each.run_index, each.is_right) for each in saved.marks),
        saved.rows,
        saved.other_rubric,
        None if mean is None else CorrectedMean(mean.value, _interval(mean.interval), mean.weight),
        None
        if agreement is None
        else Agreement(agreement.observed, agreement.kappa, _interval(agreement.interval)),
    )


def _interval(saved: SavedLimits | None) -> Interval | None:
    if saved is None:
        return None
    return Interval(saved.low, saved.high, saved.method, saved.confidence)
