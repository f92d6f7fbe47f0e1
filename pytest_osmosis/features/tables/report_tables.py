"""A JSON report in Python: what it says, and its rows, runs, scores and calls as tables.

`pytest_osmosis.read_report` returns it. Calls and questions are read from the conversations beside
the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel

from ...reports.json_models import Run
from ...reports.saved_report import SavedReport, read_saved
from ...run_result import RunResult, passes
from ...suite_results import RowResult, SuiteResult
from . import runs_table

if TYPE_CHECKING:
    import pandas
    import pyarrow


class RowRecord(BaseModel):
    """One row of a suite."""

    suite: str
    row_index: int
    row_id: str | None
    user_prompt: str | None
    """None where no conversation of the row is beside the report; so is `ground_truth`."""
    ground_truth: str | None
    runs: int
    passed: int
    """Runs that passed."""


class RunRecord(Run):
    """One run, with the fields that it has in the report."""

    suite: str
    row_index: int
    row_id: str | None


class ScoreRecord(BaseModel):
    """One eval function's score of one run."""

    suite: str
    row_index: int
    run_index: int
    eval_fn: str
    score: float
    passed: bool
    """Whether it reaches the pass threshold."""
    reason: str | None


class CallRecord(BaseModel):
    """One model call of one run; None is unknown."""

    suite: str
    row_index: int
    run_index: int
    call_index: int
    """From 0, in the order in which they were answered."""
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str | None = None
    latency_ms: int | None = None
    retries: int | None = None
    cost_usd: float | None = None


M = TypeVar("M", bound=BaseModel)


class Records(list[M], Generic[M]):
    """Records of one kind, which can become a table."""

    def __init__(self, kind: type[M], records: Iterator[M]) -> None:
        super().__init__(records)
        self._kind = kind

    def to_arrow(self) -> pyarrow.Table:
        """Return a `pyarrow.Table`: a column a field, but for those that are mappings."""
        import pyarrow

        columns = {name: [getattr(each, name) for each in self] for name in self._kind.model_fields}
        return pyarrow.table(
            {
                name: values
                for name, values in columns.items()
                if not any(isinstance(value, dict) for value in values)
            }
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return a `pandas.DataFrame`; raise ModuleNotFoundError where pandas is not installed."""
        return _as_pandas(self.to_arrow())


class ReportTables:
    """A JSON report: `report` has all that the file says, the others are its tables."""

    def __init__(self, saved: SavedReport) -> None:
        self.report = saved.report
        """Config, summary, figures with intervals, gates and the like, as its schema has them."""
        self._saved = saved

    @cached_property
    def rows(self) -> Records[RowRecord]:
        """The rows, by suite and index."""
        return Records(RowRecord, (self._row(suite, row) for suite, row in self._each_row()))

    @cached_property
    def runs(self) -> Records[RunRecord]:
        """The runs, by row and index."""
        return Records(RunRecord, (_run(run) for _, run in self._each_run()))

    @cached_property
    def scores(self) -> Records[ScoreRecord]:
        """A record for each run and eval function that scored it."""
        return Records(ScoreRecord, self._each_score())

    @cached_property
    def calls(self) -> Records[CallRecord]:
        """The model calls; none where the conversations are not beside the report."""
        return Records(CallRecord, self._each_call())

    def to_arrow(self) -> pyarrow.Table:
        """Return the runs as a `pyarrow.Table`: the columns of `--osmosis-runs-table`."""
        return runs_table.as_arrow(self._saved.result)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the same as a `pandas.DataFrame`; ModuleNotFoundError without pandas."""
        return _as_pandas(self.to_arrow())

    def __repr__(self) -> str:
        summary = self.report.summary
        return f"<report of {self.report.config.model}: {summary.total_runs} runs>"

    def _each_row(self) -> Iterator[tuple[SuiteResult, RowResult]]:
        return ((suite, row) for suite in self._saved.result.suites for row in suite.rows)

    def _each_run(self) -> Iterator[tuple[SuiteResult, RunResult]]:
        return ((suite, run) for suite, row in self._each_row() for run in row.runs)

    def _row(self, suite: SuiteResult, row: RowResult) -> RowRecord:
        data = row.data
        return RowRecord(
            suite=suite.info.name,
            row_index=row.row_index,
            row_id=row.row_id,
            user_prompt=None if data is None else data.user_prompt,
            ground_truth=None if data is None else data.ground_truth,
            runs=len(row.runs),
            passed=sum(run.passed for run in row.runs),
        )

    def _each_score(self) -> Iterator[ScoreRecord]:
        for suite, run in self._each_run():
            for name, score in run.scores.items():
                threshold = run.thresholds.get(name, suite.info.pass_threshold)
                yield ScoreRecord(
                    suite=run.suite,
                    row_index=run.row_index,
                    run_index=run.run_index,
                    eval_fn=name,
                    score=score,
                    passed=passes(score, threshold),
                    reason=run.reasons.get(name),
                )

    def _each_call(self) -> Iterator[CallRecord]:
        for _, run in self._each_run():
            record = self._saved.conversations(run.run_id)
            for index, call in enumerate([] if record is None else record.calls):
                where = run.run_id._asdict()
                yield CallRecord(**where, call_index=index, **call)


def _run(run: RunResult) -> RunRecord:
    return RunRecord(**{name: getattr(run, name) for name in RunRecord.model_fields})


def _as_pandas(table: pyarrow.Table) -> pandas.DataFrame:
    try:
        return table.to_pandas()
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "to_pandas needs pandas: pip install pandas, or take to_arrow"
        ) from None


def read_report(path: str | PathLike[str]) -> ReportTables:
    """Return a report and its tables; raise UnreadableReport, which names what is wrong."""
    return ReportTables(read_saved(Path(path)))
