"""The runs of a workspace: the newest first, how far each is, and the trend of each config."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from sqlalchemy import select
from starlette.responses import Response

from ..database.models import Run
from ..runs import records
from ..runs.kinds import EVALUATION, TRAINING, RunKind
from .live import Part, Update
from .run_view import Config, RunView, config_of, figure_of, view_of
from .trend import Outcome, Trend, trend_of
from .visits import Visit

PAGE = 50
_HISTORY = 500
"""Runs of which the trends are made."""
_TRENDS = 6
_OUTCOMES = 30
"""Runs in one trend."""


@dataclass(frozen=True, slots=True)
class ConfigTrend:
    """A config with its finished runs."""

    config: Config
    key: str
    trend: Trend


@dataclass(frozen=True, slots=True)
class Listing:
    """Which runs an address asks for."""

    kind: RunKind
    config: str
    offset: int

    @classmethod
    def of(cls, visit: Visit) -> Listing:
        """Return what the address of a visit asks for."""
        kind = TRAINING if visit.query("kind") == TRAINING.name else EVALUATION
        return cls(kind, visit.query("config"), visit.whole("offset"))


def show_runs(visit: Visit) -> Response:
    """Show the list."""
    listing = Listing.of(visit)
    runs, total = _runs(visit, listing)
    return visit.show(
        "runs.html",
        active="runs",
        listing=listing,
        runs=runs,
        total=total,
        page_size=PAGE,
        trends=_trends(visit, listing),
        others=[kind for kind in (EVALUATION, TRAINING) if kind != listing.kind],
    )


def live_runs(visit: Visit, cursor: int) -> Update:
    """Return what the list shows now."""
    listing = Listing.of(visit)
    runs, _ = _runs(visit, listing)
    parts = [Part("runs", _state(runs), lambda: visit.text("runs_table.html", runs=runs))]
    if listing.kind == EVALUATION:
        ended = [run.id for run in runs if run.has_ended]

        def trends() -> str:
            return visit.text("trends.html", listing=listing, trends=_trends(visit, listing))

        parts.append(Part("trends", ended, trends))
    return Update(parts)


def _state(runs: Sequence[RunView]) -> list[Any]:
    return [(run.id, run.status, run.done, run.total, run.pass_at_1) for run in runs]


def _runs(visit: Visit, listing: Listing) -> tuple[list[RunView], int]:
    if not listing.config:
        found, total = records.newest(
            visit.session, listing.kind, visit.workspace, limit=PAGE, offset=listing.offset
        )
        return [*map(view_of, found)], total
    newest, _ = records.newest(
        visit.session, listing.kind, visit.workspace, limit=_HISTORY, offset=0
    )
    alike = [run for run in newest if _key(config_of(run.submission)) == listing.config]
    shown = alike[listing.offset : listing.offset + PAGE]
    return [*map(view_of, shown)], len(alike)


def _trends(visit: Visit, listing: Listing) -> list[ConfigTrend]:
    """Return the trends of the configs that were evaluated last, or of the one asked for."""
    query = (
        select(Run.name, Run.submission, Run.metrics, Run.created_at)
        .where(
            Run.workspace_id == visit.workspace.id,
            Run.kind == EVALUATION.name,
            Run.status == "finished",
        )
        .order_by(Run.created_at.desc())
        .limit(_HISTORY)
    )
    outcomes: dict[Config, list[Outcome]] = {}
    for name, submission, metrics, created_at in visit.session.execute(query):
        figure = figure_of(metrics)
        if figure is not None:
            found = outcomes.setdefault(config_of(submission), [])
            found.append(Outcome(name, created_at, figure))
    return [
        ConfigTrend(config, key, trend_of(found[:_OUTCOMES][::-1]))
        for config, found in outcomes.items()
        if (key := _key(config)) == listing.config or not listing.config
    ][:_TRENDS]


def _key(config: Config) -> str:
    return hashlib.sha256("\0".join(astuple(config)).encode()).hexdigest()[:16]
