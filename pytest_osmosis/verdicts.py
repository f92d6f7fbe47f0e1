"""What was decided: confidence intervals, differences, the results of gates.

Plain frozen values. `analysis` makes them, `suite_results` carries them, `reports` shows them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from .escaping import counted, escape_control_chars, number_text, percent, shortened

RowVerdict = Literal["regressed", "improved", "changed"]

ROW_VERDICTS: tuple[RowVerdict, ...] = ("regressed", "improved", "changed")

GateOutcome = Literal["passed", "failed", "inconclusive"]
EvalVerdict = Literal["unfinished", "failed", "inconclusive", "passed"]
"""What an evaluation came to, the worst first; `unfinished`: it was cut short."""

INCONCLUSIVE = 8
"""The exit status where no gate failed."""

POINT_ESTIMATES = 0.0
"""The confidence of gates that are held at the figures themselves, without any interval."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval and how it was found."""

    low: float
    """Lower limit."""
    high: float
    """Upper limit."""
    method: str
    """ "agresti-coull", "t", "agresti-min", …: as docs/reference/statistics.md has them."""
    confidence: float
    """Nominal coverage, such as 0.95."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of one gate."""

    gate: str
    """As given, blanks made single: its name in every report."""
    metric: str
    """As people write it, with what is subtracted: "pass@5"."""
    eval_fn: str | None
    """The eval function's whole name."""
    operator: str
    threshold: float
    outcome: GateOutcome
    """passed, failed or inconclusive."""
    figure: float | None
    """The metric as reported, over the runs that count; None where none does."""
    low: float | None
    """The lower of the two bounds that the gate was held at; infinite where scores have none."""
    high: float | None
    """The higher one; infinite for a sum with unknown parts too."""
    interval: Interval | None
    """The figure's interval, where the gate was held at one and it is defined."""
    rows: int
    """Rows that were looked at."""
    unknown: int
    """Runs in those rows whose value is not known: the runs to repeat."""
    more_rows: int | None
    """About how many more rows would settle it; None when it is settled, or rows would not."""
    is_measure: bool = False
    """The metric is one of the runs themselves, such as tokens: no score of an eval function."""
    reason: str | None = None
    """Why nothing could be measured, or there is no figure."""
    confidence: float | None = None
    """As it was given: what the bounds were widened with; `POINT_ESTIMATES`: with nothing.

    None, and the usual intervals: a gate on a difference fails only for what is shown.
    """
    detail: str = ""
    """Which rows do not reach the threshold, for a gate on each row; what a difference shows."""
    sensitivity: float | None = None
    """The smallest true fall (or rise) that fails such a gate with a chance of 80 %, if defined."""
    clusters: int | None = None
    """How many clusters those rows are in; None where each row is independent."""
    group: str | None = None
    """The value of a column whose rows those are, the worst one, of a gate on each value."""

    @property
    def subject(self) -> str:
        """What the figure is of, in a sentence."""
        if self.group is not None:
            before, _, metric = self.metric.partition(": ")
            return f"{metric} of {before.partition(' ')[2]}={self.group_name}"
        return "the lowest row" if self.metric == "each row" else self.metric

    @property
    def group_name(self) -> str:
        """The group in a sentence, in one line; "" without one."""
        return shortened(" ".join(escape_control_chars(self.group or "").split()))

    def text_of(self, value: float) -> str:
        """Return a value of its figure as people read it: of a part of another's in percent."""
        if self.is_measure and self.gate.endswith("%") and math.isfinite(value):
            return f"{number_text(100.0 * value, 100.0 * self.threshold)}%"
        return number_text(value, self.threshold)

    def sentence(self) -> str:
        """Figure, bounds and what to do next, in one line."""
        if self.low is None or self.high is None:
            return self.reason or "nothing was measured"
        return "; ".join(filter(None, [self._outcome_sentence(), self.detail, *self._next()]))

    def _outcome_sentence(self) -> str:
        if self.figure is None:
            nothing = "no run has ended" if self.eval_fn is None else "no run has a score"
            value = self.reason or nothing
        else:
            value = self.text_of(self.figure)
        if self.low == self.high:
            return value if self.figure is not None else f"{value}, which counts as {self.low:.4g}"
        if self.figure is None and self.outcome == "inconclusive":
            return f"unknown: {value}"
        assert self.low is not None and self.high is not None
        low, high = (self.text_of(bound) for bound in (self.low, self.high))
        has_none = math.isinf(self.low) and math.isinf(self.high)
        known = ["no known bounds" if has_none else f"{low} .. {high}"]
        level = (self.interval and self.interval.confidence) or self.confidence
        if level:
            known.append(f"{percent(level)} confidence")
        if self.unknown:
            known.append(f"{counted(self.unknown, 'run')} unknown")
        return f"{value} ({', '.join(known)})"

    def _next(self) -> list[str]:
        if self.outcome != "inconclusive":
            return []
        steps = []
        if self.unknown and self.is_measure:
            steps.append(f"{self.metric} of {counted(self.unknown, 'run')} is not known")
        elif self.unknown:
            enough = "" if self.more_rows else " to settle it"
            steps.append(f"repeat {counted(self.unknown, 'run')}{enough}")
        if self.more_rows:
            of_new = ", in clusters of their own," if self.clusters else ""
            of_new += f" of {self.group_name}" if self.group is not None else ""
            steps.append(f"about {counted(self.more_rows, 'more row')}{of_new} would settle it")
        return steps


def overall(outcomes: Collection[str], *, all_passed: bool) -> EvalVerdict:
    """Return what an evaluation came to: the gates' word where there are any, else the runs'."""
    if not outcomes:
        return "passed" if all_passed else "failed"
    return next(word for word in get_args(EvalVerdict) if word in outcomes)


def exit_status(outcomes: Collection[EvalVerdict]) -> int:
    """1 if any failed or is unfinished, else 8 if any is inconclusive, else 0."""
    statuses = {"passed": 0, "inconclusive": INCONCLUSIVE}
    return statuses.get(overall(outcomes, all_passed=True), 1)


def gate_fields(result: GateResult) -> dict[str, Any]:
    """Return a gate's result as plain values; a bound that there is none of as text."""
    found = asdict(result)
    bounds = {name: found[name] for name in ("low", "high")}
    is_open = {name: value is not None and math.isinf(value) for name, value in bounds.items()}
    return {**found, **{name: str(bounds[name]) for name in bounds if is_open[name]}}


def gate_result_of(saved: Mapping[str, Any]) -> GateResult:
    """Return the result that `gate_fields` has written, without what a later version may add."""
    known = {each.name for each in fields(GateResult)}
    found = {name: value for name, value in saved.items() if name in known}
    found |= {name: float(found[name]) for name in ("low", "high") if found[name] is not None}
    if found["interval"] is not None:
        found["interval"] = Interval(**found["interval"])
    return GateResult(**found)


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean difference, with its uncertainty."""

    difference: float
    """Mean over rows, here minus there."""
    interval: Interval | None
    """None without rows."""
    p: float | None
    """Two-sided, for "no difference"; None without rows."""
    p_method: str | None
    """The interval's: "agresti-min"."""
