"""One run: its figures, its rows, its log while it is written; stopping it, running it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby, pairwise, zip_longest

from sqlalchemy import select
from starlette.responses import HTMLResponse, Response

from osmosis_ai.platform.run_kinds import EVALUATION, KINDS, TRAINING, RunKind

from ..accounts.tokens import LABEL_LENGTH, is_label
from ..database.connection import lock
from ..database.models import LogLine, Run, Workspace, now
from ..errors import Refused, not_found
from ..execution import admission, deletion
from ..runs import logs, records
from ..runs.submissions import submission_model
from .context import PageContext
from .rendering import go_to, visible
from .run_rows import Recent, list_rows, render_report, report_of
from .run_view import RunView

LINES = 200
"""Of a log on one page."""
_LINGERS = timedelta(seconds=10)
"""For so long after its end a run may still get lines and its report."""
_COMPARABLE = 50


def show_run(context: PageContext) -> Response:
    """Show the run; the values of its variables are not shown."""
    kind, run = find_run(context)
    view = RunView(run)
    before = context.whole("before") or None
    lines = logs.lines(context.session, run, cursor=before, limit=LINES, backward=True)
    earlier = logs.next_cursor(lines, before, limit=LINES, backward=True)
    is_over = view.has_ended and (run.completed_at is None or run.completed_at < now() - _LINGERS)
    found = select(Run.id).where(Run.id == run.id, Run.report.is_not(None))  # it may be large
    has_report = context.session.scalar(found) is not None
    listing, problem = None, ""
    try:
        listing = list_rows(context, run) if has_report else None
    except Refused as error:  # the rest of the page is there all the same
        problem = error.message
    workspace = context.session.get_one(Workspace, context.workspace.id)
    return context.show(
        "run.html",
        active="runs",
        kind=kind,
        run=view,
        steps=_steps([*reversed(lines)]),
        earlier=earlier,
        before=before,
        is_live=before is None and not is_over,
        has_report=has_report,
        listing=listing,
        rows_problem=problem,
        is_on_github=workspace.clone_url is None,
        dataset=run.dataset,
        interruptions=run.interruptions,
        others=comparable_runs(context, run) if has_report else (),
        submission={**run.submission, "env_config": [*run.submission.get("env_config", {})]},
    )


def stop_run(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Stop it."""
    kind, run = find_run(context)
    records.stop(context.session, kind, run)
    return go_to(f"{context.path('runs', run.name)}?done=stopped")


def set_title(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Give it a title, or none."""
    kind, run = find_run(context)
    if (title := fields.get("title", "").strip()) and not is_label(title):
        raise Refused(422, "invalid", f"A title has one line of up to {LABEL_LENGTH} characters.")
    if not lock(context.session, run):  # its executor notes facts there too
        raise not_found(kind.noun)
    run.results = {**(run.results or {}), "title": title}
    return go_to(f"{context.path('runs', run.name)}?done=saved")


def run_again(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Submit what it was submitted with."""
    kind, run = find_run(context)
    if records.is_local(run):
        message = "It ran on a user's machine: submit its config file to run it here."
        raise Refused(409, "local", message)
    again, _ = admission.submit(
        context.session,
        kind,
        submission_model(kind).model_validate(run.submission),
        settings=context.settings,
        user_id=context.user.id,
        workspace=context.workspace,
    )
    return go_to(f"{context.path('runs', again.name)}?done=submitted")


def delete_run(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Delete it."""
    kind, run = find_run(context)
    deletion.delete_run(context.session, context.settings.data, kind, run)
    more = "&kind=training" if kind is TRAINING else ""
    return go_to(f"{context.path('runs')}?done=deleted{more}")


def find_run(context: PageContext, name: str | None = None) -> tuple[RunKind, Run]:
    """Return the run that a path names, or this name."""
    name = context.request.path_params["name"] if name is None else name
    run = records.find(context.session, None, context.workspace, name)
    return next(kind for kind in KINDS if kind.name == run.kind), run


def download_log(context: PageContext) -> Response:
    """Answer with the log as a file."""
    _, run = find_run(context)
    query = select(LogLine).where(LogLine.run_id == run.id).order_by(LogLine.id)
    lines = [
        f"{line.timestamp:%Y-%m-%dT%H:%M:%SZ} {line.level} {line.step or '-'}: "
        f"{visible(line.message)}\n"
        for line in context.session.scalars(query)
    ]
    return attachment(f"{run.name}.log", "text/plain", "".join(lines).encode("utf-8", "replace"))


def download_report(context: PageContext) -> Response:
    """Answer with the JSON report as a file."""
    _, run = find_run(context)
    return attachment(f"{run.name}.json", "application/json", report_of(context, run))


def show_report(context: PageContext) -> Response:
    """Show the report's page: in a sandbox without our origin, since it has scripts."""
    from pytest_osmosis.features.html.page_assets import script, style

    policy = (
        f"sandbox allow-scripts; default-src 'none'; script-src {script().source}; style-src "
        f"{style().source}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(_report_page(context)[1], headers={"Content-Security-Policy": policy})


def download_html(context: PageContext) -> Response:
    """Answer with the report's page as a file."""
    name, page = _report_page(context)
    return attachment(f"{name}.html", "text/html", page.encode("utf-8", "replace"))


def _report_page(context: PageContext) -> tuple[str, str]:
    _, run = find_run(context)
    rendered: Recent[str] = context.request.app.state.rendered
    return run.name, rendered.get(run, lambda: render_report(context, run))


def attachment(name: str, media_type: str, body: bytes) -> Response:
    """Return a file to be saved; our names of runs are plain letters."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=media_type, headers=headers)


def comparable_runs(context: PageContext, run: Run) -> Sequence[str]:
    """Return the names of runs that a run can be compared with, the newest first."""
    query = select(Run.name).where(
        Run.workspace_id == context.workspace.id,
        Run.kind == EVALUATION.name,
        Run.id != run.id,
        Run.report.is_not(None),
    )
    return context.session.scalars(query.order_by(Run.created_at.desc()).limit(_COMPARABLE)).all()


def _steps(lines: Sequence[LogLine]) -> list[tuple[str, list[LogLine], float | None]]:
    """Return the lines by step, in their order, with the seconds until the next step began."""
    groups = [(name, [*group]) for name, group in groupby(lines, lambda line: line.step or "")]
    begins = (group[0].timestamp for _, group in groups)
    lasted = [(end - begin).total_seconds() for begin, end in pairwise(begins)]
    return [(*group, seconds) for group, seconds in zip_longest(groups, lasted)]
