"""Submitting a run: what it needs is there, and it is within the limits."""

from __future__ import annotations

from functools import partial

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind
from pytest_osmosis.dataset.sampling import sample_size

from ..accounts.tokens import CallerWorkspace
from ..database.connection import count
from ..database.models import Dataset, Run
from ..datasets.records import ready_dataset
from ..errors import Refused
from ..identifiers import new_run_name
from ..runs import logs
from ..runs.records import UNDER_WAY
from ..runs.submissions import Submission
from ..settings import ServerLimits, Settings
from ..vault.records import missing
from .orders import SAMPLE

NO_TRAINER = (
    "this platform has no trainer, so it executes no training runs; its operator sets one with "
    "`osmosis platform serve --trainer COMMAND`"
)
_NAME_TRIES = 20


def submit(
    session: Session,
    kind: RunKind,
    submission: Submission,
    *,
    settings: Settings,
    user_id: str,
    workspace: CallerWorkspace,
    idempotency_key: str | None = None,
) -> tuple[Run, bool]:
    """Record a run, or find the one that the same request has made; and whether it is new."""
    if kind is TRAINING and not settings.has_trainer:
        raise Refused(422, "no_trainer", NO_TRAINER)
    known = partial(_submitted, session, kind, submission, user_id, workspace, idempotency_key)
    if (earlier := known()) is not None:
        return earlier, False
    dataset = _find_dataset(session, kind, submission, settings.limits, user_id, workspace.id)
    run = Run(
        workspace_id=workspace.id,
        creator_id=user_id,
        kind=kind.name,
        name=free_name(session, workspace.id),
        submission=submission.section,
        submission_digest=submission.digest,
        idempotency_key=idempotency_key,
        dataset_id=dataset.id,
    )
    try:
        with session.begin_nested():
            session.add(run)
    except IntegrityError:  # the same request came twice at once
        if (other := known()) is None:
            raise
        return other, False
    logs.add(session, run, "the run was submitted; it waits to be executed", step="submit")
    return run, True


def _submitted(
    session: Session,
    kind: RunKind,
    submission: Submission,
    user_id: str,
    workspace: CallerWorkspace,
    idempotency_key: str | None,
) -> Run | None:
    """Return the run that a request with this key has made; refuse a key of another submission."""
    if idempotency_key is None:
        return None
    found = session.scalar(
        select(Run).where(
            Run.workspace_id == workspace.id,
            Run.creator_id == user_id,
            Run.kind == kind.name,
            Run.idempotency_key == idempotency_key,
        )
    )
    if found is not None and found.submission_digest != submission.digest:
        raise Refused(
            409,
            "idempotency_conflict",
            "this Idempotency-Key was used for another submission; use a new one",
        )
    return found


def free_name(session: Session, workspace_id: str) -> str:
    """Return a name that no run of the workspace has."""
    for _ in range(_NAME_TRIES):
        name = new_run_name()
        taken = select(Run.id).where(Run.workspace_id == workspace_id, Run.name == name)
        if session.scalar(taken) is None:
            return name
    raise AssertionError("no free name for a run")


def _find_dataset(
    session: Session,
    kind: RunKind,
    submission: Submission,
    limits: ServerLimits,
    user_id: str,
    workspace_id: str,
) -> Dataset:
    """Return the dataset; refuse a submission that is too large, or names what is not there."""
    if count(session, Run.creator_id == user_id, UNDER_WAY) >= limits.runs:
        message = (
            f"{limits.runs} of your runs have not ended, which is the limit; stop some, or wait"
        )
        raise Refused(409, "too_many", message)
    dataset = ready_dataset(
        session, workspace_id, submission.section["experiment_config"]["dataset"]
    )
    if dataset is not None and kind is EVALUATION:
        _check_size(submission, dataset, limits)
    secrets = missing(session, workspace_id, user_id, submission.required_secrets)
    message = ""
    if secrets:
        message = (
            f"secrets.required: there is no secret {', '.join(secrets)}; "
            "set each with `osmosis secret set NAME`"
        )
    if dataset is None:
        raise Refused(
            422,
            "dataset_not_found",
            "experiment_config.dataset: the workspace has no dataset of this name that is ready; "
            f"upload one with `osmosis dataset upload`{f'. {message}' if message else ''}",
            field="experiment_config.dataset",
            details={"missing": secrets},
        )
    if message:
        field, details = "secrets.required", {"missing": secrets}
        raise Refused(422, "missing_secrets", message, field=field, details=details)
    return dataset


def _check_size(submission: Submission, dataset: Dataset, limits: ServerLimits) -> None:
    """Refuse an evaluation of more runs than a process can hold."""
    given = submission.section.get("evaluation_config", {})
    if dataset.row_count is None:
        return
    rows = sample_size(SAMPLE, dataset.row_count)
    if "limit" in given:
        rows = min(given["limit"], dataset.row_count)
    n, most = given.get("n", 1), limits.evaluation_runs
    if rows * n > most:
        raise Refused(
            422,
            "too_many_runs",
            f"evaluation_config.n: {rows:,} rows x {n:,} are {rows * n:,} runs, and one evaluation "
            f"has {most:,} at most: lower n or limit",
            field="evaluation_config.n",
        )
