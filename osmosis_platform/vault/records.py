"""Secrets in the database: which names a run would find."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..database.models import StoredSecret

WORKSPACE = ""
"""The owner of secrets that are the workspace's."""


def missing(session: Session, workspace_id: str, user_id: str, names: Iterable[str]) -> list[str]:
    """Return the names that neither the user nor the workspace has a secret of."""
    query = select(StoredSecret.name).where(
        StoredSecret.workspace_id == workspace_id,
        StoredSecret.owner.in_([WORKSPACE, user_id]),
    )
    known = set(session.scalars(query))
    return [name for name in names if name not in known]
