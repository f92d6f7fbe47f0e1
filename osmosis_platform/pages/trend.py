"""The trend of a figure over the runs of one config: the geometry of a small chart.

Knows neither colours nor HTML: a template draws it as inline SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .run_view import Figure

WIDTH = 280.0
HEIGHT = 72.0
_MARGIN = 6.0
_SCALE = 26.0
"""On the right, for the labels of the axis."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figure of one run."""

    name: str
    at: datetime
    figure: Figure


@dataclass(frozen=True, slots=True)
class Point:
    """Where an outcome is in the chart; its interval from `top` to `bottom`."""

    outcome: Outcome
    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The outcomes of a config, the oldest first."""

    points: Sequence[Point]

    @property
    def line(self) -> str:
        """The points of a polyline."""
        return " ".join(f"{point.x:g},{point.y:g}" for point in self.points)

    @property
    def last(self) -> Outcome:
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


def trend_of(outcomes: Sequence[Outcome]) -> Trend:
    """Place outcomes, the oldest first, at equal distances from left to right."""
    gaps = max(1, len(outcomes) - 1)
    step = (WIDTH - _MARGIN - _SCALE) / gaps
    start = _MARGIN if len(outcomes) > 1 else WIDTH / 2
    return Trend([_point(each, start + index * step) for index, each in enumerate(outcomes)])


def _point(outcome: Outcome, x: float) -> Point:
    figure = outcome.figure
    low = figure.value if figure.low is None else figure.low
    high = figure.value if figure.high is None else figure.high
    return Point(outcome, round(x, 2), _height(figure.value), _height(high), _height(low))


def _height(value: float) -> float:
    inside = min(1.0, max(0.0, value))
    return round(_MARGIN + (1.0 - inside) * (HEIGHT - 2 * _MARGIN), 2)
