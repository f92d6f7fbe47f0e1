"""Uploads that were begun and never ended."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sqlalchemy import select

from ..database.connection import Database
from ..database.models import Dataset, now
from .files import DatasetFiles

KEPT = timedelta(days=7)


def remove_abandoned(database: Database, data: Path) -> int:
    """Remove uploads that were begun a week ago; return how many."""
    query = select(Dataset).where(Dataset.status == "uploading", Dataset.created_at < now() - KEPT)
    with database.writing() as session:
        found = session.scalars(query).all()
        for dataset in found:
            session.delete(dataset)
            DatasetFiles(data, dataset.id, dataset.extension).remove()
    return len(found)
