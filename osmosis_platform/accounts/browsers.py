"""Browsers in which a user is logged in: sessions by a cookie, kept as a digest."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ..database.models import BrowserSession, User, now
from ..identifiers import digest, new_token


def start(session: Session, user: User, expires_s: float) -> str:
    """Log a user in, and return the value of the cookie."""
    session.execute(delete(BrowserSession).where(BrowserSession.expires_at <= now()))
    cookie = new_token()
    expires_at = now() + timedelta(seconds=expires_s)
    session.add(BrowserSession(digest=digest(cookie), user_id=user.id, expires_at=expires_at))
    return cookie


def find_user(session: Session, cookie: str) -> User | None:
    """Return the user who is logged in by a cookie."""
    query = select(User).join(BrowserSession, BrowserSession.user_id == User.id)
    is_this = BrowserSession.digest == digest(cookie)
    is_there = User.removed_at.is_(None)
    return session.scalar(query.where(is_this, is_there, BrowserSession.expires_at > now()))


def end(session: Session, cookie: str) -> None:
    """Log the browser out."""
    session.execute(delete(BrowserSession).where(BrowserSession.digest == digest(cookie)))


def end_all(session: Session, user_id: str) -> int:
    """Log a user out everywhere; return of how many browsers."""
    of_user = delete(BrowserSession).where(BrowserSession.user_id == user_id)
    return len(session.scalars(of_user.returning(BrowserSession.digest)).all())
