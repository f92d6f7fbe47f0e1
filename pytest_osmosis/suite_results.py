"""What came of whole suites: `SuiteResult`, and `EvalResult` for an evaluation.

Plain frozen values, made when a session ends; `reports/` shows and writes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from .run_result import DECIDED, is_counted
from .verdicts import EvalVerdict, overall

if TYPE_CHECKING:
    from .run_result import RunResult, SuiteInfo
    from .verdicts import GateResult, Interval

_T = TypeVar("_T", int, float)


@dataclass(frozen=True, slots=True)
class Usage:
    """What some runs have used."""

    runs: int = 0
    tokens: int | None = 0
    """None where it is known of no run."""
    unknown_tokens: int = 0
    """Runs whose endpoint did not say how many tokens it used."""
    cost_usd: float | None = None
    """What is known of it; None when nothing is."""
    unknown_cost: int = 0
    """Runs whose cost is not known; one of which no call was answered cost nothing."""

    @classmethod
    def of(cls, runs: Collection[RunResult]) -> Usage:
        """Return the sums over runs."""
        tokens = [run.tokens for run in runs if run.tokens is not None]
        costs = [run.cost_usd for run in runs if run.cost_usd is not None]
        return cls(
            runs=len(runs),
            tokens=sum(tokens) if tokens or not runs else None,
            unknown_tokens=len(runs) - len(tokens),
            cost_usd=sum(costs) if costs else None,
            unknown_cost=sum(run.spent_usd is None for run in runs if run.cost_usd is None),
        )

    def __add__(self, other: Usage) -> Usage:
        """Return the sums over the runs of both."""
        if not (self.runs and other.runs):
            return self if self.runs else other
        return Usage(
            self.runs + other.runs,
            _added(self.tokens, other.tokens),
            self.unknown_tokens + other.unknown_tokens,
            _added(self.cost_usd, other.cost_usd),
            self.unknown_cost + other.unknown_cost,
        )


def _added(one: _T | None, other: _T | None) -> _T | None:
    """The sum of what is known."""
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of one eval function, over the runs that count."""

    metric: str
    """As people write it: "mean", "pass@3", "pass^3"."""
    field: str
    """Its name in the JSON summary: "pass_at_3"."""
    value: float | None
    """None where no run counts, and where every row has fewer runs that do than pass@k takes."""
    interval: Interval | None = None
    """None where it is undefined."""
    rows: int | None = None
    """Of how many rows it is made; None where it is not made of rows."""


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """One eval function over the runs that count; where none does there are no figures.

    A recorded score, which is of no eval function, has them over the runs that recorded it.
    """

    name: str
    figures: Mapping[str, Figure]
    """By metric: "mean", "std", "min", "max", "pass@1", …; no pass@k for n = 1."""
    scored: int
    """Runs that count: with a score, or with a failure of the agent's or of the function's own."""
    missing: int
    """Runs that have ended and do not count."""
    is_recorded: bool = False
    """It is no eval function: tests have recorded it, in the runs that they chose."""
    pass_threshold: float | None = None
    """Its own, if it has one; a recorded score without one has no pass@k."""

    def __getitem__(self, metric: str) -> float | None:
        """Return the value of a metric: `function["pass@3"]`."""
        return self.figures[metric].value

    @property
    def mean(self) -> float | None:
        """The mean score; None where no run counts."""
        return self["mean"]


@dataclass(frozen=True, slots=True)
class RowData:
    """What the dataset holds of a row, without secrets."""

    user_prompt: str
    ground_truth: str | None
    columns: Mapping[str, str | float | bool | None]
    """The row's other columns; what is neither number, boolean nor null as text."""
    system_prompt: str = ""
    own_names: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    """What plays a role, by the name of its column where that is another."""


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row and its runs, by run index."""

    row_index: int
    row_id: str | None
    runs: tuple[RunResult, ...]
    digest: str = ""
    """Of the row's content; "" where it is not known."""
    data: RowData | None = None
    """There for reports that show it, as far as the dataset is at hand."""

    @property
    def is_mixed(self) -> bool:
        """Some of its runs pass and others fail; those that do not count do neither."""
        counted = (run for run in self.runs if is_counted(run.error_type, run.error_kind))
        return len({run.passed for run in counted}) > 1


@dataclass(frozen=True, slots=True)
class OtherSide:
    """What stands opposite to the rows of a suite, on a page of all its runs."""

    word: str
    """What it is."""
    source: str
    """Where it is from."""
    is_whole: bool
    """Every row has a counterpart: one of which nothing is said here is the same there."""
    changed: Mapping[str, Collection[int]]
    """The indices of the rows that have a verdict, by its word."""
    means: Mapping[int, Mapping[str, float]]
    """Of the counterparts, by row index and eval function."""
    runs: Mapping[int, Sequence[RunResult]]
    """Of the counterparts that differ, by row index."""
    tools: Mapping[tuple[int, int], Sequence[str]]
    """What these called, by row index and run."""


class Section:
    """What a feature adds to the result of a suite; each report asks it for its part."""

    template = ""
    """The template in `features/` with macros for its parts of the page; "": it has none."""

    @property
    def holds_answers(self) -> bool:
        """Whether it holds what runs answered: a file of it is for its owner alone."""
        return False

    def document(self) -> Any:
        """Return its value in the JSON report."""
        raise NotImplementedError

    def joined(self, others: Sequence[Section], whole: SuiteResult) -> Section | None:
        """Return the section of a whole suite, of whose parts these are; None: it has none."""
        return None

    def tables(self, suite: SuiteResult) -> Iterable[Any]:
        """Return `ColumnTable`s of `reports.tables`, which reports show below the suite's own."""
        return ()

    def lines(
        self, suite: SuiteResult, *, is_titled: bool, width: int, verbose: bool
    ) -> Iterable[str]:
        """Return its lines in the summary.

        `is_titled`: below the name of one of several suites; `verbose`: more than is counted.
        """
        return ()

    def usage(self, suite: SuiteResult) -> Iterable[str]:
        """Return sentences about what was used beside the suite's own runs."""
        return ()

    def markdown(self) -> Iterable[str]:
        """Return its lines in the Markdown report."""
        return ()

    def in_short(self) -> Iterable[str]:
        """Return what it comes to, in sentences."""
        return ()

    def other_side(self, suite: SuiteResult) -> OtherSide | None:
        """Return what the rows of the suite stand beside, if they do."""
        return None

    def rows_of(self, gate: GateResult) -> Collection[int] | None:
        """Return the indices of the rows that a gate was held at; None: it is of all, or others."""
        return None

    def references(self, suite: SuiteResult) -> Mapping[str, Any]:
        """Return the `ScoreTable`s that gates need of it, by name."""
        return {}

    def interval(self, gate: GateResult) -> Interval | None:
        """Return the interval of the figure that a gate is about, if it has that."""
        return None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """One evaluation, aggregated."""

    info: SuiteInfo
    rows: tuple[RowResult, ...]
    functions: tuple[FunctionResult, ...]
    selected: int
    """Runs that were selected to run (`-k`, node ids, `--lf` select fewer than all)."""
    finished: int
    short_rows: int
    """Rows with fewer than n finished runs."""
    errors: Mapping[str, int]
    """Runs by error type."""
    finish_reasons: Mapping[str, int]
    used: Usage
    retries: int
    repeated: Usage = Usage()
    """By runs of earlier sessions that were, or are to be, run again: in no other figure.

    Those that used nothing are not among them.
    """
    verdicts: tuple[GateResult, ...] = ()
    """On the gates, in their order."""
    verdict: EvalVerdict | None = None
    """What its session made of it; None where that has not said so."""
    sections: Mapping[str, Section] = field(default_factory=dict)
    """What features add, by its name in the JSON report."""
    companion: SuiteResult | None = None
    """The suite that accompanies it: the same rows, of which no run decides."""

    @property
    def runs(self) -> Iterator[RunResult]:
        """Every run, row by row."""
        return chain.from_iterable(row.runs for row in self.rows)

    @property
    def deciding_rows(self) -> Sequence[RowResult]:
        """The rows that figures are of: all but those in quarantine."""
        aside = self.info.is_quarantined
        return [row for row in self.rows if not aside(row.row_index, row.row_id)]

    @property
    def deciding_runs(self) -> Iterator[RunResult]:
        """The runs of these rows."""
        return chain.from_iterable(row.runs for row in self.deciding_rows)

    @property
    def deciding(self) -> int:
        """How many of these have ended, also those of rows that are not at hand."""
        aside = self.info.is_quarantined
        rows = (row for row in self.rows if aside(row.row_index, row.row_id))
        return self.finished - sum(len(row.runs) for row in rows)

    @property
    def confidence(self) -> float | None:
        """The confidence of its intervals; None where there are none."""
        figures = (each.figures.values() for each in self.functions)
        intervals = (each.interval for each in chain.from_iterable(figures))
        return next((each.confidence for each in intervals if each is not None), None)

    def with_rows(self, change: Callable[[RowResult], RowResult]) -> SuiteResult:
        """Return the suite with each row changed."""
        return replace(self, rows=tuple(map(change, self.rows)))

    @property
    def cached(self) -> int:
        """Runs that an earlier session ran."""
        return sum(run.cached for run in self.runs)

    @property
    def answer_kinds(self) -> Mapping[str, int]:
        """Runs by the kind of their last answer, without those that have a usual one."""
        return dict(Counter(run.answer_kind for run in self.runs if run.answer_kind))

    @property
    def mixed_rows(self) -> int:
        """Rows of which some runs pass and others fail."""
        return sum(row.is_mixed for row in self.rows)

    @property
    def notes(self) -> Mapping[str, int]:
        """Runs by what was sent or is written otherwise than asked."""
        noted = (run.notes.split("; ") for run in self.runs if run.notes)
        return dict(Counter(chain.from_iterable(noted)))

    def total_of(self, name: str) -> int | None:
        """Return the sum of a count that few endpoints tell, over the runs that have it."""
        known = [count for run in self.runs if (count := getattr(run, name)) is not None]
        return sum(known) if known else None

    @property
    def complete(self) -> bool:
        """Every run of the evaluation has ended."""
        return self.finished == self.info.total_runs

    @property
    def has_gaps(self) -> bool:
        """A run that was selected has not ended, or ended in an error."""
        return self.finished < self.selected or bool(self.errors)

    @property
    def state(self) -> EvalVerdict:
        """What it came to: as its session said, else by its gates, or by its runs without any."""
        if self.verdict is not None:
            return self.verdict
        is_clean = self.finished >= self.selected and all(run.passed for run in self.deciding_runs)
        return overall([gate.outcome for gate in self.verdicts], all_passed=is_clean)

    def threshold_of(self, function: FunctionResult) -> float | None:
        """Return what a score of one of its functions passes at; None where nothing says it."""
        own = function.pass_threshold
        return self.info.pass_threshold if own is None and not function.is_recorded else own


@dataclass(frozen=True, slots=True)
class EvalResult:
    """All evaluations of a session."""

    suites: tuple[SuiteResult, ...]
    duration_ms: int
    """Wall time of the session."""
    halted: str | None = None
    """Why no further run was started, if so."""
    interrupted: str | None = None
    """The signal that ended the session before its time, if one did."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Versions, platform, git commit and command line; empty where no report needs them."""

    @property
    def is_decided(self) -> bool:
        """Whether it was stopped since every gate was decided without the runs that are left."""
        return self.halted == DECIDED

    def with_suites(self, change: Callable[[SuiteResult], SuiteResult]) -> EvalResult:
        """Return the result with each suite changed."""
        return replace(self, suites=tuple(map(change, self.suites)))

    @property
    def runs(self) -> Iterator[RunResult]:
        """Every run of every suite, in their order."""
        return (run for suite in self.suites for run in suite.runs)

    @property
    def state(self) -> EvalVerdict:
        """What the whole session came to: the worst of its evaluations."""
        return overall([suite.state for suite in self.suites], all_passed=True)

    @property
    def private_mode(self) -> int | None:
        """The mode of a report's file: 0600 where there are answers, else as the umask has it."""
        runs = (run for suite in self.with_companions for run in suite.runs)
        sections = (each for suite in self.suites for each in suite.sections.values())
        is_private = any(run.answer is not None for run in runs)
        return 0o600 if is_private or any(each.holds_answers for each in sections) else None

    @property
    def with_companions(self) -> list[SuiteResult]:
        """Every suite, each followed by the one that accompanies it."""
        pairs = ((suite, suite.companion) for suite in self.suites)
        return [each for pair in pairs for each in pair if each is not None]
