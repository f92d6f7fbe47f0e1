"""How sure the figures of a result are: an interval for each, over the rows that have run.

Which interval is taken when is told in `intervals`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..results import FunctionResult, SuiteResult
from .metrics import mean, pass_at_k, pass_hat_k
from .statistics.intervals import Interval, mean_interval, pass_interval

CONFIDENCE = 0.95
"""Of the intervals that are shown, unless told otherwise."""


def with_intervals(suite: SuiteResult, confidence: float = CONFIDENCE) -> SuiteResult:
    """The suite, its functions with the intervals that are defined."""
    return suite._replace(
        functions=tuple(
            function._replace(intervals=intervals_of(suite, function, confidence))
            for function in suite.functions
        ),
    )


def intervals_of(
    suite: SuiteResult, function: FunctionResult, confidence: float
) -> Mapping[str, Interval]:
    """By metric: "mean", "pass@3", "pass^3"; one that is undefined is left out."""
    found = _intervals(suite, function, confidence)
    return {metric: interval for metric, interval in found if interval is not None}


def _intervals(
    suite: SuiteResult, function: FunctionResult, confidence: float
) -> Iterator[tuple[str, Interval | None]]:
    name, threshold = function.name, suite.info.pass_threshold
    rows = [[run.scores.get(name) for run in row.runs] for row in suite.rows]
    means = [mean([score or 0.0 for score in row]) for row in rows]
    yield "mean", _on_scale(mean_interval(means, confidence=confidence), rows)
    counts = [
        (len(row), sum(score is not None and score >= threshold for score in row)) for row in rows
    ]
    for k in function.pass_at:
        values = [pass_at_k(n, c, min(n, k)) for n, c in counts]
        yield f"pass@{k}", pass_interval(values, confidence=confidence)
    for k in function.pass_hat:
        values = [pass_hat_k(n, c, min(n, k)) for n, c in counts]
        yield f"pass^{k}", pass_interval(values, confidence=confidence)


def _on_scale(interval: Interval | None, rows: Sequence[Sequence[float | None]]) -> Interval | None:
    """Held between min(0, lowest score) and max(1, highest): a mean beyond them cannot be."""
    if interval is None:
        return None
    seen = [score for row in rows for score in row if score is not None]
    low, high = min(0.0, *seen, 0.0), max(1.0, *seen, 1.0)
    return interval._replace(low=max(low, interval.low), high=min(high, interval.high))
