"""One run: its figures, its log while it is written, its report; stopping it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import select
from starlette.responses import Response

from ..database.models import LogLine, Run, now
from ..errors import Refused
from ..execution import deletion
from ..runs import logs, records
from ..runs.kinds import EVALUATION, KINDS, TRAINING, RunKind
from .context import PageContext
from .live import LivePart, Update
from .rendering import go_to
from .run_view import RunView, view_of

LINES = 200
"""Of a log on one page."""
_LINGERS = timedelta(seconds=10)
"""For so long after its end a run may still get lines and its report."""
_COMPARABLE = 50
_SECTIONS = ("experiment_config", "env_config")
"""Parts of a submission that are shown otherwise, and the one whose values are shown as names."""


def show_run(context: PageContext) -> Response:
    """Show the run."""
    kind, run = find_run(context)
    view = view_of(run)
    before = context.whole("before") or None
    lines = logs.lines(context.session, run, cursor=before, limit=LINES, backward=True)
    earlier = logs.next_cursor(lines, before, limit=LINES, backward=True)
    return context.show(
        "run.html",
        active="runs",
        kind=kind,
        run=view,
        lines=[*reversed(lines)],
        cursor=lines[0].id if lines else 0,
        earlier=earlier,
        before=before,
        is_live=before is None and not _is_over(view),
        has_report=_has_report(context, run),
        **_facts(run),
        others=comparable_runs(context, run),
    )


def live_run(context: PageContext, cursor: int) -> Update:
    """Return what the page of the run shows now."""
    _, run = find_run(context)
    view = view_of(run)
    has_report = _has_report(context, run)
    lines = logs.lines(context.session, run, cursor=cursor, limit=1000, backward=False)
    shown: dict[str, Any] = {"run": view, "has_report": has_report, **_facts(run)}
    counts = (view.done, view.total, view.passed, view.tokens, view.has_ended, view.error)
    figures = (*counts, view.pass_at_1, view.pass_at_k, view.rewards, view.verdict)
    facts = (view.status, view.commit, run.interruptions)
    parts = [
        LivePart("status", view.status, lambda: context.text("run_status.html", **shown)),
        LivePart(
            "actions", (view.status, has_report), lambda: context.text("run_actions.html", **shown)
        ),
        LivePart("figures", figures, lambda: context.text("run_figures.html", **shown)),
        LivePart("facts", facts, lambda: context.text("run_facts.html", **shown)),
        LivePart("report", has_report, lambda: context.text("run_report.html", **shown)),
    ]
    return Update(
        parts,
        lines=context.text("log_lines.html", lines=lines) if lines else "",
        cursor=lines[-1].id if lines else cursor,
        has_ended=_is_over(view) and not lines,
    )


def stop_run(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Stop it."""
    kind, run = find_run(context)
    records.stop(context.session, kind, run)
    return go_to(f"{context.path('runs', run.name)}?done=stopped")


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
        f"{line.timestamp:%Y-%m-%dT%H:%M:%SZ} {line.level} {line.step or '-'}: {line.message}\n"
        for line in context.session.scalars(query)
    ]
    return attachment(f"{run.name}.log", "text/plain", "".join(lines).encode("utf-8", "replace"))


def download_report(context: PageContext) -> Response:
    """Answer with the JSON report as a file."""
    _, run = find_run(context)
    return attachment(f"{run.name}.json", "application/json", json.dumps(report_of(run)).encode())


def report_of(run: Run) -> dict[str, Any]:
    """Return the report; refuse a run without one."""
    if run.report is None:
        raise Refused(404, "no_report", f"the run {run.name} has no report: it is {run.status}")
    return run.report


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
    if run.kind == TRAINING.name:
        return []
    return context.session.scalars(query.order_by(Run.created_at.desc()).limit(_COMPARABLE)).all()


def _is_over(view: RunView) -> bool:
    return view.has_ended and (view.completed_at is None or view.completed_at < now() - _LINGERS)


def _has_report(context: PageContext, run: Run) -> bool:
    """Look without reading the report, which may be large."""
    found = select(Run.id).where(Run.id == run.id, Run.report.is_not(None))
    return context.session.scalar(found) is not None


def _facts(run: Run) -> dict[str, Any]:
    """Return what a page shows of the config; of variables and secrets the names."""
    return {
        "interruptions": run.interruptions,
        "settings": _settings(run.submission),
        "env_names": sorted(run.submission.get("env_config", {})),
        "secret_names": run.submission.get("secrets", {}).get("required", []),
    }


def _settings(submission: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return every setting of the config, by its name in the file."""
    found = []
    for section, values in submission.items():
        if section in _SECTIONS or not isinstance(values, dict) or section == "secrets":
            continue
        name = section.removesuffix("_config")
        found += [(f"{name}.{key}", json.dumps(value)) for key, value in values.items()]
    return found
