"""Tokens: issued once in clear, kept as digests; and the caller that one stands for."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, joinedload

from ..database.connection import Database
from ..database.models import Member, Token, Workspace, now
from ..identifiers import digest, new_token
from .registry import AccountError
from .roles import VIEWER

LABEL_LENGTH = 100
_USE_NOTED = timedelta(hours=1)
"""How exactly the last use of a token is known."""


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
    last_used_at: datetime | None = None


def is_label(text: str) -> bool:
    """Return whether a token can be called this."""
    return bool(text.strip()) and text.isprintable() and len(text) <= LABEL_LENGTH


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
    query = select(Token).where(Token.digest == wanted).options(joinedload(Token.user))
    token = session.scalar(query)
    stored = digest("") if token is None else token.digest
    if not hmac.compare_digest(stored.encode(), wanted.encode()) or token is None:
        return None
    user, workspace = token.user, None
    if user.removed_at is not None or token.revoked_at is not None or token.expires_at <= now():
        return None
    if token.workspace_id is not None:
        workspace = find_workspace(session, user.id, Workspace.id == token.workspace_id)
        if workspace is None:
            return None
    times = (token.expires_at, workspace, token.last_used_at)
    return Caller(user.id, user.name, user.email, token.id, *times)


def note_use(database: Database, caller: Caller) -> None:
    """Note that a token was used, once an hour.

    A database that cannot be written now is passed over: a later request tries again.
    """
    if caller.last_used_at is not None and caller.last_used_at > now() - _USE_NOTED:
        return
    used = update(Token).where(Token.id == caller.token_id).values(last_used_at=now())
    with suppress(OperationalError), database.writing(wait_ms=0) as session:
        session.execute(used)


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
    serving = serving_tokens(session, Token.user_id == user_id)
    for token in serving:
        token.revoked_at = now()
    return len(serving)


def serving_tokens(session: Session, *conditions: ColumnElement[bool]) -> Sequence[Token]:
    """Return the tokens that serve and meet conditions, the newest first."""
    query = select(Token).where(Token.revoked_at.is_(None), Token.expires_at > now(), *conditions)
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
    return serving_tokens(session, mine)
