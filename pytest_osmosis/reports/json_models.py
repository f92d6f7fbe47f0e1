"""The JSON report's one definition, as pydantic models: its schema, and what a report is read by.

Fields may be added; none of the core's is renamed or removed. So a report of a later version is
read without the fields that it has more, and of an earlier one only the core has to be there: what
stands beside it has a default. `json_writer` writes every field, without these models. The figures
of an eval function are those of `METRICS`; a further field of a run is one of `RunResult`, in
`run_result.py`, and comes here and into the file by itself. A number that is not defined, or has no
bound, is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model

from ..run_result import RUN_FIELDS, RunResult
from ..verdicts import EvalVerdict, GateOutcome
from .formats import CONFIG_FIELDS, SECTIONS, companion_fields
from .json_figures import EvalFnSummary, Figure, Milliseconds, ReportModel, Whole
from .json_writer import SCHEMA_VERSION

MOST_RUNS = 1_000_000
"""Runs of one row; a report that claims more is damaged."""


class GateReport(ReportModel):
    """A gate and its verdict."""

    gate: str = Field(description="as given")
    suite: str
    outcome: GateOutcome
    metric: str
    eval_fn: str | None
    operator: str
    threshold: float
    figure: Figure | None = Field(description="unknown runs counted as 0.0; null: not measured")
    low: float | None = Field(description="the lower bound that the gate was held at")
    high: float | None = Field(description="the higher one; null: there is none")
    rows: Whole
    unknown: Whole = Field(description="runs whose value is not known: those to repeat")
    more_rows: Whole | None = Field(description="about how many more rows would settle it")
    sentence: str
    confidence: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="that the bounds were widened with, as it was given; 0: none",
    )
    sensitivity: float | None = Field(
        default=None,
        description="the smallest true fall (or rise) that would fail a gate on a difference, "
        "4 times of 5; null: undefined, or not what decides",
    )
    detail: str = Field(
        default="",
        description="which rows are below, for a gate on each row; what a difference shows",
    )
    is_measure: bool | None = Field(
        default=None, description="the metric is of the runs themselves, such as tokens"
    )
    reason: str | None = Field(default=None, description="why there is no figure")
    clusters: Whole | None = Field(
        default=None, description="that its rows are in; null: rows are independent"
    )
    group: str | None = Field(
        default=None,
        description="the value of a column that is the worst, of a gate on each value: figure, "
        "bounds and rows are of its rows",
    )


class CoreConfig(ReportModel):
    """What was asked."""

    model: str
    n_runs: int = Field(ge=1, le=MOST_RUNS)
    pass_threshold: float
    eval_fns: list[str]
    agent: str = ""
    data: str = ""
    data_sha256: str = ""
    name: str = Field(default="", description="the evaluation's, as node ids begin")
    endpoint: str = ""
    label: str = Field(default="", description="what names it in node ids")
    priced: bool = Field(default=False, description="the model has a price, known or not")
    settings: dict[str, Any] = Field(default_factory=dict)


def _config_fields() -> dict[str, Any]:
    """Return the fields of what was asked that features bring."""
    return {
        each.name: (each.kind, Field(default=each.default, description=each.description))
        for each in CONFIG_FIELDS
    }


if TYPE_CHECKING:
    Config = CoreConfig
else:
    Config = create_model(
        "Config", __base__=CoreConfig, __doc__=CoreConfig.__doc__, **_config_fields()
    )


class Repeated(ReportModel):
    """What runs have used that were run again, or are to be: it is in no other figure."""

    runs: Whole = 0
    tokens: Whole | None = 0
    unknown_tokens: Whole = 0
    cost_usd: float | None = None
    unknown_cost: Whole = 0


class Summary(ReportModel):
    """All runs taken together."""

    total_rows: Whole
    total_runs: Whole
    eval_fns: dict[str, EvalFnSummary]
    total_tokens: Whole | None
    total_duration_ms: Milliseconds
    selected: Whole = 0
    total: Whole = 0
    complete: bool = False
    incomplete_rows: Whole = 0
    mixed_rows: Whole | None = Field(
        None, description="of which some runs pass and others fail; null: of an earlier version"
    )
    clusters: Whole | None = Field(None, description="of rows; null: rows are independent")
    errors: dict[str, Whole] = Field(default_factory=dict)
    finish_reasons: dict[str, Whole] = Field(default_factory=dict)
    answer_kinds: dict[str, Whole] = Field(default_factory=dict)
    notes: dict[str, Whole] = Field(default_factory=dict)
    cached_tokens: Whole | None = None
    reasoning_tokens: Whole | None = None
    unknown_tokens: Whole = 0
    retries: Whole = 0
    clamped: Whole = 0
    cost_usd: float | None = None
    halted: str | None = None
    interrupted: str | None = None
    verdict: EvalVerdict | None = Field(
        None, description="what it came to, as the exit status has it"
    )
    cached: Whole = 0
    unknown_cost: Whole = 0
    repeated: Repeated = Field(default_factory=Repeated)


class CoreRun(ReportModel):
    """One run: what every report says of it."""

    run_index: Whole
    success: bool
    scores: dict[str, float]
    reasons: dict[str, str] = Field(
        default_factory=dict, description="what was said of a score, by eval function"
    )
    eval_errors: dict[str, str] = Field(
        default_factory=dict, description="why there is no score, by eval function that gave none"
    )
    judge_errors: dict[str, str] = Field(
        default_factory=dict,
        description="kind of error, by eval function whose judge gave no score",
    )
    rubrics: dict[str, str] = Field(
        default_factory=dict,
        description="digest of the rubric that a judge judged by, by eval function",
    )
    duration_ms: Milliseconds
    tokens: Whole | None
    passed: bool = False
    outcome: str = ""
    started_at: float | None = None


def _run_fields() -> Iterator[tuple[str, Any]]:
    """Yield type and default of every further field of a run that holds one value."""
    for each in fields(RunResult):
        kind: Any = RUN_FIELDS.get(each.name)
        if kind is None or each.name in {*CoreRun.model_fields, *NOT_OF_A_RUN}:
            continue
        if kind is int:
            kind = Milliseconds if each.name.endswith("_ms") else Whole
        yield each.name, (kind | None if each.default is None else kind, each.default)


NOT_OF_A_RUN = ("suite", "row_index", "row_id", "fatal")
"""Fields of a `RunResult` that its row has, or the whole report."""

if TYPE_CHECKING:
    Run = CoreRun
else:
    Run = create_model("Run", __base__=CoreRun, **dict(_run_fields()))


class Row(ReportModel):
    """One row and its runs."""

    row_index: Whole
    runs: list[Run]
    row_id: str | None = None
    digest: str = ""
    suite: str | None = None
    cluster: str | None = Field(
        default=None, description="the rows with one value belong together (`--osmosis-cluster`)"
    )


class Git(ReportModel):
    """The project's repository."""

    commit: str
    branch: str | None = None
    dirty: bool | None = Field(description="tracked files had been changed since the commit")


class Environment(ReportModel):
    """Where the session ran."""

    versions: dict[str, str]
    platform: str
    git: Git | None
    command_line: str = Field(description="without the values of keys")


class CoreSuite(ReportModel):
    """One of several evaluations in the session."""

    name: str
    config: Config
    summary: Summary


def _sections(description: str | None = None) -> dict[str, Any]:
    """Return the fields of the sections that features bring."""
    found: dict[str, Any] = {}
    for each in SECTIONS:
        model: Any = each.load_model().Model
        kind: Any = list[model] if each.is_list else model | None
        found[each.name] = kind, Field(default=each.empty, description=description)
    return found


if TYPE_CHECKING:
    Suite = CoreSuite
else:
    Suite = create_model("Suite", __base__=CoreSuite, __doc__=CoreSuite.__doc__, **_sections())


_COMPANIONS, _COMPANION_OF = companion_fields()


class OtherModel(Suite):
    """Another model's runs of the rows of a suite."""

    companion_of: str = Field(validation_alias=_COMPANION_OF, serialization_alias=_COMPANION_OF)
    rows: list[Row]


class CoreReport(ReportModel):
    """The report. With several suites the core holds them all, and `suites` tells them apart."""

    schema_version: int = SCHEMA_VERSION
    config: Config
    summary: Summary
    rows: list[Row]
    suites: list[Suite] = Field(default_factory=list)
    gates: list[GateReport] = Field(default_factory=list)
    companions: list[OtherModel] = Field(
        default_factory=list, validation_alias=_COMPANIONS, serialization_alias=_COMPANIONS
    )
    environment: Environment | None = None


if TYPE_CHECKING:
    Report = CoreReport
else:
    Report = create_model(
        "Report",
        __base__=CoreReport,
        __doc__=CoreReport.__doc__,
        **_sections("of the one suite; with several, each has its own"),
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the reports that this version writes."""
    return Report.model_json_schema(mode="serialization")
