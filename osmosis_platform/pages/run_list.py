"""The runs of a workspace: filtered, searched and sorted, and the trend of each config."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, case, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute
from starlette.responses import Response

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..database.models import Run, User
from ..runs import records
from .context import PageContext
from .run_view import ConfigView, FigureView, RunView, config_of, figure_of

PAGE = 50
_HISTORY = 500
"""Runs of which the trends are made."""
_TRENDS = 6
_OUTCOMES = 30
"""Runs in one trend."""
_VALUES = 200
"""Of a filter."""


_TITLE = Run.results["title"].as_string()
FILTERS: Mapping[str, ColumnElement[str]] = {
    "outcome": case(
        (Run.status == "finished", func.coalesce(Run.metrics["verdict"].as_string(), "finished")),
        else_=Run.status,
    ),
    "rollout": Run.submission[("experiment_config", "rollout")].as_string(),
    "model": Run.submission[("experiment_config", "model_path")].as_string(),
    "dataset": Run.submission[("experiment_config", "dataset")].as_string(),
    "by": select(User.name).where(User.id == Run.creator_id).scalar_subquery(),
}
"""What a run is filtered by, by the name in the address."""
SORTS: Mapping[str, ColumnElement[Any] | InstrumentedAttribute[Any]] = {
    "run": func.lower(func.coalesce(func.nullif(_TITLE, ""), Run.name)),
    "outcome": FILTERS["outcome"],
    "pass": Run.metrics[("pass_at_1", "value")].as_float(),
    "passed": Run.metrics[("overview", "passed")].as_float(),
    "tokens": Run.metrics[("overview", "tokens_used")].as_float(),
    "took": Run.metrics[("overview", "duration_ms")].as_float(),
    "submitted": Run.created_at,
}


@dataclass(frozen=True, slots=True)
class ConfigTrend:
    """A config with the figures of its finished runs."""

    config: ConfigView
    runs: Sequence[tuple[str, FigureView]]
    """The name of each run and its figure, the oldest first."""

    @property
    def change(self) -> FigureView | None:
        """By how much the newest differs from the one before, with the interval of that.

        It is made of the intervals of both: Newcombe (1998), Statistics in Medicine 17, method 10.
        """
        if len(self.runs) < 2:
            return None
        (_, before), (_, now) = self.runs[-2:]
        change = now.value - before.value
        if now.low is None or now.high is None or before.low is None or before.high is None:
            return FigureView(change)
        low = change - math.hypot(now.value - now.low, before.high - before.value)
        high = change + math.hypot(now.high - now.value, before.value - before.low)
        return FigureView(change, low, high)


@dataclass(frozen=True, slots=True)
class RunListing:
    """Which runs an address asks for."""

    kind: RunKind
    asked: Mapping[str, str]
    """The values of filters, `q` for the search, `sort`."""
    offset: int

    @classmethod
    def of(cls, context: PageContext) -> RunListing:
        """Return what the address of a visit asks for."""
        kind = TRAINING if context.query("kind") == TRAINING.name else EVALUATION
        asked = {name: context.query(name) for name in (*FILTERS, "q")}
        sort = context.query("sort")
        asked["sort"] = sort if sort.removeprefix("-") in SORTS else ""
        return cls(
            kind, {name: value for name, value in asked.items() if value}, context.whole("offset")
        )

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves runs out."""
        return bool(self.asked.keys() - {"sort"})

    def address(self, **changed: Any) -> str:
        """Return its query, with changes."""
        kind = "" if self.kind is EVALUATION else self.kind.name
        asked = {"kind": kind, **self.asked, "offset": self.offset, **changed}
        return urlencode({name: value for name, value in asked.items() if value})

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """What the runs meet."""
        found = [
            column == self.asked[name] for name, column in FILTERS.items() if name in self.asked
        ]
        texts = (Run.name, _TITLE, *(FILTERS[name] for name in ("rollout", "model", "dataset")))
        for word in self.asked.get("q", "").split()[:8]:
            found.append(or_(*(text.icontains(word, autoescape=True) for text in texts)))
        return found

    @property
    def order(self) -> list[ColumnElement[Any]]:
        """What they are sorted by."""
        if not (sort := self.asked.get("sort")):
            return []
        column = SORTS[sort.removeprefix("-")]
        return [(column.desc() if sort.startswith("-") else column.asc()).nulls_last()]


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
        choices=_choices(context, listing),
        trends=_trends(context, listing),
        others=[kind for kind in (EVALUATION, TRAINING) if kind != listing.kind],
    )


def _runs(context: PageContext, listing: RunListing) -> tuple[list[RunView], int]:
    found, total = records.newest(
        context.session,
        listing.kind,
        context.workspace,
        limit=PAGE,
        offset=listing.offset,
        conditions=listing.conditions,
        first=listing.order,
    )
    return [*map(RunView, found)], total


def _choices(context: PageContext, listing: RunListing) -> dict[str, list[str]]:
    """Return the values that each filter can have."""
    ours = (Run.workspace_id == context.workspace.id, Run.kind == listing.kind.name)
    found = {}
    for name, column in FILTERS.items():
        query = select(column).where(*ours).distinct().limit(_VALUES)
        chosen = {listing.asked[name]} if name in listing.asked else set()
        found[name] = sorted(chosen.union(context.session.scalars(query)))
    return found


def _trends(context: PageContext, listing: RunListing) -> list[ConfigTrend]:
    """Return the trends of the configs that were evaluated last, of those that were asked for."""
    query = (
        select(Run.name, Run.submission, Run.metrics)
        .where(
            Run.workspace_id == context.workspace.id,
            Run.kind == EVALUATION.name,
            Run.status == "finished",
            *listing.conditions,
        )
        .order_by(Run.created_at.desc())
        .limit(_HISTORY)
    )
    found: dict[ConfigView, list[tuple[str, FigureView]]] = {}
    for name, submission, metrics in context.session.execute(query):
        if (figure := figure_of(metrics)) is not None:
            found.setdefault(config_of(submission), []).append((name, figure))
    trends = [ConfigTrend(config, runs[:_OUTCOMES][::-1]) for config, runs in found.items()]
    return trends[:_TRENDS]
