"""Datasets in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from ..accounts.tokens import CallerWorkspace
from ..database.connection import Database
from ..database.models import Dataset, now
from ..errors import Refused, not_found
from ..settings import Limits
from ..timestamps import timestamp
from .files import DatasetFiles

KEPT = timedelta(days=7)
"""For so long an upload that was begun may go on."""


def create(
    session: Session,
    workspace: CallerWorkspace,
    *,
    creator_id: str,
    file_name: str,
    file_size: int,
    extension: str,
    limits: Limits,
) -> Dataset:
    """Record a dataset whose file is going to be uploaded."""
    ours = Dataset.workspace_id == workspace.id
    if (session.scalar(select(func.count()).where(ours)) or 0) >= limits.datasets:
        message = f"the workspace has {limits.datasets} datasets, which is the limit"
        raise Refused(409, "too_many", message)
    is_simple = file_size <= limits.simple_upload_bytes
    dataset = Dataset(
        workspace_id=workspace.id,
        creator_id=creator_id,
        file_name=file_name,
        extension=extension,
        file_size=file_size,
        part_size=None if is_simple else limits.part_bytes,
    )
    session.add(dataset)
    session.flush()
    return dataset


def find(session: Session, workspace_id: str, dataset_id: str) -> Dataset:
    """Return a dataset of the workspace."""
    dataset = session.get(Dataset, dataset_id)
    if dataset is None or dataset.workspace_id != workspace_id:
        raise not_found("dataset")
    return dataset


def newest(
    session: Session, workspace_id: str, *, limit: int, offset: int
) -> tuple[Sequence[Dataset], int]:
    """Return some datasets of the workspace, the newest first, and how many there are."""
    ours = Dataset.workspace_id == workspace_id
    query = select(Dataset).where(ours).order_by(Dataset.created_at.desc(), Dataset.id)
    total = session.scalar(select(func.count()).where(ours)) or 0
    return session.scalars(query.limit(limit).offset(offset)).all(), total


def ready_dataset(session: Session, workspace_id: str, name: str) -> Dataset | None:
    """Return the newest dataset of a name that can be used: its id, its file's name or the stem."""
    return next(iter(ready_datasets(session, workspace_id, name)), None)


def ready_datasets(session: Session, workspace_id: str, name: str) -> list[Dataset]:
    """Return all datasets of a name that can be used, the one that runs use first."""
    ours = (Dataset.workspace_id == workspace_id, Dataset.status == "ready")
    # The stem is compared here: names have different extensions.
    alike = or_(Dataset.id == name, Dataset.file_name.startswith(name, autoescape=True))
    query = select(Dataset).where(*ours, alike)
    newest_first = session.scalars(query.order_by(Dataset.created_at.desc(), Dataset.id))
    found = [each for each in newest_first if name in _names(each)]
    return sorted(found, key=lambda each: _names(each).index(name))


def stem(dataset: Dataset) -> str:
    """Return the name of the file without its extension, as configs have it."""
    return dataset.file_name[: -len(dataset.extension) - 1]


def _names(dataset: Dataset) -> tuple[str, str, str]:
    """Return the names by which runs find a dataset, the most exact one first."""
    return dataset.id, dataset.file_name, stem(dataset)


def shown(dataset: Dataset) -> dict[str, Any]:
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


def remove_abandoned(database: Database, data: Path) -> int:
    """Remove uploads that were begun a week ago; return how many."""
    query = select(Dataset).where(Dataset.status == "uploading", Dataset.created_at < now() - KEPT)
    with database.writing() as session:
        found = session.scalars(query).all()
        for dataset in found:
            session.delete(dataset)
            DatasetFiles(data, dataset.id, dataset.extension).remove()
    return len(found)
