"""Datasets in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session

from ..accounts.tokens import CallerWorkspace
from ..database.connection import count
from ..database.models import Dataset, now
from ..errors import Refused, not_found
from ..identifiers import timestamp
from ..settings import ServerLimits

DELETED = "deleted"
"""The status of a dataset of which only the row is left, for runs that have ended."""
IMPORTING = "importing"
"""The status of the file of an evaluation that is being uploaded, which is no dataset."""
LISTED = Dataset.status.not_in((DELETED, IMPORTING))
READY = Dataset.status == "ready"
KEPT = timedelta(days=7)
"""For so long an upload that was begun may continue."""


def create(
    session: Session,
    workspace: CallerWorkspace,
    *,
    creator_id: str,
    file_name: str,
    file_size: int,
    extension: str,
    limits: ServerLimits,
    status: str = "uploading",
) -> Dataset:
    """Record a dataset whose file is going to be uploaded."""
    ours = (Dataset.workspace_id == workspace.id, Dataset.status != DELETED)
    if count(session, *ours) >= limits.datasets:
        message = f"the workspace has {limits.datasets} datasets, which is the limit"
        raise Refused(409, "too_many", message)
    is_simple = file_size <= limits.simple_upload_bytes
    dataset = Dataset(
        workspace_id=workspace.id,
        creator_id=creator_id,
        file_name=file_name,
        extension=extension,
        file_size=file_size,
        status=status,
        part_size=None if is_simple else limits.part_bytes,
    )
    session.add(dataset)
    session.flush()
    return dataset


def find(session: Session, workspace_id: str, dataset_id: str) -> Dataset:
    """Return a dataset of the workspace."""
    dataset = session.scalar(_newest_first(workspace_id, LISTED).where(Dataset.id == dataset_id))
    if dataset is None:
        raise not_found("dataset")
    return dataset


def find_named(session: Session, workspace_id: str, name: str) -> Dataset:
    """Return the one dataset of the workspace with this id, or file name, or stem of that."""
    found = _of_name(session, workspace_id, name, LISTED)
    if not found:
        raise not_found("dataset")
    if len(found) > 1 and found[0].id != name:
        ids = [dataset.id for dataset in found]
        message = f"{len(found)} datasets have this name: give the id of one ({', '.join(ids)})"
        raise Refused(409, "ambiguous", message, details={"ids": ids})
    return found[0]


def newest(
    session: Session, workspace_id: str, *, limit: int, offset: int
) -> tuple[Sequence[Dataset], int]:
    """Return some datasets of the workspace, the newest first, and how many there are."""
    query = _newest_first(workspace_id, LISTED)
    found = session.scalars(query.limit(limit).offset(offset)).all()
    return found, count(session, Dataset.workspace_id == workspace_id, LISTED)


def ready_dataset(session: Session, workspace_id: str, name: str) -> Dataset | None:
    """Return the newest dataset of a name that can be used: its id, its file's name or the stem.

    It is not deleted before the transaction ends.
    """
    for dataset in _of_name(session, workspace_id, name, READY):
        held = _newest_first(workspace_id, READY).where(Dataset.id == dataset.id)
        if session.scalar(held.with_for_update(read=True)) is not None:
            return dataset
    return None


def _newest_first(workspace_id: str, condition: ColumnElement[bool]) -> Select[Dataset]:
    query = select(Dataset).where(Dataset.workspace_id == workspace_id, condition)
    return query.order_by(Dataset.created_at.desc(), Dataset.id)


def _of_name(
    session: Session, workspace_id: str, name: str, condition: ColumnElement[bool]
) -> list[Dataset]:
    """Return those that meet a condition and have a name, the most exact one and newest first."""
    # The stem is compared here: names have different extensions.
    alike = or_(Dataset.id == name, Dataset.file_name.startswith(name, autoescape=True))
    found = session.scalars(_newest_first(workspace_id, condition).where(alike))
    named = [dataset for dataset in found if name in _names(dataset)]
    return sorted(named, key=lambda dataset: _names(dataset).index(name))


def _names(dataset: Dataset) -> tuple[str, str, str]:
    """Return the names by which runs find a dataset, the most exact one first; last the stem."""
    return dataset.id, dataset.file_name, dataset.file_name[: -len(dataset.extension) - 1]


def dataset_document(dataset: Dataset) -> dict[str, Any]:
    """Return a dataset as the API shows it."""
    return {
        "id": dataset.id,
        "file_name": dataset.file_name,
        "extension": dataset.extension,
        "file_size": dataset.file_size,
        "status": dataset.status,
        "row_count": dataset.row_count,
        "error": dataset.error,
        "created_at": timestamp(dataset.created_at),
        "creator_name": dataset.creator.name,
    }


def abandoned(session: Session) -> Sequence[Dataset]:
    """Return uploads that were begun a week ago."""
    begun = Dataset.status.in_(("uploading", IMPORTING))
    query = select(Dataset).where(begun, Dataset.created_at < now() - KEPT)
    return session.scalars(query).all()
