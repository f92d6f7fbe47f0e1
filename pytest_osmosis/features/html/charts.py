"""The charts of an eval function as shapes to draw: its scores, pass@k, how often rows passed.

Places are in the units of a drawing of `WIDTH` x `HEIGHT`. Pure: the page's template draws them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...analysis.metrics import METRICS
from ...escaping import counted, percent
from ...reports.highlights import figure_text
from ...run_result import passes
from ...suite_results import Figure, FunctionResult, SuiteResult

WIDTH, HEIGHT = 320, 150
LEFT, TOP, BOTTOM = 30, 14, 22
BARS = 20
"""Bars of a distribution whose scores take more values than that."""
ROW_BARS = 40
"""Bars of rows by the runs that passed, besides those for none and for all."""
_PLOT = HEIGHT - TOP - BOTTOM


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart, and what it stands for."""

    x: float
    y: float
    width: float
    height: float
    label: str
    """Below it; "" where there is no room."""
    count: int
    state: str
    """`passed`, `failed` (where gates decide, `below`) or `partly`: what is in it came to that."""
    tip: str
    filter: str
    """What the page of the report chooses for it: "score:FUNCTION:LOWEST:HIGHEST", or "passes"."""


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart."""

    title: str
    summary: str
    """The chart in words."""
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A figure on a curve, with its interval."""

    x: float
    y: float
    low: float
    high: float
    k: int
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    """A curve through the figures of one metric."""

    name: str
    points: Sequence[ChartPoint]

    @property
    def path(self) -> str:
        """Return the line as SVG draws it."""
        return "M" + " L".join(f"{point.x:.1f} {point.y:.1f}" for point in self.points)

    @property
    def band(self) -> str:
        """Return the area of the intervals as SVG draws it."""
        there = [f"{point.x:.1f} {point.high:.1f}" for point in self.points]
        back = [f"{point.x:.1f} {point.low:.1f}" for point in reversed(self.points)]
        return "M" + " L".join([*there, *back]) + "Z"


@dataclass(frozen=True, slots=True)
class Curve:
    """Metrics over k, such as pass@k and pass^k."""

    title: str
    summary: str
    lines: Sequence[Line]
    intervals: str
    """ "with 95% intervals"; "" without."""


@dataclass(frozen=True, slots=True)
class Charts:
    """What is drawn for one eval function; None where there is nothing to draw."""

    name: str
    scores: Bars | None
    rows: Bars | None
    curve: Curve | None


def charts_of(suite: SuiteResult) -> list[Charts]:
    """Return the charts of every eval function that has scored a run."""
    return [_charts(function, suite) for function in suite.functions if function.scored]


def _charts(function: FunctionResult, suite: SuiteResult) -> Charts:
    threshold = suite.threshold_of(function)
    scores = [
        run.scores[function.name] for run in suite.deciding_runs if function.name in run.scores
    ]
    has_values = any(score not in (0.0, 1.0) for score in scores)
    distribution = _distribution(function.name, scores, threshold) if has_values else None
    rows = _rows(function.name, suite, threshold) if suite.info.n > 1 else None
    return Charts(function.name, distribution, rows, _curve(function))


_Group = tuple[str, int, str, float, float]
"""Label, count, state, and the lowest and highest value of what is counted."""


def _distribution(name: str, scores: Sequence[float], threshold: float | None) -> Bars:
    """Return how many runs have which score."""
    counts = Counter(scores)
    if len(counts) <= BARS:
        values = sorted(counts)
        groups: list[_Group] = [
            (f"{each:.4g}", counts[each], _state([each], threshold), each, each) for each in values
        ]
    else:
        groups = list(_binned(scores, threshold))
    summary = ", ".join(f"{counted(count, 'run')} at {label}" for label, count, *_ in groups)
    return Bars("Scores", summary, _bars(groups, "run", f"score:{name}"))


def _binned(given: Sequence[float], threshold: float | None) -> Iterable[_Group]:
    scores = given
    low, high = min(scores), max(scores)
    span = high - low
    if not math.isfinite(span):
        low, high, span = low / 2, high / 2, high / 2 - low / 2
        scores = [score / 2 for score in scores]
    bins: list[list[float]] = [[] for _ in range(BARS)]
    for score, whole in zip(scores, given, strict=True):
        bins[min(BARS - 1, int((score - low) / span * BARS))].append(whole)
    for number, found in enumerate(bins):
        label = f"{low + span * number / BARS:.3g} .. {low + span * (number + 1) / BARS:.3g}"
        yield (
            label,
            len(found),
            _state(found, threshold),
            min(found, default=0),
            max(found, default=0),
        )


def _state(scores: Iterable[float], threshold: float | None) -> str:
    passed = {threshold is None or passes(score, threshold) for score in scores}
    return "partly" if len(passed) > 1 else "below" if passed == {False} else "passed"


def _rows(name: str, suite: SuiteResult, threshold: float | None) -> Bars | None:
    """Return how many rows passed in how many of their runs."""
    n = suite.info.n
    if threshold is None:
        return None
    counts = Counter(
        sum(passes(run.scores.get(name), threshold) for run in row.runs)
        for row in suite.deciding_rows
    )
    step = -(-n // ROW_BARS)  # 0 and n have a bar of their own
    groups: list[_Group] = [("0", counts[0], "below", 0, 0)]
    groups += [
        (
            str(low) if step == 1 else f"{low} .. {min(low + step, n) - 1}",
            sum(counts[times] for times in range(low, min(low + step, n))),
            "partly",
            low,
            min(low + step, n) - 1,
        )
        for low in range(1, n, step)
    ]
    groups.append((str(n), counts[n], "passed", n, n))
    summary = ", ".join(
        f"{counted(count, 'row')} passed {label} of {n} times"
        for label, count, *_ in groups
        if count
    )
    return Bars(f"Rows by runs passed, of {n}", summary, _bars(groups, "row", f"passes:{name}"))


def _bars(groups: Sequence[_Group], noun: str, what: str) -> list[Bar]:
    most = max(count for _, count, *_ in groups) or 1
    step = (WIDTH - 2 * 6) / len(groups)
    width = min(step * 0.8, 56.0)
    has_room = len(groups) <= 11
    return [
        Bar(
            x=round(6 + step * (place + 0.5) - width / 2, 1),
            y=round(HEIGHT - BOTTOM - _PLOT * count / most, 1),
            width=round(width, 1),
            height=round(_PLOT * count / most, 1),
            label=_label(label, place, len(groups), has_room=has_room),
            count=count,
            state=state,
            tip=f"{label}: {counted(count, noun)}",
            filter=f"{what}:{low}:{high}",
        )
        for place, (label, count, state, low, high) in enumerate(groups)
    ]


def _label(label: str, place: int, number: int, *, has_room: bool) -> str:
    """Return the label of a bar; of many, the first and the last have one."""
    if has_room:
        return label
    first, _, last = label.partition(" .. ")
    return first if place == 0 else (last or first) if place == number - 1 else ""


def _curve(function: FunctionResult) -> Curve | None:
    found = [
        (name, points)
        for name, definition in METRICS.items()
        if definition.takes_k
        and definition.in_summary
        and definition.interval == "share"
        and len(points := _points(name, function.figures.values())) > 1
    ]
    if not found:
        return None
    summary = ", ".join(point.tip for _, points in found for point in points)
    lines = [Line(f"{name}k", each) for name, each in found]
    known = next((each.interval for each in function.figures.values() if each.interval), None)
    around = "" if known is None else f"with {percent(known.confidence)} intervals"
    return Curve(" and ".join(line.name for line in lines), summary, lines, around)


def _points(kind: str, figures: Iterable[Figure]) -> list[ChartPoint]:
    values = [
        (int(each.metric.removeprefix(kind)), each)
        for each in figures
        if each.metric.startswith(kind) and each.value is not None
    ]
    values.sort(key=lambda pair: pair[0])
    most = math.log(values[-1][0]) if values and values[-1][0] > 1 else 1.0
    return [_point(k, figure, math.log(k) / most) for k, figure in values]


def _point(k: int, figure: Figure, share: float) -> ChartPoint:
    value = figure.value or 0.0
    low, high = (
        (value, value)
        if figure.interval is None
        else (max(0.0, figure.interval.low), min(1.0, figure.interval.high))
    )
    around = "" if figure.interval is None else f" ({figure_text(low)} .. {figure_text(high)})"
    return ChartPoint(
        x=LEFT + 10 + (WIDTH - LEFT - 24) * share,
        y=_height(value),
        low=_height(low),
        high=_height(high),
        k=k,
        tip=f"{figure.metric} {figure_text(value)}{around}",
    )


def _height(share: float) -> float:
    return round(HEIGHT - BOTTOM - _PLOT * share, 1)
