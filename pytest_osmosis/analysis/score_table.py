"""What happened, as arrays of numbers: the form that gates, comparisons and intervals work on.

An array has a row for each row of the dataset and a column for each run; NaN stands for "not
known". `RunResult.counted_score` says what a run counts for that has no score: 0.0, or nothing.

The module that imports numpy: no session imports it before its first requests are out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..run_result import AT_FIRST, RunResult, SuiteInfo
from .planned_rows import PlannedRows, ran
from .statistics.clustered import is_clustered
from .statistics.estimators import scale_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from ..suite_results import SuiteResult
    from .statistics.estimators import Flags, Floats, Places

Case = Literal["value", "worst", "best"]
"""What runs are taken for whose score is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """One session with one model."""

    rows: PlannedRows
    n: int
    """Runs planned for each row."""
    pass_threshold: float
    """A score at or above it passes."""
    own: Mapping[str, float] = field(default_factory=dict)
    """Those of eval functions that have their own."""
    thresholds: Mapping[str, float | None] = field(default_factory=dict)
    """Per recorded score its own threshold, if it has one; no eval function is among them."""
    absent: Mapping[str, Flags] = field(default_factory=dict)
    """Per recorded score, the runs that ended and did not record it."""
    scores: Mapping[str, Floats]
    """Per eval function, in the order they were given."""
    runs: NDArray[np.object_]
    """The runs that ended (well or in an error), and were not lost; None for the others."""
    finished: Flags
    given: Mapping[str, Flags]
    """Per eval function, the runs that it gave a score; others that count, count as 0.0."""
    clusters: Places | None = None
    """The cluster of each row, as a number; None where rows are independent."""
    cluster_names: Sequence[str] = ()
    """By that number; a row of a negative one is a cluster by itself."""
    score_limits: Mapping[str, tuple[float, float]] | None = None
    """Per eval function, between what scores lie; None: as those that are known show."""

    @property
    def eval_fns(self) -> tuple[str, ...]:
        """Names of the eval functions, in the order they were given."""
        return tuple(self.scores)

    def threshold(self, eval_fn: str) -> float:
        """Return from which score on a function's runs pass; infinity where none does."""
        if eval_fn not in self.thresholds:
            return self.own.get(eval_fn, self.pass_threshold)
        own = self.thresholds[eval_fn]
        return math.inf if own is None else own

    def has_threshold(self, eval_fn: str) -> bool:
        """Return whether there is any: it is an eval function's, or its own."""
        return self.threshold(eval_fn) < math.inf

    def counted(self, eval_fn: str) -> Flags:
        """Return which runs count in the function's figures."""
        return ~np.isnan(self.scores[eval_fn])

    def has_score(self, eval_fn: str) -> bool:
        """Return whether any run counts: else there are no figures.

        What ends a session at its first runs does not: no run of it could have been scored.
        """
        runs = self.runs[self.counted(eval_fn)]
        return bool(self.given[eval_fn].any()) or any(
            run.error_kind not in AT_FIRST for run in runs
        )

    def unknown(self, eval_fn: str) -> int:
        """Count the runs whose score is not known."""
        missing = np.isnan(self.scores[eval_fn])
        return int((missing & ~self.absent.get(eval_fn, np.False_)).sum())

    @property
    def ended(self) -> list[RunResult]:
        """The runs that ended."""
        runs: list[RunResult] = self.runs[self.finished].tolist()
        return runs

    def unknown_range(self, eval_fn: str) -> tuple[float, float]:
        """Between what an unknown score lies: 0 and 1, or anywhere once one was seen outside."""
        found = self.score_range(eval_fn)
        return found if found == (0.0, 1.0) else (-math.inf, math.inf)

    def score_range(self, eval_fn: str) -> tuple[float, float]:
        """Between what scores lie: min(0, lowest seen) and max(1, highest seen).

        With `score_limits`, between those.
        """
        if self.score_limits is not None:
            return self.score_limits[eval_fn]
        scores = self.scores[eval_fn]
        seen = scores[~np.isnan(scores)]
        return float(seen.min(initial=0.0)), float(seen.max(initial=1.0))

    def row_scores(self, eval_fn: str, case: Case = "value") -> RowScores:
        """Return the scores of a case: for the value, of the runs that count."""
        scores, absent = self.scores[eval_fn], self.absent.get(eval_fn)
        is_known = ~np.isnan(scores)
        if case == "value":
            fill, counted = 0.0, is_known
        else:
            fill = self.unknown_range(eval_fn)[case == "best"]
            counted = np.ones_like(is_known) if absent is None else ~absent
        filled = np.where(is_known, scores, fill)
        passed = is_known & (filled >= self.threshold(eval_fn))
        if case == "best":
            passed |= ~is_known & counted
        return RowScores(filled, counted, counted.sum(axis=1), passed.sum(axis=1), self.clusters)

    def take(self, places: Sequence[int] | Places) -> ScoreTable:
        """Return the rows at these places; unknown scores lie between what they do here."""
        at = np.asarray(places, dtype=np.intp)
        if np.array_equal(at, np.arange(len(self.rows))):
            return self
        return replace(
            self,
            rows=self.rows.take(at.tolist()),
            scores={name: scores[at] for name, scores in self.scores.items()},
            absent={name: absent[at] for name, absent in self.absent.items()},
            runs=self.runs[at],
            finished=self.finished[at],
            given={name: given[at] for name, given in self.given.items()},
            clusters=None if self.clusters is None else self.clusters[at],
            score_limits={name: self.score_range(name) for name in self.scores},
        )

    def record(self, runs: Iterable[RunResult]) -> None:
        """Take in runs that have ended; those that were not planned are left out."""
        ended, place_of = list(runs), self.rows.place_of
        places = np.array([place_of.get(run.row_index, -1) for run in ended], dtype=np.intp)
        at = places, _column("run_index", ended, np.intp)
        is_planned = (places >= 0) & (at[1] < self.n)
        if not is_planned.all():
            return self.record(compress(ended, is_planned))
        self.runs[at] = np.fromiter(ended, dtype=object, count=len(ended))
        self.finished[at] = True
        scores = [run.scores.get(name) for run in ended for name in self.scores]
        columns = np.array(scores, dtype=float).reshape(len(ended), len(self.scores)).T + 0.0
        failed = [place for place, run in enumerate(ended) if run.error_type is not None]
        for name, counted in zip(self.scores, columns, strict=True):
            self.given[name][at] = ~np.isnan(counted)
            if name in self.absent:  # a run that failed otherwise could have recorded anything
                broken = _column("error_type", ended, object)
                by_agent = (broken == "agent") | (broken == "timeout")
                missing = np.isnan(counted) & _column("success", ended, bool)
                self.absent[name][at] = by_agent | missing
                counted[by_agent] = math.nan
            else:
                for place in failed:
                    score = ended[place].counted_score(name)
                    counted[place] = math.nan if score is None else score
            self.scores[name][at] = counted


def _column(name: str, runs: Iterable[RunResult], kind: DTypeLike) -> NDArray[Any]:
    """Return a field of each run."""
    return np.array([*map(attrgetter(name), runs)], dtype=kind)


@dataclass(frozen=True)
class RowScores:
    """The scores of one function in a case."""

    scores: Floats
    counted: Flags
    """Which of them count in this case."""
    runs: Places
    """How many do, a row."""
    passes: Places
    """How many pass, a row."""
    clusters: Places | None = None
    """The cluster of each row; None where rows are independent."""

    def where(self, rows: Flags) -> RowScores:
        """Return these rows alone."""
        if rows.all():
            return self
        clusters = None if self.clusters is None else self.clusters[rows]
        parts = (self.scores[rows], self.counted[rows], self.runs[rows], self.passes[rows])
        return RowScores(*parts, clusters)

    @property
    def of_runs(self) -> Floats:
        """The scores of all runs that count."""
        return self.scores[self.counted]

    @property
    def lowest(self) -> Floats:
        """Each row's lowest score."""
        lowest: Floats = np.where(self.counted, self.scores, math.inf).min(axis=1)
        return lowest

    @property
    def highest(self) -> Floats:
        """Each row's highest score."""
        highest: Floats = np.where(self.counted, self.scores, -math.inf).max(axis=1)
        return highest

    @property
    def means(self) -> Floats:
        """Each row's mean, as `estimators.mean`: of the same scores the same, in any order."""
        held = np.where(self.counted, self.scores, 0.0)
        scale = scale_of(held)
        sums = np.array([*map(math.fsum, (held / scale).tolist())])
        return np.clip(sums / self.runs, self.lowest / scale, self.highest / scale) * scale

    def estimates(self, of_row: Callable[[int, int, int], float], k: int) -> Floats:
        """Return `of_row(runs, passes, k)` of each row, exact: computed once for equal rows."""
        kinds, places = self._kinds
        return np.array([of_row(runs, passes, k) for runs, passes in kinds])[places]

    @cached_property
    def _kinds(self) -> tuple[list[tuple[int, int]], Places]:
        """Which numbers of runs and passes there are, and which of them each row has."""
        base = self.counted.shape[1] + 1
        found, places = np.unique(self.runs * base + self.passes, return_inverse=True)
        return [divmod(each, base) for each in found.tolist()], places


def empty_score_table(
    info: SuiteInfo,
    rows: PlannedRows,
    eval_fns: Iterable[str] | None = None,
    thresholds: Mapping[str, float | None] | None = None,
) -> ScoreTable:
    """Return a table of which nothing has run yet; `thresholds` has every recorded score.

    Rows in quarantine are left out of it, and so of all that is computed.
    """
    rows = rows.deciding(info)
    shape = len(rows), info.n
    names = info.eval_fns if eval_fns is None else eval_fns
    return ScoreTable(
        rows=rows,
        n=info.n,
        pass_threshold=info.pass_threshold,
        own=info.thresholds,
        thresholds=thresholds or {},
        absent={name: np.zeros(shape, bool) for name in thresholds or ()},
        scores={name: np.full(shape, math.nan) for name in names},
        runs=np.full(shape, None),
        finished=np.zeros(shape, bool),
        given={name: np.zeros(shape, bool) for name in names},
        clusters=clusters_of(info, rows),
        cluster_names=tuple(info.clusters),
    )


def clusters_of(info: SuiteInfo, rows: PlannedRows) -> Places | None:
    """Return the cluster of each row as a number; None where each row is one by itself.

    A row of which no cluster is known is one.
    """
    place_of = {row: at for at, found in enumerate(info.clusters.values()) for row in found}
    found = np.array([place_of.get(row, -1 - row) for row in rows.indices], dtype=np.intp)
    return found if info.clusters and is_clustered(found) else None


def score_table_of(
    suite: SuiteResult, rows: PlannedRows | None = None, eval_fns: Iterable[str] = ()
) -> ScoreTable:
    """Return a suite's runs; without `rows`, only rows with a run are known.

    `eval_fns` are names besides those of the suite's eval functions and recorded scores.
    """
    runs, own = list(suite.runs), suite.info.eval_fns
    recorded = sorted(set(chain.from_iterable(run.scores for run in runs)).difference(own))
    names = list(dict.fromkeys([*own, *recorded, *eval_fns]))
    others = [name for name in names if name not in own]
    found = {name: at for run in runs if others for name, at in run.thresholds.items()}
    thresholds = {name: found.get(name) for name in others}
    table = empty_score_table(suite.info, ran(suite) if rows is None else rows, names, thresholds)
    table.record(runs)
    return table
