"""One run beside another: what changed, how sure that is, and which rows no longer pass.

The figures are those of `osmosis eval compare`.
"""

from __future__ import annotations

from starlette.responses import Response

from ..database.models import Run
from ..errors import Refused
from .context import PageContext
from .run_page import comparable_runs, find_run
from .run_rows import compare
from .run_view import RunView


def show_comparison(context: PageContext) -> Response:
    """Show what changed from the baseline to the run."""
    run, baseline = _runs(context)
    (before, suite), (asked, asked_before), notes, *functions = compare(context, run, baseline)
    return context.show(
        "compare.html",
        active="runs",
        sides=[(RunView(baseline), before), (RunView(run), suite)],
        submissions=[baseline.submission, run.submission],
        notes=notes,
        functions=functions,
        asked=asked,
        asked_before=asked_before,
        others=comparable_runs(context, run),
    )


def _runs(context: PageContext) -> list[Run]:
    """Return run and baseline; of two that were ticked in a list, the older one is the baseline."""
    query = context.request.query_params
    names = [name for name in (*query.getlist("run"), *query.getlist("baseline")) if name]
    if len(names) != 2:
        raise Refused(422, "invalid", "tick two runs in the list to compare them")
    runs = [find_run(context, name)[1] for name in names]
    if "baseline" in query:
        return runs
    return sorted(runs, key=lambda run: run.created_at, reverse=True)
