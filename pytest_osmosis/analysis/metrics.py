"""The table of metrics: every figure of a summary, a gate or a comparison is defined here, once.

A metric has a value, a worst case and a best case over rows of a `ScoreTable`. The value is that
of the runs that count (`RunResult.counted_score`); where none does there is none. The worst and the
best case also put every other run, also one that was never started, at the worst and at the best
that it could have given.

A further metric is one entry in `METRICS`, and what it computes a function here or in
`statistics/estimators.py`. These read the table, and have the metric by themselves:

- `aggregate.py` (summaries, intervals) and `gates/` (grammar, results, early stopping), here in
  `analysis`; comparisons, which are a feature;
- in `reports`: `tables.py` (columns), `summary.py` (which of them a narrow terminal leaves out),
  `json_models.py` and `json_writer.py` (fields of the JSON report).

Knows no thresholds of gates, no sampling error. Works on arrays through their own methods: reading
what a gate says imports no numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from ..outcomes import OUTCOMES
from .statistics.estimators import mean, pass_at_k, pass_hat_k, population_std, reported_ks

if TYPE_CHECKING:
    from ..run_result import RunResult
    from ..verdicts import Interval
    from .score_table import Case, RowScores, ScoreTable
    from .statistics.estimators import Floats

P95 = 0.95
EACH_ROW = "each row"
"""The metric whose value is that of the lowest row: a gate on it is one on every row."""
CASES: tuple[Case, Case, Case] = ("value", "worst", "best")


@dataclass(frozen=True, slots=True)
class Bounds:
    """One metric three ways; worst == best when nothing that matters is unknown."""

    value: float | None
    """As reported; None when no run counts, or has ended."""
    worst: float
    """With every unknown run at its worst; infinite where scores have no bound."""
    best: float
    """With every unknown run at its best; infinite where a sum or scores have no bound."""
    unknown: int
    """Runs whose value the metric lacks."""


Limits = Callable[["ScoreTable", "str | None", "Case", float], "Interval | None"]
"""The interval in a case, of an eval function, with a confidence; a side may be infinite."""
RowValues = Callable[["RowScores", int], "Floats"]
"""A value a row from their scores, for a K (1 where the metric takes none)."""
TableBounds = Callable[["ScoreTable", str | None], Bounds]
"""Value and bounds over a table's rows, for an eval function.

What bounds unknown scores is `ScoreTable.score_range`, which early stopping widens.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """An entry of the table. It has `of_rows` and `over_rows`, or else `of_table`."""

    name: str
    """As gates write it, K left out."""
    field: str
    """Its name in the JSON summary, K as `{k}`."""
    of_rows: RowValues | None = None
    """Each row's value; `over_rows` makes one of all."""
    over_rows: Callable[[Floats], float] = mean
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
    """What its confidence interval is one of.

    None: it estimates nothing beyond these rows, and nothing is subtracted from it.
    """
    limits: Limits | None = None
    """Its interval where it is that of no mean of scores."""
    measure: Callable[[RunResult], float | None] | None = None
    """Of the mean of a number, what a run has: its difference from that elsewhere is by rows."""
    quantile: float | None = None
    """Of a percentile, which."""
    unit_scores: bool = False
    """Whether its bounds depend on between what unknown scores lie."""
    counts_passes: bool = False
    """Whether it needs a pass threshold."""
    is_share: bool = True
    """Whether a percentage says anything about it."""
    is_of_judge: bool = False
    """Whether it is of an eval function and of people: `agreement(judge)`, from -1 to 1."""

    @property
    def range(self) -> tuple[float, float]:
        """Between what every value lies, whatever the scores: a share of runs between 0 and 1."""
        if self.unit_scores:
            return -math.inf, math.inf
        return -1.0 if self.is_of_judge else 0.0, 1.0 if self.is_share else math.inf


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
        if self.definition.eval_fn == "none":
            return 0.0, math.inf
        if self.definition.interval == "mean" or self.definition.quantile is not None:
            return table.score_range(self.function(table))
        return 0.0, 1.0


def bounds(metric: Metric, table: ScoreTable) -> Bounds | None:
    """Return the metric's value and bounds over a table's rows; None when they have no such runs.

    They have none where every run has ended, and none has recorded the score.
    """
    definition = metric.definition
    if not len(table.rows):
        return None
    if definition.of_table is not None:
        return definition.of_table(table, metric.eval_fn)
    values, lows, highs = (row_values(metric, table, case) for case in CASES)
    if not lows.size:
        return None
    has_value = values.size and table.has_score(metric.function(table))
    return Bounds(
        definition.over_rows(values) if has_value else None,
        definition.over_rows(lows),
        definition.over_rows(highs),
        table.unknown(metric.function(table)),
    )


def row_values(metric: Metric, table: ScoreTable, case: Case = "value") -> Floats:
    """Return one value a row; for the value itself, of the rows of which K runs count.

    Rows without K runs that count, or yet may, are left out.
    """
    return values_of(metric, table.row_scores(metric.function(table), case))


def values_of(metric: Metric, scores: RowScores) -> Floats:
    """Return one value a row; of fewer runs than K, pass@K is not defined."""
    of_rows = metric.definition.of_rows
    assert of_rows is not None, f"{metric.kind} is not made of rows"
    return of_rows(with_value(metric, scores), metric.k or 1)


def with_value(metric: Metric, scores: RowScores) -> RowScores:
    """Return the scores of the rows that have a value."""
    return scores.where(scores.runs >= (metric.k or 1))


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


def is_repeated(label: str) -> bool:
    """Return whether a metric, as people write it, is the same as another: pass^1 as pass@1."""
    return any(label == f"{each.name}1" for each in METRICS.values() if each.same_at_1)


def _lowest(values: Floats) -> float:
    return float(values.min())


def _highest(values: Floats) -> float:
    return float(values.max())


def _over_runs(take: Callable[[Floats], float]) -> TableBounds:
    """What only summaries give, of the runs that count: no gate asks for its bounds."""

    def of_table(table: ScoreTable, eval_fn: str | None) -> Bounds:
        scores = table.row_scores(eval_fn or table.eval_fns[0]).of_runs
        return Bounds(take(scores) if scores.size else None, -math.inf, math.inf, 0)

    return of_table


def _errors(table: ScoreTable, eval_fn: str | None) -> Bounds:
    """Runs that raised, timed out or had an error; with an eval function, without its score."""
    ended, left = _ended_and_left(table)
    if eval_fn is None:
        found = float(sum(OUTCOMES[run.outcome].is_error for run in table.ended))
    else:
        absent = table.absent.get(eval_fn)
        there = ended if absent is None else ended - absent.sum()
        found = float(there - table.given[eval_fn].sum())
    return Bounds(found if ended else None, found + left, found, left)


def _scored(table: ScoreTable, eval_fn: str | None) -> Bounds:
    """The share of runs that count."""
    (ended, left), runs = _ended_and_left(table), table.finished.size
    known = int(table.counted(eval_fn or table.eval_fns[0]).sum())
    return Bounds(known / ended if ended else None, known / runs, (known + left) / runs, left)


def _ended_and_left(table: ScoreTable) -> tuple[int, int]:
    ended = int(table.finished.sum())
    return ended, table.finished.size - ended


def _sum(measure: Callable[[RunResult], float | None]) -> TableBounds:
    def of_table(table: ScoreTable, eval_fn: str | None) -> Bounds:
        known = [value for value in map(measure, table.ended) if value is not None]
        total, unknown = math.fsum(known), table.finished.size - len(known)
        return Bounds(total, total, math.inf if unknown else total, unknown)

    return of_table


def _p95(table: ScoreTable, eval_fn: str | None) -> Bounds:
    known = sorted(run.duration_ms / 1000.0 for run in table.ended if run.duration_ms)
    unknown = table.finished.size - len(known)
    return Bounds(
        _quantile_95(known) if known else 0.0,
        _quantile_95([0.0] * unknown + known),
        _quantile_95(known + [math.inf] * unknown),
        unknown,
    )


def _quantile_95(rising: Sequence[float]) -> float:
    """Return the 95th percentile by nearest rank."""
    return rising[math.ceil(P95 * len(rising) - 1e-9) - 1]


METRICS = {
    definition.name: definition
    for definition in (
        Definition(
            name="mean", field="mean", of_rows=lambda scores, k: scores.means,
            unit_scores=True, in_summary=True, in_tables="yes", interval="mean",
        ),
        Definition(
            name="pass@", field="pass_at_{k}", takes_k=True,
            of_rows=lambda scores, k: scores.estimates(pass_at_k, k),
            counts_passes=True, in_summary=True, in_tables="yes", interval="share",
        ),
        Definition(
            name="pass^", field="pass_hat_{k}", takes_k=True, same_at_1=True,
            of_rows=lambda scores, k: scores.estimates(pass_hat_k, k),
            counts_passes=True, in_summary=True, in_tables="largest k", interval="share",
        ),
        Definition(
            name="std", field="std", of_table=_over_runs(population_std),
            in_summary=True, in_gates=False,
        ),
        Definition(
            name="min", field="min", of_rows=lambda scores, k: scores.lowest, over_rows=_lowest,
            unit_scores=True, in_summary=True,
        ),
        Definition(
            name="max", field="max", of_rows=lambda scores, k: scores.highest, over_rows=_highest,
            unit_scores=True, in_summary=True,
        ),
        Definition(
            name=EACH_ROW, field="each_row", over_rows=_lowest, counts_passes=True,
            of_rows=lambda scores, k: scores.passes / scores.runs,
        ),
        Definition(
            name="agreement", field="agreement", is_of_judge=True, counts_passes=True,
            of_table=lambda table, eval_fn: Bounds(None, -1.0, 1.0, 0),  # as far as tables know
        ),
        Definition(name="errors", field="errors", of_table=_errors, eval_fn="either",
                   is_share=False),
        Definition(name="scored", field="scored_share", of_table=_scored),
        Definition(
            name="rows@0", field="rows_at_0", is_share=False, counts_passes=True,
            of_rows=lambda scores, k: (scores.passes == 0).astype(float),
            over_rows=lambda fails: float(fails.sum()),
        ),
        Definition(name="cost_usd", field="cost_usd", of_table=_sum(attrgetter("spent_usd")),
                   eval_fn="none", is_share=False),
        Definition(name="tokens", field="tokens", of_table=_sum(attrgetter("tokens")),
                   eval_fn="none", is_share=False),
        Definition(name="p95_duration_s", field="p95_duration_s", of_table=_p95, eval_fn="none",
                   is_share=False),
    )
}  # fmt: skip
"""Every metric, by name."""
