"""Datasets in the database."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..database.models import Dataset


def ready_dataset(session: Session, workspace_id: str, name: str) -> Dataset | None:
    """Return the newest dataset of a name that can be used: its id, its file's name or the stem."""
    ready = select(Dataset).where(Dataset.workspace_id == workspace_id, Dataset.status == "ready")
    ready = ready.order_by(Dataset.created_at.desc(), Dataset.id)
    # In Python, for every extension there is a stem; ids and whole names come first.
    found = session.scalars(ready.where(Dataset.file_name.startswith(name, autoescape=True))).all()
    exact = session.get(Dataset, name)
    if exact is not None and exact.workspace_id == workspace_id and exact.status == "ready":
        return exact
    for dataset in sorted(found, key=lambda each: each.file_name != name):
        if name in (dataset.file_name, dataset.file_name.removesuffix(f".{dataset.extension}")):
            return dataset
    return None
