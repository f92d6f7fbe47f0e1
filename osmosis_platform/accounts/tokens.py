"""Tokens: issued once in clear, kept as digests; and the caller that one stands for."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from ..database.models import Member, Token, User, Workspace, now
from ..identifiers import digest, new_token
from .registry import AccountError
from .roles import VIEWER


@dataclass(frozen=True, slots=True)
class CallerWorkspace:
    """The workspace in which a caller acts."""

    id: str
    name: str
    repository: str
    role: str

    @property
    def may_write(self) -> bool:
        """Whether the caller may do more than look."""
        return self.role != VIEWER


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, by the token of it."""

    user_id: str
    user_name: str
    email: str | None
    token_id: str
    expires_at: datetime
    workspace: CallerWorkspace | None


def issue(
    session: Session, user_id: str, workspace_id: str | None, *, label: str, expires_s: float
) -> tuple[Token, str]:
    """Return a new token's record and the token itself, which is not kept."""
    text = new_token()
    token = Token(
        digest=digest(text),
        user_id=user_id,
        workspace_id=workspace_id,
        label=label,
        expires_at=now() + timedelta(seconds=expires_s),
    )
    session.add(token)
    session.flush()
    return token, text


def find_caller(session: Session, text: str) -> Caller | None:
    """Return whom a token stands for; None when it is unknown, expired or revoked.

    So is the token of a workspace that its user has left.
    """
    wanted = digest(text)
    is_this = (Token.digest == wanted, User.removed_at.is_(None))
    found = session.execute(_CALLER.where(*is_this)).one_or_none()
    stored = digest("") if found is None else found.digest
    if not hmac.compare_digest(stored.encode(), wanted.encode()) or found is None:
        return None
    if found.revoked_at is not None or found.expires_at <= now():
        return None
    workspace = None
    if found.workspace_id is not None:
        if found.role is None:
            return None
        workspace = CallerWorkspace(
            found.workspace_id, found.workspace_name, found.repository, found.role
        )
    return Caller(
        found.user_id, found.user_name, found.email, found.token_id, found.expires_at, workspace
    )


_CALLER = (
    select(
        Token.digest,
        Token.id.label("token_id"),
        Token.expires_at,
        Token.revoked_at,
        Token.workspace_id,
        User.id.label("user_id"),
        User.name.label("user_name"),
        User.email,
        Workspace.name.label("workspace_name"),
        Workspace.repository,
        Member.role,
    )
    .join(User, User.id == Token.user_id)
    .outerjoin(Workspace, Workspace.id == Token.workspace_id)
    .outerjoin(Member, and_(Member.workspace_id == Workspace.id, Member.user_id == Token.user_id))
)


def find_workspace(
    session: Session, user_id: str, condition: ColumnElement[bool]
) -> CallerWorkspace | None:
    """Return the workspace that meets a condition, if the user is a member of it."""
    query = select(Workspace, Member.role).join(Member, Member.workspace_id == Workspace.id)
    found = session.execute(query.where(Member.user_id == user_id, condition)).first()
    if found is None:
        return None
    workspace, role = found
    return CallerWorkspace(workspace.id, workspace.name, workspace.repository, role)


def revoke(session: Session, user_id: str, token_id: str) -> bool:
    """Revoke a token of a user; False when the user has none of this id."""
    token = session.get(Token, token_id)
    if token is None or token.user_id != user_id:
        return False
    if token.revoked_at is None:
        token.revoked_at = now()
    return True


def revoke_by_operator(session: Session, token_id: str) -> None:
    """Revoke a token of any user; raise AccountError where none of this id serves."""
    token = session.get(Token, token_id)
    if token is None or not revoke(session, token.user_id, token_id):
        raise AccountError(
            f"there is no token with the id {token_id!r}; see `osmosis platform token list`"
        )


def revoke_all(session: Session, user_id: str) -> int:
    """Revoke the tokens of a user; return how many served until now."""
    serving = serving_tokens(session, user_id=user_id)
    for token in serving:
        token.revoked_at = now()
    return len(serving)


def serving_tokens(
    session: Session, *, user_id: str | None = None, workspace_id: str | None = None
) -> Sequence[Token]:
    """Return the tokens that serve, the newest first; of one user or one workspace where given."""
    query = select(Token).where(Token.revoked_at.is_(None), Token.expires_at > now())
    if user_id is not None:
        query = query.where(Token.user_id == user_id)
    if workspace_id is not None:
        query = query.where(Token.workspace_id == workspace_id)
    return session.scalars(query.order_by(Token.created_at.desc(), Token.id)).all()


def valid_tokens(
    session: Session, workspace_id: str, user_id: str | None = None
) -> Sequence[Token]:
    """Return the tokens that serve in a workspace, the newest first; of one user where given.

    Those of no workspace are in it only for their own user: they serve in others too.
    """
    mine = Token.workspace_id == workspace_id
    if user_id is not None:
        mine = and_(Token.user_id == user_id, or_(mine, Token.workspace_id.is_(None)))
    query = select(Token).where(mine, Token.revoked_at.is_(None), Token.expires_at > now())
    return session.scalars(query.order_by(Token.created_at.desc(), Token.id)).all()
