"""Submitting runs, and everything that can be asked about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from pydantic import Field

from osmosis_ai.platform.config_models import Rule
from osmosis_ai.platform.run_kinds import RunKind

from ..database.models import Run
from ..errors import Refused
from ..execution.admission import submit
from ..execution.deletion import delete_run
from ..execution.outcome import open_conversations
from ..execution.tail import BLOCK
from ..http.endpoints import ApiAnswer, ApiCall, Endpoint, FileAnswer, Handler, Needs
from ..http.validation import Fields, Page, page_document, refused_fields
from ..identifiers import timestamp
from ..runs import logs, records
from ..runs.records import is_local
from ..runs.submissions import Submission, name_problems, submission_model


class LogPage(Fields):
    """Which lines of a log are wanted."""

    limit: int = Field(100, ge=1, le=1000)
    cursor: (
        Annotated[str, Field(pattern="^[0-9]{1,18}$"), Rule("a next_cursor of an earlier answer")]
        | None
    ) = None
    direction: Annotated[Literal["forward", "backward"], Rule("forward or backward")] = "forward"

    @property
    def position(self) -> int | None:
        """The line to continue from."""
        return None if self.cursor is None else int(self.cursor)

    @property
    def is_backward(self) -> bool:
        """Whether the newest line comes first."""
        return self.direction == "backward"


_KEY = re.compile(r"[!-~]{1,255}")
_COUNTS = ("total_samples", "completed_samples", "graded", "passed", "failed", "skipped")
_NO_OVERVIEW: dict[str, Any] = {
    "duration_ms": None,
    **dict.fromkeys(_COUNTS, 0),
    "pass_rate": None,
    "pass_threshold": None,
    "tokens_used": 0,
}
_NO_STATS: dict[str, Any] = dict.fromkeys(("mean", "median", "std", "min", "max"))


def endpoints_of(kind: RunKind) -> tuple[Endpoint, ...]:
    """Return the calls that a kind of run has."""
    every = f"/api/cli/{kind.segment}"
    one = f"{every}/{{name}}"

    def about(handler: Callable[[RunKind, Any, Run], ApiAnswer | FileAnswer]) -> Handler:
        def handle(call: ApiCall[Any, Any]) -> ApiAnswer | FileAnswer:
            run = records.find(call.session, kind, call.workspace, call.path["name"])
            return handler(kind, call, run)

        return handle

    return (
        Endpoint("POST", every, partial(_submit, kind), Needs.WRITE, body=submission_model(kind)),
        Endpoint("GET", every, partial(_list, kind), query=Page),
        Endpoint("GET", one, about(_detail)),
        Endpoint("GET", f"{one}/metrics", about(_metrics)),
        Endpoint("GET", f"{one}/logs", about(_logs), query=LogPage),
        Endpoint("GET", f"{one}/report", about(_report)),
        Endpoint("GET", f"{one}/conversations", about(_conversations)),
        Endpoint("POST", f"{one}/stop", about(_stop), Needs.WRITE),
        Endpoint("DELETE", one, about(_delete), Needs.WRITE),
    )


def _submit(kind: RunKind, call: ApiCall[Submission, None]) -> ApiAnswer:
    if problems := list(name_problems(call.body)):
        raise refused_fields(problems)
    run, is_new = submit(
        call.session,
        kind,
        call.body,
        settings=call.settings,
        user_id=call.caller.user_id,
        workspace=call.workspace,
        idempotency_key=_idempotency_key(call),
    )
    return ApiAnswer(run_summary(call, run), status=201 if is_new else 200)


def _idempotency_key(call: ApiCall[Submission, None]) -> str | None:
    key = call.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Refused(400, "invalid_header", "Idempotency-Key must be 1 to 255 visible characters")
    return key


def _list(kind: RunKind, call: ApiCall[None, Page]) -> ApiAnswer:
    page = call.query
    runs, total = records.newest(
        call.session, kind, call.workspace, limit=page.limit, offset=page.offset
    )
    shown = [run_summary(call, run) for run in runs]
    return ApiAnswer(page_document(f"{kind.key}s", shown, total, page))


def _detail(kind: RunKind, call: ApiCall[None, None], run: Run) -> ApiAnswer:
    experiment = run.submission["experiment_config"]
    config = {
        name: value
        for name, value in run.submission.items()
        if name not in ("env_config", "experiment_config")
    }
    document = {
        kind.key: {**_head(call, run), "interruptions": run.interruptions},
        "config": {"experiment_config": experiment, **config},
        "dataset": {"id": run.dataset_id, "name": experiment["dataset"]},
        "model": {"name": experiment["model_path"]},
        "rollout": {"id": experiment["rollout"], "name": experiment["rollout"]},
        "entrypoint": experiment["entrypoint"],
        "branch": experiment.get("branch"),
        "commit_sha": (run.results or {}).get("commit_sha") or experiment.get("commit_sha"),
        "env_config": run.submission.get("env_config", {}),
        "results": run.results,
    }
    return ApiAnswer(document)


def _metrics(kind: RunKind, call: ApiCall[None, None], run: Run) -> ApiAnswer:
    known = run.metrics or {}
    document: dict[str, Any] = {
        f"{kind.key}_id": run.id,
        "status": run.status,
        "overview": {**_NO_OVERVIEW, **known.get("overview", {})},
        "reward_stats": {**_NO_STATS, **known.get("reward_stats", {})},
        "pass_at_k": known.get("pass_at_k", []),
        **{name: known[name] for name in ("verdict", "gates") if name in known},
    }
    return ApiAnswer(document)


def _logs(kind: RunKind, call: ApiCall[None, LogPage], run: Run) -> ApiAnswer:
    page = call.query
    lines = logs.lines(
        call.session, run, cursor=page.position, limit=page.limit, backward=page.is_backward
    )
    cursor = logs.next_cursor(lines, page.position, limit=page.limit, backward=page.is_backward)
    names = ("level", "step", "message", "details")
    shown = [
        {"timestamp": timestamp(line.timestamp), **{name: getattr(line, name) for name in names}}
        for line in lines
    ]
    return ApiAnswer({"logs": shown, "next_cursor": None if cursor is None else str(cursor)})


def _report(kind: RunKind, call: ApiCall[None, None], run: Run) -> FileAnswer:
    text = records.report_text(call.session, run)
    if text is None:
        message = f"the {kind.noun} {run.name} has no report: it is {run.status}"
        raise Refused(404, "no_report", message, details={"status": run.status})
    return FileAnswer(iter([text]), "application/json")


def _conversations(kind: RunKind, call: ApiCall[None, None], run: Run) -> FileAnswer:
    found = open_conversations(call.settings.data, run)
    if found is None:
        why = f"it is {run.status}, or they were removed some time after its end"
        message = f"the {kind.noun} {run.name} has no conversations here: {why}"
        raise Refused(404, "no_conversations", message, details={"status": run.status})
    return FileAnswer(_blocks(found))


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file, not by its lines: each of very many would be sent alone."""
    with file:
        yield from iter(partial(file.read, BLOCK), b"")


def _stop(kind: RunKind, call: ApiCall[None, None], run: Run) -> ApiAnswer:
    return ApiAnswer(run_summary(call, records.stop(call.session, kind, run)))


def _delete(kind: RunKind, call: ApiCall[None, None], run: Run) -> ApiAnswer:
    delete_run(call.session, call.settings.data, kind, run)
    return ApiAnswer({"id": run.id, "name": run.name, "deleted": True})


def run_summary(call: ApiCall[Any, Any], run: Run) -> dict[str, Any]:
    """Return what a list shows, and what submitting and stopping answer."""
    experiment = run.submission["experiment_config"]
    return {
        **_head(call, run),
        "model": {"name": experiment["model_path"]},
        "dataset": {"name": experiment["dataset"]},
        "rollout": {"name": experiment["rollout"]},
    }


def _head(call: ApiCall[Any, Any], run: Run) -> dict[str, Any]:
    workspace = quote(call.workspace.name, safe="")
    return {
        "id": run.id,
        "name": run.name,
        "status": run.status,
        "created_at": timestamp(run.created_at),
        "started_at": timestamp(run.started_at),
        "completed_at": timestamp(run.completed_at),
        "creator_name": run.creator.name,
        "is_local": is_local(run),
        "platform_url": f"{call.base_url}/w/{workspace}/runs/{run.name}",
    }
