"""Removing users and workspaces.

A user who has created something is still named there, so the row stays: without a password, and
under a name that a new user may have again. A workspace goes with all that belongs to it.
"""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ..database.models import (
    Dataset,
    DeviceGrant,
    LogLine,
    Member,
    RolloutServer,
    Run,
    StoredSecret,
    Token,
    User,
    Workspace,
    now,
)
from . import browsers


def remove_user(session: Session, user: User) -> None:
    """Remove a user with what is theirs alone: logins, tokens, memberships and own secrets."""
    session.refresh(user, with_for_update=True)
    browsers.end_all(session, user.id)
    for table, owner in (
        (Token, Token.user_id),
        (DeviceGrant, DeviceGrant.user_id),
        (Member, Member.user_id),
        (RolloutServer, RolloutServer.user_id),
        (StoredSecret, StoredSecret.owner),
    ):
        session.execute(delete(table).where(owner == user.id))
    user.name = _free_name(session, user.name)
    user.email = user.password_hash = None
    user.removed_at = now()


def _free_name(session: Session, name: str) -> str:
    """Return a name that no user can be given: it has a bracket."""
    count, found = 1, f"{name} (removed)"
    while session.scalar(select(User.id).where(User.name == found)) is not None:
        count += 1
        found = f"{name} (removed {count})"
    return found


def remove_workspace(session: Session, workspace_id: str) -> None:
    """Remove a workspace with all that it has."""
    ours = select(Run.id).where(Run.workspace_id == workspace_id)
    session.execute(delete(LogLine).where(LogLine.run_id.in_(ours)))
    for table, place in (
        (Token, Token.workspace_id),
        (DeviceGrant, DeviceGrant.workspace_id),
        (Member, Member.workspace_id),
        (Run, Run.workspace_id),
        (Dataset, Dataset.workspace_id),
        (StoredSecret, StoredSecret.workspace_id),
        (RolloutServer, RolloutServer.workspace_id),
        (Workspace, Workspace.id),
    ):
        session.execute(delete(table).where(place == workspace_id))
