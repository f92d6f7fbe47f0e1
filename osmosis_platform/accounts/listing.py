"""All users and workspaces of a platform, for its operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from ..database.models import Base, Member, Run, Token, User, Workspace, now
from ..timestamps import timestamp
from .registry import workspaces_of


def users(session: Session) -> Iterator[dict[str, Any]]:
    """Yield a document of each user, by name; `tokens` counts those that serve."""
    serving = (Token.revoked_at.is_(None), Token.expires_at > now())
    tokens = _counted(session, Token, Token.user_id, *serving)
    query = select(User).where(User.removed_at.is_(None)).order_by(User.name)
    for user in session.scalars(query).all():
        mine = workspaces_of(session, user.id)
        yield {
            "id": user.id,
            "name": user.name,
            "email": user.email,
            "has_password": user.password_hash is not None,
            "workspaces": [{"name": workspace.name, "role": role} for workspace, role in mine],
            "tokens": tokens.get(user.id, 0),
            "created_at": timestamp(user.created_at),
        }


def workspaces(session: Session) -> Iterator[dict[str, Any]]:
    """Yield a document of each workspace, by name."""
    members = _counted(session, Member, Member.workspace_id)
    runs = _counted(session, Run, Run.workspace_id)
    for each in session.scalars(select(Workspace).order_by(Workspace.name)).all():
        yield {
            "id": each.id,
            "name": each.name,
            "repository": each.repository,
            "clone_url": each.clone_url,
            "members": members.get(each.id, 0),
            "runs": runs.get(each.id, 0),
            "created_at": timestamp(each.created_at),
        }


def _counted(
    session: Session,
    table: type[Base],
    key: InstrumentedAttribute[str] | InstrumentedAttribute[str | None],
    *conditions: ColumnElement[bool],
) -> dict[str | None, int]:
    """Return how many rows of a table there are for each value of a column."""
    query = select(key, func.count()).select_from(table).where(*conditions).group_by(key)
    return {row[0]: row[1] for row in session.execute(query)}
