"""All users and workspaces of a platform, for its operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from ..database.models import Base, Member, Run, Token, User, Workspace, now
from .registry import workspaces_of


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A user, in a list."""

    id: str
    name: str
    email: str | None
    has_password: bool
    workspaces: Sequence[tuple[str, str]]
    """Each with the user's role in it."""
    tokens: int
    """That serve."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WorkspaceEntry:
    """A workspace, in a list."""

    id: str
    name: str
    repository: str
    clone_url: str | None
    members: int
    runs: int
    created_at: datetime


def users(session: Session) -> Iterator[UserEntry]:
    """Yield the users, by name."""
    serving = (Token.revoked_at.is_(None), Token.expires_at > now())
    tokens = _counted(session, Token, Token.user_id, *serving)
    query = select(User).where(User.removed_at.is_(None)).order_by(User.name)
    for user in session.scalars(query).all():
        mine = [(workspace.name, role) for workspace, role in workspaces_of(session, user.id)]
        has_password = user.password_hash is not None
        count = tokens.get(user.id, 0)
        yield UserEntry(user.id, user.name, user.email, has_password, mine, count, user.created_at)


def workspaces(session: Session) -> Iterator[WorkspaceEntry]:
    """Yield the workspaces, by name."""
    members = _counted(session, Member, Member.workspace_id)
    runs = _counted(session, Run, Run.workspace_id)
    for each in session.scalars(select(Workspace).order_by(Workspace.name)).all():
        yield WorkspaceEntry(
            each.id,
            each.name,
            each.repository,
            each.clone_url,
            members.get(each.id, 0),
            runs.get(each.id, 0),
            each.created_at,
        )


def _counted(
    session: Session,
    table: type[Base],
    key: InstrumentedAttribute[str] | InstrumentedAttribute[str | None],
    *conditions: ColumnElement[bool],
) -> dict[str | None, int]:
    """Return how many rows of a table there are for each value of a column."""
    query = select(key, func.count()).select_from(table).where(*conditions).group_by(key)
    return {row[0]: row[1] for row in session.execute(query)}
