"""One run beside another: what changed, how sure that is, and which rows no longer pass.

The figures are those of `osmosis eval compare`.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from pytest_osmosis.suite_results import SuiteResult
from pytest_osmosis.verdicts import BaselineReport

from ..database.models import Run
from ..errors import Refused
from .context import PageContext
from .run_page import comparable_runs, find_run, report_of
from .run_view import RunView, view_of

_ROWS = 100
"""Rows that changed, of each kind, on the page."""
_ANSWER = 400


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """A run of the two."""

    view: RunView
    suite: SuiteResult

    @property
    def subject(self) -> str:
        """What was evaluated, in a line."""
        info = self.suite.info
        return f"{info.model}, {self.suite.finished:,} rollouts, pass >= {info.pass_threshold:g}"


def show_comparison(context: PageContext) -> Response:
    """Show what changed from the baseline to the run."""
    run, baseline = (_compared(context, context.query(name)) for name in ("run", "baseline"))
    from pytest_osmosis.reports.view import against

    report = _report(run, baseline)
    _, named = find_run(context, run.view.name)
    return context.show(
        "compare.html",
        active="runs",
        run=run,
        baseline=baseline,
        notes=report.notes,
        functions=[against(comparison) for comparison in report.comparisons],
        others=comparable_runs(context, named),
        rows_shown=_ROWS,
        answer_length=_ANSWER,
    )


def _compared(context: PageContext, name: str) -> ComparedRuns:
    if not name:
        raise Refused(422, "invalid", "name two runs: one as run, one as baseline")
    _, run = find_run(context, name)
    return ComparedRuns(view_of(run), _suite(run))


def _suite(run: Run) -> SuiteResult:
    from pytest_osmosis.reports.json_reader import checked, result_of

    try:
        return result_of(checked(report_of(run))).suites[0]
    except ValueError:
        message = f"the report of {run.name} is not one that this version reads"
        raise Refused(422, "unreadable_report", message) from None


def _report(run: ComparedRuns, baseline: ComparedRuns) -> BaselineReport:
    from pytest_osmosis.analysis.aggregate import CONFIDENCE
    from pytest_osmosis.analysis.baseline import baseline_of, compared
    from pytest_osmosis.analysis.score_table import score_table_of

    return compared(
        run.suite,
        score_table_of(run.suite),
        baseline=baseline_of(baseline.suite, baseline.view.name),
        confidence=CONFIDENCE,
    )
