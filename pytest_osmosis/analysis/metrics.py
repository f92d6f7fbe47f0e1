"""The table of metrics: every figure of a summary, a gate or a comparison is defined here, once.

A metric has a value, a worst case and a best case over rows of a `ScoreTable`. The value is that
of the runs that have ended, one without a score counting as 0.0 and as no pass; where no run has a
score there is none. The worst and the best case also put every run that was never started, and
every one without a score, at the worst and at the best that it could have given.

A further metric is one entry in `METRICS`, and what it computes a function here or in
`statistics/estimators.py`. These read the table, and have the metric by themselves:

- `aggregate.py` (summaries, intervals), `comparison.py` and `gates/` (grammar, results, early
  stopping), here in `analysis`;
- in `reports`: `tables.py` (columns), `terminal.py` (which columns a narrow one leaves out),
  `charts.py` (curves over K), `json_models.py` and `json_writer.py` (fields of the JSON report).

Knows no thresholds of gates, no sampling error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from .score_table import Case, RowScores, ScoreTable
from .statistics.estimators import mean, pass_at_k, pass_hat_k, population_std, reported_ks

P95 = 0.95
EACH_ROW = "each row"
"""The metric whose value is that of the lowest row: a gate on it is one on every row."""
_SIDES: tuple[Case, Case] = ("worst", "best")


@dataclass(frozen=True, slots=True)
class Bounds:
    """One metric three ways; worst == best when nothing that matters is unknown."""

    value: float | None
    """As reported; None when no run has a score, or has ended."""
    worst: float
    """With every unknown run at its worst."""
    best: float
    """With every unknown run at its best; infinite where a sum has no upper bound."""
    unknown: int
    """Runs whose value the metric lacks."""


RowValue = Callable[[RowScores, Case, int], float]
"""A row's value from its scores, for a case and a K (1 where the metric takes none)."""
TableBounds = Callable[[ScoreTable, Sequence[int], str | None], Bounds]
"""Value and bounds over some rows, for an eval function.

What bounds unknown scores is `ScoreTable.score_range`, which early stopping widens.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """An entry of the table. It has `of_row` and `over_rows`, or else `of_table`."""

    name: str
    """As gates write it, K left out."""
    field: str
    """Its name in the JSON summary, K as `{k}`."""
    of_row: RowValue | None = None
    """A row's value; `over_rows` makes one of all."""
    over_rows: Callable[[Sequence[float]], float] = mean
    of_table: TableBounds | None = None
    """For what is not made of rows."""
    takes_k: bool = False
    """The name is followed by a K."""
    same_at_1: bool = False
    """For K = 1 it is the same as the entry above it: comparisons show that one alone."""
    eval_fn: Literal["one", "either", "none"] = "one"
    """Whether it belongs to one eval function, to the runs, or to either."""
    in_summary: bool = False
    """Whether summaries give it for each eval function."""
    in_tables: Literal["no", "yes", "largest k"] = "no"
    """Whether the tables that people read show it: for all K, or for the largest alone."""
    in_gates: bool = True
    """Whether a gate may be about it."""
    interval: Literal["mean", "share"] | None = None
    """What its confidence interval is one of; None: it estimates nothing beyond these rows."""
    unit_scores: bool = False
    """Whether its bounds depend on between what unknown scores lie."""
    counts_passes: bool = False
    """Whether it needs a pass threshold."""
    is_share: bool = True
    """Whether a percentage says anything about it."""

    @property
    def has_curve(self) -> bool:
        """Whether charts draw it over K: it lies between 0 and 1, whatever the scores."""
        return self.in_summary and self.takes_k and self.interval == "share"

    @property
    def is_comparable(self) -> bool:
        """Whether its difference from a baseline's is tested, in reports and by gates."""
        return self.interval is not None

    @property
    def range(self) -> tuple[float, float]:
        """Between what every value lies, whatever the scores: a share of runs between 0 and 1."""
        if self.unit_scores:
            return -math.inf, math.inf
        return 0.0, 1.0 if self.is_share else math.inf


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that can be computed: a kind of metric, its K and its eval function."""

    kind: str
    """The name of an entry of `METRICS`."""
    k: int | None = None
    """K, where the kind takes one."""
    eval_fn: str | None = None
    """None: that of a table with one, or none where the kind needs none."""

    @property
    def label(self) -> str:
        """The metric as people write it: "pass@5"."""
        return self.kind if self.k is None else f"{self.kind}{self.k}"

    @property
    def field(self) -> str:
        """Its name in the JSON summary: "pass_at_5"."""
        return self.definition.field.format(k=self.k)

    @property
    def definition(self) -> Definition:
        """Its entry in the table."""
        return METRICS[self.kind]

    def function(self, table: ScoreTable) -> str:
        """The eval function whose scores it takes."""
        return self.eval_fn or table.eval_fns[0]

    def scale(self, table: ScoreTable) -> tuple[float, float]:
        """Between what a row's value lies."""
        if self.definition.interval == "mean":
            return table.score_range(self.function(table))
        return 0.0, 1.0


def bounds(metric: Metric, table: ScoreTable, rows: Sequence[int]) -> Bounds | None:
    """Return the metric's value and bounds over some rows; None when they have no such runs."""
    if not rows:
        return None
    definition = metric.definition
    if definition.of_table is not None:
        return definition.of_table(table, rows, metric.eval_fn)
    values = row_values(metric, table, rows)
    sides = [row_values(metric, table, rows, case) for case in _SIDES]
    if not all(sides):  # every run has ended, and none has recorded the score
        return None
    worst, best = map(definition.over_rows, sides)
    has_value = bool(values) and table.has_score(metric.function(table), rows)
    value = definition.over_rows(values) if has_value else None
    return Bounds(value, worst, best, unknown_scores(metric, table, rows))


def unknown_scores(metric: Metric, table: ScoreTable, rows: Sequence[int]) -> int:
    """Count the runs of some rows that have no score of the metric's eval function."""
    rows_of = table.rows_of_scores(metric.function(table), rows)
    return sum(row.n - len(row.known) for row in rows_of)


def row_values(
    metric: Metric, table: ScoreTable, rows: Sequence[int], case: Case = "value"
) -> list[float]:
    """Return one value a row; for the value itself, of the rows of which a run has ended.

    Rows without a run that has recorded a score, or yet may, are left out.
    """
    of_row, k = metric.definition.of_row, metric.k or 1
    assert of_row is not None, f"{metric.kind} is not made of rows"
    each = table.rows_of_scores(metric.function(table), rows)
    return [of_row(row, case, k) for row in each if (row.ended if case == "value" else row.n)]


def summary_metrics(n: int, eval_fn: str | None = None) -> Iterator[Metric]:
    """Yield the metrics that summaries of n runs a row give, in the order of the table."""
    for definition in METRICS.values():
        if definition.in_summary and not definition.takes_k:
            yield Metric(definition.name, None, eval_fn)
        elif definition.in_summary:
            yield from (Metric(definition.name, k, eval_fn) for k in reported_ks(n))


def definition_of(label: str) -> Definition:
    """Return the entry of a metric, as people write it: that of "pass@" for "pass@5"."""
    return METRICS[label if label in METRICS else label.rstrip("0123456789")]


def estimates(label: str) -> bool:
    """Return whether a metric, as people write it, has a confidence interval."""
    return definition_of(label).interval is not None


def is_repeated(label: str) -> bool:
    """Return whether a metric, as people write it, is the same as another: pass^1 as pass@1."""
    return any(label == f"{each.name}1" for each in METRICS.values() if each.same_at_1)


def quantile_95(known: Sequence[float], *, zeros: int, total: int) -> float:
    """Return the 95th percentile, by nearest rank, of `known` (rising), zeros, and infinities."""
    rank = math.ceil(P95 * total - 1e-9)
    if rank <= zeros:
        return 0.0
    return known[rank - zeros - 1] if rank - zeros <= len(known) else math.inf


def _pass_at(row: RowScores, case: Case, k: int) -> float:
    runs, passes = row.passes_of(case)
    return pass_at_k(runs, passes, min(k, runs))


def _pass_hat(row: RowScores, case: Case, k: int) -> float:
    runs, passes = row.passes_of(case)
    return pass_hat_k(runs, passes, min(k, runs))


def _share_passed(row: RowScores, case: Case, k: int) -> float:
    runs, passes = row.passes_of(case)
    return passes / runs


def _ended(table: ScoreTable, rows: Sequence[int], eval_fn: str | None) -> list[float]:
    """The scores of all runs that have ended, one without a score as 0.0."""
    name = eval_fn or table.eval_fns[0]
    scores = table.run_values(table.scores[name], rows)
    if name in table.absent:  # of a recorded score, those that recorded it
        return [score for score in scores if not isnan(score)]
    ended = table.run_values(table.finished, rows)
    every = zip(scores, ended, strict=True)
    return [0.0 if isnan(score) else score for score, has_ended in every if has_ended]


def _over_runs(take: Callable[[Sequence[float]], float]) -> TableBounds:
    """What only summaries give: no gate asks for its bounds."""

    def of_table(table: ScoreTable, rows: Sequence[int], eval_fn: str | None) -> Bounds:
        scores = _ended(table, rows, eval_fn)
        return Bounds(take(scores) if scores else None, -math.inf, math.inf, 0)

    return of_table


def _errors(table: ScoreTable, rows: Sequence[int], eval_fn: str | None) -> Bounds:
    """Runs that ended in an error; with an eval function, runs that ended without its score."""
    ended = sum(table.run_values(table.finished, rows))
    left = len(rows) * table.n - ended
    if eval_fn is None:
        found = sum(table.run_values(table.errors, rows))
    else:
        absent = table.absent.get(eval_fn)
        there = ended - (0 if absent is None else sum(table.run_values(absent, rows)))
        found = there - sum(table.were_scored(eval_fn, rows))
    return Bounds(float(found) if ended else None, float(found + left), float(found), left)


def _scored(table: ScoreTable, rows: Sequence[int], eval_fn: str | None) -> Bounds:
    """The share of runs that have a score."""
    known = sum(table.were_scored(eval_fn or table.eval_fns[0], rows))
    ended, runs = sum(table.run_values(table.finished, rows)), len(rows) * table.n
    left = runs - ended
    return Bounds(known / ended if ended else None, known / runs, (known + left) / runs, left)


def _sum(column: Callable[[ScoreTable], Sequence[float]]) -> TableBounds:
    def of_table(table: ScoreTable, rows: Sequence[int], eval_fn: str | None) -> Bounds:
        values = table.run_values(column(table), rows)
        known = [value for value in values if not isnan(value)]
        total, unknown = math.fsum(known), len(values) - len(known)
        return Bounds(total, total, math.inf if unknown else total, unknown)

    return of_table


def _p95(table: ScoreTable, rows: Sequence[int], eval_fn: str | None) -> Bounds:
    values = table.run_values(table.duration_s, rows)
    known = sorted(value for value in values if not isnan(value))
    zeros = len(values) - len(known)
    return Bounds(
        value=quantile_95(known, zeros=0, total=len(known)) if known else 0.0,
        worst=quantile_95(known, zeros=zeros, total=len(values)),
        best=quantile_95(known, zeros=0, total=len(values)),
        unknown=zeros,
    )


METRICS = {
    definition.name: definition
    for definition in (
        Definition(
            name="mean", field="mean", of_row=lambda row, case, k: mean(row.filled(case)),
            unit_scores=True, in_summary=True, in_tables="yes", interval="mean",
        ),
        Definition(
            name="pass@", field="pass_at_{k}", of_row=_pass_at, takes_k=True,
            counts_passes=True, in_summary=True, in_tables="yes", interval="share",
        ),
        Definition(
            name="pass^", field="pass_hat_{k}", of_row=_pass_hat, takes_k=True, same_at_1=True,
            counts_passes=True, in_summary=True, in_tables="largest k", interval="share",
        ),
        Definition(
            name="std", field="std", of_table=_over_runs(population_std),
            in_summary=True, in_gates=False,
        ),
        Definition(
            name="min", field="min", of_row=lambda row, case, k: min(row.filled(case)),
            over_rows=min, unit_scores=True, in_summary=True,
        ),
        Definition(
            name="max", field="max", of_table=_over_runs(max), in_summary=True, in_gates=False
        ),
        Definition(
            name=EACH_ROW, field="each_row", of_row=_share_passed, over_rows=min,
            counts_passes=True,
        ),
        Definition(name="errors", field="errors", of_table=_errors, eval_fn="either",
                   is_share=False),
        Definition(name="scored", field="scored_share", of_table=_scored),
        Definition(
            name="rows@0", field="rows_at_0", over_rows=math.fsum, is_share=False,
            counts_passes=True,
            of_row=lambda row, case, k: float(row.passes_of(case)[1] == 0),
        ),
        Definition(name="cost_usd", field="cost_usd", of_table=_sum(lambda table: table.cost_usd),
                   eval_fn="none", is_share=False),
        Definition(name="tokens", field="tokens", of_table=_sum(lambda table: table.tokens),
                   eval_fn="none", is_share=False),
        Definition(name="p95_duration_s", field="p95_duration_s", of_table=_p95, eval_fn="none",
                   is_share=False),
    )
}  # fmt: skip
"""Every metric, by name."""
