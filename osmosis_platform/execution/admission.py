"""Submitting a run: what it needs is there, and it is within the limits."""

from __future__ import annotations

from sqlalchemy.orm import Session

from pytest_osmosis.dataset.sampling import sample_size

from ..accounts.tokens import CallerWorkspace
from ..database.models import Dataset, Run
from ..datasets.records import ready_dataset
from ..errors import Refused
from ..runs import records
from ..runs.kinds import EVALUATION, TRAINING, RunKind
from ..runs.submissions import Submission
from ..settings import ServerLimits, Settings
from ..vault.records import missing
from .orders import SAMPLE

NO_TRAINER = (
    "this platform has no trainer, so it executes no training runs; its operator sets one with "
    "`osmosis platform serve --trainer COMMAND`"
)


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

    def checked_dataset() -> Dataset:
        limit = settings.limits.runs
        if records.count_going_on(session, user_id) >= limit:
            message = f"{limit} of your runs have not ended, which is the limit; stop some, or wait"
            raise Refused(409, "too_many", message)
        name = submission.section["experiment_config"]["dataset"]
        dataset = ready_dataset(session, workspace.id, name)
        if dataset is not None and kind is EVALUATION:
            _check_size(submission, dataset, settings.limits)
        required = submission.required_secrets
        return _checked(dataset, missing(session, workspace.id, user_id, required))

    return records.submit(
        session,
        kind,
        submission,
        user_id=user_id,
        workspace=workspace,
        find_dataset=checked_dataset,
        idempotency_key=idempotency_key,
    )


def _checked(dataset: Dataset | None, secrets: list[str]) -> Dataset:
    """Return the dataset; refuse a submission that names what is not there."""
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
