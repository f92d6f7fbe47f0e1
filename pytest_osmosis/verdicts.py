"""What was decided: confidence intervals, the results of gates, what changed against a baseline.

Plain frozen values. `analysis` makes them, `suite_results` carries them, `reports` shows them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from .escaping import counted, number_text, p_value

RowVerdict = Literal["regressed", "improved", "changed"]

ROW_VERDICTS: tuple[RowVerdict, ...] = ("regressed", "improved", "changed")

RATE = 0.1
"""The share of rows called regressed or improved, of all that are, which chance may explain."""
FEWEST_RUNS = 3
"""With fewer runs on a side, no row is."""

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
    """"agresti-coull", "agresti-coull (effective rows)", "t" or "agresti-min"."""
    confidence: float
    """Nominal coverage, such as 0.95."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of one gate."""

    gate: str
    """As given, blanks made single: its name in every report."""
    metric: str
    """As people write it: "pass@5 - baseline"."""
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

    @property
    def subject(self) -> str:
        """What the figure is of, in a sentence."""
        return "the lowest row" if self.metric == "each row" else self.metric

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
            value = number_text(self.figure, self.threshold)
        if self.low == self.high:
            return value if self.figure is not None else f"{value}, which counts as {self.low:.4g}"
        if self.figure is None and self.outcome == "inconclusive":
            return f"unknown: {value}"
        assert self.low is not None and self.high is not None
        low, high = (number_text(bound, self.threshold) for bound in (self.low, self.high))
        has_none = math.isinf(self.low) and math.isinf(self.high)
        known = ["no known bounds" if has_none else f"{low} .. {high}"]
        level = self.confidence or (self.interval and self.interval.confidence)
        if level:
            known.append(f"{100 * level:.4g}% confidence")
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
            steps.append(f"about {counted(self.more_rows, 'more row')} would settle it")
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


@dataclass(frozen=True, slots=True)
class Count:
    """The runs of one row, sorted by what is known of them."""

    passes: int
    """Runs with a score at or above the threshold."""
    known: int
    """Runs that count."""
    unknown: int
    """Runs that ended and are left out."""

    @property
    def is_pass(self) -> bool:
        """Whether the row passes: most of its runs that count do, half being enough."""
        return 2 * self.passes >= self.known

    @property
    def runs(self) -> int:
        """All of the row's runs that ended."""
        return self.known + self.unknown

    def __str__(self) -> str:
        return f"{self.passes}/{self.known}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric in both sessions, over the matched rows."""

    metric: str
    """"mean", "pass@1", "pass^3", …"""
    current: float
    """This session's figure."""
    baseline: float
    """The baseline's figure."""
    paired: Paired
    """current - baseline with interval and p."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row whose mean score differs between the sessions."""

    name: str
    """The row's name."""
    row_index: int
    """Its index in the data."""
    baseline_row_index: int
    """Its index in the baseline's data."""
    current: Count
    """Its runs here."""
    baseline: Count
    """Its runs there."""
    mean: float
    """The mean of its scores here."""
    baseline_mean: float
    """Likewise there."""
    p: float | None
    """Of the exact permutation test of its runs; None with too few of them."""
    verdict: RowVerdict = "changed"
    """"changed" where chance may explain it."""
    answer: str | None = None
    """What a run that fits the change answered here; None when answers are not kept."""
    baseline_answer: str | None = None
    """Likewise there."""

    @property
    def difference(self) -> float:
        """By how much its mean rose."""
        return self.mean - self.baseline_mean

    @property
    def is_flip(self) -> bool:
        """Whether it passes on one side only, most of its runs that count deciding."""
        return self.current.is_pass != self.baseline.is_pass

    @property
    def figures(self) -> str:
        """The runs that pass, there and here, and p: "5/5 → 1/5, p 0.048".

        The means instead, where these say more.
        """
        p = "" if self.p is None else f", p {p_value(self.p)}"
        sides = (self.baseline, self.baseline_mean), (self.current, self.mean)
        if all(count.passes == round(mean * count.known, 9) for count, mean in sides):
            return f"{self.baseline} → {self.current}{p}"
        return " → ".join(number_text(mean) for _, mean in sides) + p


@dataclass(frozen=True, slots=True)
class Comparison:
    """One eval function in both sessions."""

    eval_fn: str
    """Its name."""
    rows: int
    """Rows compared."""
    differences: tuple[Difference, ...]
    """The mean's, then those of pass@k, then those of pass^k."""
    changes: tuple[Change, ...]
    """The rows that differ: by p, then by size."""
    tested: int
    """Rows whose runs could show a change."""
    short: int
    """Rows that could not, for having too few runs on a side."""

    def of(self, verdict: RowVerdict) -> list[Change]:
        """Return the rows with a verdict."""
        return [change for change in self.changes if change.verdict == verdict]

    @property
    def counts(self) -> str:
        """How many rows have which verdict: "1 regressed, 3 changed (may be chance)"."""
        found = [f"{len(self.of(word))} {word}" for word in ROW_VERDICTS if self.of(word)]
        return ", ".join(found) + (" (may be chance)" if self.of("changed") else "")

    @property
    def rule(self) -> str:
        """By what rows are called regressed or improved, in a sentence."""
        few = f"fewer than {FEWEST_RUNS} runs on a side"
        parts = []
        if self.tested:
            parts.append(
                "regressed, improved: by an exact permutation test of the row's runs, "
                f"Benjamini-Hochberg at {RATE:.0%} over {counted(self.tested, 'row')} "
                "that could show a change"
            )
        elif not self.short:
            parts.append("no row's runs could show more than chance")
        if self.short:
            rows = counted(self.short, "row")
            parts.append(
                f"{rows} with {few} can show nothing, with {FEWEST_RUNS} or more they could"
            )
        mean = self.differences[0].paired.interval if self.differences else None
        if self.of("regressed") and mean is not None and mean.high >= 0.0:
            parts.append("the fall of these rows is more than chance, that of the mean need not be")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class BaselineReport:
    """Everything that is said about a baseline."""

    comparisons: tuple[Comparison, ...]
    """One for each eval function that both have."""
    notes: tuple[str, ...]
    """What differs between the sessions' settings and data, in sentences."""
    source: str = ""
    """Where the baseline is from, as people see it."""
