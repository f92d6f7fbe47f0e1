"""What happened, as columns of numbers: the form that gates, comparisons and intervals work on.

Run r of row i stands at position `i * n + r` of every column that has one value a run; NaN stands
for "not known". Knows no report, no rollout, and not why a number is missing.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Literal, NamedTuple, TypeVar

from ..run_result import passes
from ..verdicts import Count

T = TypeVar("T")

Case = Literal["value", "worst", "best"]
"""What runs are taken for whose score is not known."""

_UNIT = (0.0, 1.0)
UNKNOWN = math.nan
"""A number that is not known: no score, no price, not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """One session with one model. Treat the columns as read-only."""

    n: int
    """Runs planned for each row."""
    pass_threshold: float
    """A score at or above it passes."""
    thresholds: Mapping[str, float | None] = field(default_factory=dict)
    """Per recorded score its own threshold, if it has one; no eval function is among them."""
    absent: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Per recorded score and run, 1 when the run ended and did not record it."""
    row_names: Sequence[str]
    """A row's name, as people see it."""
    scores: Mapping[str, Sequence[float]]
    """Per eval function, a score a run; NaN where there is none."""
    finished: Sequence[int]
    """Per run, 1 when it ended (well or in an error), 0 when it was not run or got lost."""
    errors: Sequence[int]
    """Per run, 1 when it ended in an error (not when it only scored low)."""
    duration_s: Sequence[float]
    """Per run, seconds; NaN when not known."""
    tokens: Sequence[float]
    """Per run, tokens; NaN when not known."""
    cost_usd: Sequence[float]
    """Per run, US dollars; NaN when not known."""
    agent_failed: Sequence[int]
    """Per run, 1 when the agent itself failed: its scores are 0.0, and none was given."""
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Dataset columns to slice by, one value a row."""
    row_keys: Sequence[str] = ()
    """What identifies a row in another session: its id, else its index. Empty: the names."""
    row_digests: Sequence[str] = ()
    """A digest of each row's content; "" or empty where it is not known."""
    score_limits: tuple[float, float] | None = None
    """Between what unknown scores lie; None: as those that are known tell."""

    @property
    def eval_fns(self) -> tuple[str, ...]:
        """Names of the eval functions, in the order they were given."""
        return tuple(self.scores)

    @property
    def rows(self) -> range:
        """Every row's position."""
        return range(len(self.row_names))

    def row_scores(self, eval_fn: str, row: int) -> Sequence[float]:
        """Return the n scores of one row."""
        return self.scores[eval_fn][row * self.n : (row + 1) * self.n]

    def rows_of_scores(
        self, eval_fn: str, rows: Iterable[int], limits: tuple[float, float] | None = None
    ) -> Iterator[RowScores]:
        """Yield what is known of some rows' scores; `limits`: in place of `score_range`."""
        low, high = limits or self.score_range(eval_fn)
        n, column, finished = self.n, self.scores[eval_fn], self.finished
        threshold, absent = self.threshold(eval_fn), self.absent.get(eval_fn)
        for row in rows:
            start, end = row * n, (row + 1) * n
            known = [score for score in column[start:end] if not isnan(score)]
            if absent is None:
                yield RowScores(known, sum(finished[start:end]), n, threshold, low, high)
            else:
                left = n - sum(absent[start:end])
                yield RowScores(known, len(known), left, threshold, low, high)

    def threshold(self, eval_fn: str) -> float:
        """Return from which score on a function's runs pass; infinity where none does."""
        if eval_fn not in self.thresholds:
            return self.pass_threshold
        own = self.thresholds[eval_fn]
        return math.inf if own is None else own

    def has_threshold(self, eval_fn: str) -> bool:
        """Return whether there is any: it is an eval function's, or its own."""
        return self.threshold(eval_fn) < math.inf

    def has_run(self, row: int) -> bool:
        """Return whether a run of the row has ended."""
        return any(self.finished[row * self.n : (row + 1) * self.n])

    def has_value(self, eval_fn: str, row: int, case: Case) -> bool:
        """Return whether a metric of the function has a value for the row, in a case."""
        [scores] = self.rows_of_scores(eval_fn, [row], _UNIT)
        return bool(scores.ended if case == "value" else scores.n)

    def has_score(self, eval_fn: str, rows: Sequence[int]) -> bool:
        """Return whether any run of some rows has a score: else there are no figures."""
        return any(self.were_scored(eval_fn, rows))

    def were_scored(self, eval_fn: str, rows: Sequence[int]) -> Iterator[bool]:
        """Yield for each run of some rows whether the function has given it a score."""
        scores = self.run_values(self.scores[eval_fn], rows)
        failed = self.run_values(self.agent_failed, rows)
        return (not isnan(score) and not own for score, own in zip(scores, failed, strict=True))

    def run_values(self, column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
        """Return the values of all runs of some different rows."""
        if len(rows) == len(self.row_names):
            return column
        n = self.n
        return [value for row in rows for value in column[row * n : (row + 1) * n]]

    def count(self, eval_fn: str, row: int) -> Count:
        """Return the passes, fails and unknown runs of one row."""
        [scores] = self.rows_of_scores(eval_fn, [row], _UNIT)
        found = sum(passes(score, scores.pass_threshold) for score in scores.known)
        return Count(found, len(scores.known), scores.n - len(scores.known))

    def score_range(self, eval_fn: str) -> tuple[float, float]:
        """Between what an unknown score lies: min(0, lowest seen) and max(1, highest seen).

        With `score_limits`, between those.
        """
        if self.score_limits is not None:
            return self.score_limits
        seen = [score for score in self.scores[eval_fn] if not isnan(score)]
        return min(0.0, min(seen, default=0.0)), max(1.0, max(seen, default=1.0))

    def rows_where(self, column: str, value: str) -> list[int]:
        """Rows whose `column` (any case) reads as `value`; KeyError when there is no such column.

        A number matches when it is equal, true, false and null as they are in JSON.
        """
        values = self.columns[match_column(self.columns, column)]
        return [row for row in self.rows if reads_as(values[row], value)]


class RowScores(NamedTuple):
    """The scores of one row and function, and between what those that are unknown lie."""

    known: Sequence[float]
    ended: int
    """Runs that have ended, with a score or not; of a recorded score, those that recorded it."""
    n: int
    """Runs planned; of a recorded score, without those that did not record it."""
    pass_threshold: float
    low: float
    high: float

    def filled(self, case: Case) -> list[float]:
        """Return the scores of a case: for the value, of the runs that have ended."""
        if case == "value":
            return [*self.known, *[0.0] * (self.ended - len(self.known))]
        filling = self.low if case == "worst" else self.high
        return [*self.known, *[filling] * (self.n - len(self.known))]

    def passes_of(self, case: Case) -> tuple[int, int]:
        """Return the runs of a case, and how many of them pass."""
        found = sum(score >= self.pass_threshold for score in self.known)
        if case == "best":
            found += self.n - len(self.known)
        return (self.ended if case == "value" else self.n), found


def match_column(columns: Mapping[str, object], name: str) -> str:
    """The column of that name, without regard to case; KeyError when there is none."""
    if name in columns:
        return name
    for column in columns:
        if column.casefold() == name.casefold():
            return column
    raise KeyError(name)


def reads_as(value: object, text: str) -> bool:
    """Whether a dataset value is what `text` says.

    >>> [reads_as(v, t) for v, t in [(3, "3.0"), (True, "true"), (None, "null"), ("3", "3.0")]]
    [True, True, True, False]
    """
    if value is None or isinstance(value, bool):
        return written(value) == text.casefold()
    if isinstance(value, (int, float)):
        try:
            return float(text) == value
        except ValueError:
            return False
    return str(value) == text


def written(value: object) -> str:
    """A dataset value as `reads_as` takes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


class ScoreTableBuilder:
    """Collects runs, in any order, into a ScoreTable."""

    def __init__(
        self,
        *,
        n: int,
        pass_threshold: float,
        eval_fns: Sequence[str],
        row_names: Sequence[str],
        thresholds: Mapping[str, float | None] | None = None,
        columns: Mapping[str, Sequence[object]] | None = None,
        row_keys: Sequence[str] = (),
        row_digests: Sequence[str] = (),
    ) -> None:
        """Every row has n runs, all not run yet. `thresholds` has every recorded score."""
        runs = n * len(row_names)
        self._scores = {name: _unknown(runs) for name in eval_fns}
        self._finished, self._errors, self._agent_failed = (bytearray(runs) for _ in range(3))
        self._absent = {name: bytearray(runs) for name in thresholds or ()}
        self._duration_s, self._tokens = _unknown(runs), _unknown(runs)
        self._cost_usd = _unknown(runs)
        self._table = ScoreTable(
            n=n,
            pass_threshold=pass_threshold,
            thresholds=thresholds or {},
            absent=self._absent,
            row_names=row_names,
            scores=self._scores,
            finished=self._finished,
            errors=self._errors,
            duration_s=self._duration_s,
            tokens=self._tokens,
            cost_usd=self._cost_usd,
            agent_failed=self._agent_failed,
            columns=columns or {},
            row_keys=row_keys,
            row_digests=row_digests,
        )

    def add(
        self,
        row: int,
        run: int,
        *,
        scores: Mapping[str, float | None],
        error: bool = False,
        agent_failed: bool = False,
        duration_s: float | None = None,
        tokens: float | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Notes a run that ended. A score that is None or absent is unknown.

        What the agent itself is to blame for (it raised, it ran out of time) is no unknown: give
        it the score 0.0, and `agent_failed`. A recorded score that is None is unknown, one that is
        left out is absent.
        """
        at = row * self._table.n + run
        self._finished[at], self._errors[at] = 1, int(error)
        self._agent_failed[at] = int(agent_failed)
        for name, column in self._scores.items():
            column[at] = _number(scores.get(name))
        for name, absent in self._absent.items():
            absent[at] = name not in scores
        self._duration_s[at] = _number(duration_s)
        self._tokens[at] = _number(tokens)
        self._cost_usd[at] = _number(cost_usd)

    def has(self, row: int, run: int) -> bool:
        """Return whether the run has been added."""
        return bool(self._finished[row * self._table.n + run])

    def table(self) -> ScoreTable:
        """What was added so far. It shares this builder's columns: later runs show in it."""
        return self._table


def _unknown(runs: int) -> array[float]:
    return array("d", [UNKNOWN]) * runs


def _number(value: float | None) -> float:
    return UNKNOWN if value is None else float(value)
