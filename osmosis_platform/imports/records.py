"""Uploads of evaluations that ran on a user's machine: begun, checked, and recorded as runs.

    begin ── parts arrive as those of a dataset ── complete: a child checks the file ── a run

What was announced lies beside the parts, under the id that the run gets. Nothing shows the upload
until the run is recorded, in one transaction; one that was left is removed after a week.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from osmosis_ai.platform.run_kinds import EVALUATION

from ..accounts.tokens import CallerWorkspace
from ..database.connection import Database
from ..database.models import Dataset, Run, now
from ..datasets import records as datasets
from ..datasets import uploads
from ..datasets.checks import TIME_S, DatasetChecks
from ..datasets.files import DatasetFiles
from ..errors import Refused, not_found
from ..execution.admission import free_name
from ..execution.deletion import remove_later
from ..execution.outcome import LIMITS
from ..execution.run_folder import RunFolder
from ..limited import run_limited
from ..runs import logs
from ..runs.submissions import Submission
from ..settings import ServerLimits
from . import taking

EXTENSION = "jsonl"
_ORDER = "order.json"
_FIRST_YEAR = 2020
"""A report that says an earlier one is wrong about the time."""


def known_run(session: Session, workspace_id: str, digest: str) -> Run | None:
    """Return the run of the workspace that an upload of this digest has made."""
    query = select(Run).where(
        Run.workspace_id == workspace_id,
        Run.kind == EVALUATION.name,
        Run.idempotency_key == _key(digest),
    )
    return session.scalars(query.limit(1)).first()


def _key(digest: str) -> str:
    return f"import {digest}"  # no header can have it


def begin(
    session: Session,
    workspace: CallerWorkspace,
    data: Path,
    *,
    user_id: str,
    submission: Submission,
    order: Mapping[str, Any],
    size: int,
    limits: ServerLimits,
) -> Dataset:
    """Record an upload that is announced; refuse one that is too large."""
    if size > limits.import_bytes:
        message = f"file.size: an upload has at most {limits.import_bytes:,} bytes"
        raise Refused(413, "too_large", message, field="file.size")
    upload = datasets.create(
        session,
        workspace,
        creator_id=user_id,
        file_name=f"evaluation.{EXTENSION}",
        file_size=size,
        extension=EXTENSION,
        limits=limits,
        status=datasets.IMPORTING,
    )
    files = files_of(data, upload)
    files.make()
    document = {**order, "submission": submission.section, "most_runs": limits.evaluation_runs}
    (files.folder / _ORDER).write_text(json.dumps(document), "utf-8")
    return upload


def files_of(data: Path, upload: Dataset) -> DatasetFiles:
    """Return the files of an upload."""
    return DatasetFiles(data, upload.id, upload.extension)


def find(session: Session, workspace_id: str, upload_id: str) -> Dataset:
    """Return an upload that is not complete."""
    upload = session.get(Dataset, upload_id)
    if upload is None or (upload.workspace_id, upload.status) != (workspace_id, datasets.IMPORTING):
        raise not_found("upload of an evaluation")
    return upload


def complete(
    database: Database,
    checks: DatasetChecks,
    data: Path,
    upload: Dataset,
    etags: Mapping[int, str],
) -> Run:
    """Check what has arrived, and record the run; raise Refused for what is not taken."""
    files = files_of(data, upload)
    order = json.loads((files.folder / _ORDER).read_bytes())
    said = files.folder / "conversations"
    with checks.turn(upload.workspace_id):
        parts = files.parts()
        uploads.check_parts(upload, parts, etags)
        files.assemble(parts, checks.refuse_closing)
        kept = _take(checks, files, said)
        try:
            with database.writing() as session:
                return _record(session, data, upload.id, order, kept, said)
        except IntegrityError:  # the same one came twice at once
            with database.reading() as session:
                found = known_run(session, upload.workspace_id, order["digest"])
            if found is None:
                raise
            return found


def _take(checks: DatasetChecks, files: DatasetFiles, said: Path) -> dict[str, Any]:
    """Return what a child has made of the file."""
    target = files.folder / "taken"
    words = (files.rows, files.folder / _ORDER, target, said)
    status, printed = run_limited(
        "-m",
        taking.__name__,
        *words,
        folder=files.folder,
        time_s=TIME_S,
        limits=LIMITS,
        check=checks.refuse_closing,
    )
    if status == taking.REFUSED:
        raise Refused(422, "invalid_evaluation", printed.strip())
    if status != 0:
        raise Refused(422, "too_large", "the evaluation is too large to be checked")
    found: dict[str, Any] = json.loads(target.read_bytes())
    return found


def _record(
    session: Session,
    data: Path,
    upload_id: str,
    order: Mapping[str, Any],
    kept: Mapping[str, Any],
    said: Path,
) -> Run:
    """Record the run, under the id of its upload, of which only the row of a dataset is left."""
    upload = session.get(Dataset, upload_id, with_for_update=True)
    if upload is None or upload.status != datasets.IMPORTING:
        raise not_found("upload of an evaluation")
    started, ended = _times(kept)
    given = order["submission"]
    evaluation = {**given.get("evaluation_config", {}), "n": kept["n"]}
    evaluation["pass_threshold"] = kept["pass_threshold"]
    run = Run(
        id=upload.id,
        workspace_id=upload.workspace_id,
        creator_id=upload.creator_id,
        kind=EVALUATION.name,
        name=free_name(session, upload.workspace_id),
        status="finished",
        started_at=started,
        completed_at=ended,
        submission={**given, "evaluation_config": evaluation},
        submission_digest=order["digest"],
        idempotency_key=_key(order["digest"]),
        dataset_id=upload.id,
        results={
            "local": True,
            "dataset_digest": order["dataset_digest"],
            "commit_sha": kept["commit"],
            "dirty": kept["dirty"],
        },
        metrics=kept["metrics"],
        report=kept["report"],
    )
    session.add(run)
    session.flush()
    _log(session, run, kept)
    upload.status, upload.file_name = datasets.DELETED, ""
    session.flush()
    remove_later(session, files_of(data, upload).folder)
    run_folder = RunFolder.of_run(data, run.id)
    run_folder.folder.parent.mkdir(mode=0o700, exist_ok=True)
    run_folder.folder.mkdir(mode=0o700, exist_ok=True)
    said.replace(run_folder.conversations)
    return run


def _times(kept: Mapping[str, Any]) -> tuple[datetime | None, datetime]:
    """Return when it began and ended, as its report says, and not after now."""
    try:
        started = datetime.fromtimestamp(kept["started_at"] or 0, timezone.utc)
        ended = started + timedelta(milliseconds=kept["duration_ms"])
    except (OverflowError, ValueError, OSError):
        return None, now()
    if not kept["started_at"] or started.year < _FIRST_YEAR or ended > now():
        return None, now()
    return started, ended


def _log(session: Session, run: Run, kept: Mapping[str, Any]) -> None:
    """Say where it ran, and what of it the platform has checked."""
    runs = kept["runs"]
    logs.add(session, run, "it ran on a user's machine, and was uploaded", step="upload")
    message = f"figures and gates were computed here from the scores of {runs:,} runs"
    logs.add(session, run, f"{message}; the scores are as they were uploaded", step="upload")
    if kept["unchecked_gates"]:
        message = "gates on another evaluation or on people's marks are as they were uploaded"
        logs.add(session, run, message, step="upload", level="warning")
    if kept["dirty"]:
        message = "files of the repository had been changed since the commit"
        logs.add(session, run, message, step="upload", level="warning")
