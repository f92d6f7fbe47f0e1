"""The runs of a workspace: the newest first, how far each is, and the trend of each config."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from starlette.responses import Response

from ..database.models import Run
from ..runs import records
from ..runs.kinds import EVALUATION, TRAINING, RunKind
from .context import PageContext
from .live import LivePart, Update
from .run_view import ConfigView, FigureView, RunView, config_of, figure_of, view_of

PAGE = 50
_HISTORY = 500
"""Runs of which the trends are made."""
_TRENDS = 6
_OUTCOMES = 30
"""Runs in one trend."""


@dataclass(frozen=True, slots=True)
class ConfigTrend:
    """A config with its finished runs."""

    config: ConfigView
    key: str
    trend: Trend


@dataclass(frozen=True, slots=True)
class RunListing:
    """Which runs an address asks for."""

    kind: RunKind
    config: str
    offset: int

    @classmethod
    def of(cls, context: PageContext) -> RunListing:
        """Return what the address of a visit asks for."""
        kind = TRAINING if context.query("kind") == TRAINING.name else EVALUATION
        return cls(kind, context.query("config"), context.whole("offset"))


def show_runs(context: PageContext) -> Response:
    """Show the list."""
    listing = RunListing.of(context)
    runs, total = _runs(context, listing)
    return context.show(
        "runs.html",
        active="runs",
        listing=listing,
        runs=runs,
        total=total,
        page_size=PAGE,
        trends=_trends(context, listing),
        others=[kind for kind in (EVALUATION, TRAINING) if kind != listing.kind],
    )


def live_runs(context: PageContext, cursor: int) -> Update:
    """Return what the list shows now."""
    listing = RunListing.of(context)
    runs, _ = _runs(context, listing)
    parts = [LivePart("runs", _state(runs), lambda: context.text("runs_table.html", runs=runs))]
    if listing.kind == EVALUATION:
        ended = [run.id for run in runs if run.has_ended]

        def trends() -> str:
            return context.text("trends.html", listing=listing, trends=_trends(context, listing))

        parts.append(LivePart("trends", ended, trends))
    return Update(parts)


def _state(runs: Sequence[RunView]) -> list[Any]:
    return [(run.id, run.status, run.done, run.total, run.pass_at_1) for run in runs]


def _runs(context: PageContext, listing: RunListing) -> tuple[list[RunView], int]:
    if not listing.config:
        found, total = records.newest(
            context.session, listing.kind, context.workspace, limit=PAGE, offset=listing.offset
        )
        return [*map(view_of, found)], total
    newest, _ = records.newest(
        context.session, listing.kind, context.workspace, limit=_HISTORY, offset=0
    )
    alike = [run for run in newest if _key(config_of(run.submission)) == listing.config]
    shown = alike[listing.offset : listing.offset + PAGE]
    return [*map(view_of, shown)], len(alike)


def _trends(context: PageContext, listing: RunListing) -> list[ConfigTrend]:
    """Return the trends of the configs that were evaluated last, or of the one asked for."""
    query = (
        select(Run.name, Run.submission, Run.metrics, Run.created_at)
        .where(
            Run.workspace_id == context.workspace.id,
            Run.kind == EVALUATION.name,
            Run.status == "finished",
        )
        .order_by(Run.created_at.desc())
        .limit(_HISTORY)
    )
    outcomes: dict[ConfigView, list[TrendValue]] = {}
    for name, submission, metrics, created_at in context.session.execute(query):
        figure = figure_of(metrics)
        if figure is not None:
            found = outcomes.setdefault(config_of(submission), [])
            found.append(TrendValue(name, created_at, figure))
    return [
        ConfigTrend(config, key, trend_of(found[:_OUTCOMES][::-1]))
        for config, found in outcomes.items()
        if (key := _key(config)) == listing.config or not listing.config
    ][:_TRENDS]


def _key(config: ConfigView) -> str:
    return hashlib.sha256("\0".join(astuple(config)).encode()).hexdigest()[:16]


WIDTH = 280.0
HEIGHT = 72.0
_MARGIN = 6.0
_SCALE = 26.0
"""On the right, for the labels of the axis."""


@dataclass(frozen=True, slots=True)
class TrendValue:
    """The figure of one run."""

    name: str
    at: datetime
    figure: FigureView


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Where an outcome is in the chart; its interval from `top` to `bottom`."""

    outcome: TrendValue
    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The outcomes of a config, the oldest first."""

    points: Sequence[TrendPoint]

    @property
    def line(self) -> str:
        """The points of a polyline."""
        return " ".join(f"{point.x:g},{point.y:g}" for point in self.points)

    @property
    def last(self) -> TrendValue:
        """The newest one."""
        return self.points[-1].outcome

    @property
    def change(self) -> float | None:
        """By how much the newest differs from the one before."""
        if len(self.points) < 2:
            return None
        return self.last.figure.value - self.points[-2].outcome.figure.value

    @property
    def words(self) -> str:
        """What the chart shows, for who does not see it."""
        shown = ", ".join(f"{100 * each.outcome.figure.value:.1f}%" for each in self.points[-10:])
        return (
            f"pass@1 of the last {len(self.points[-10:])} finished runs, the oldest first: {shown}"
        )


def trend_of(outcomes: Sequence[TrendValue]) -> Trend:
    """Place outcomes, the oldest first, at equal distances from left to right."""
    gaps = max(1, len(outcomes) - 1)
    step = (WIDTH - _MARGIN - _SCALE) / gaps
    start = _MARGIN if len(outcomes) > 1 else WIDTH / 2
    return Trend([_point(each, start + index * step) for index, each in enumerate(outcomes)])


def _point(outcome: TrendValue, x: float) -> TrendPoint:
    figure = outcome.figure
    low = figure.value if figure.low is None else figure.low
    high = figure.value if figure.high is None else figure.high
    return TrendPoint(outcome, round(x, 2), _height(figure.value), _height(high), _height(low))


def _height(value: float) -> float:
    inside = min(1.0, max(0.0, value))
    return round(_MARGIN + (1.0 - inside) * (HEIGHT - 2 * _MARGIN), 2)
