"""A login as people read it, and as `--json` has it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from osmosis_ai.escaping import printable
from osmosis_ai.models.retry import in_words
from osmosis_ai.platform.account import Identity, User

EVERY_WORKSPACE = "every workspace of yours"


def document(platform: str, identity: Identity) -> dict[str, Any]:
    """Return what programs get of a login."""
    return {
        "platform": platform,
        "workspace": identity.workspace or None,
        "role": identity.role or None,
        "user": user_document(identity.user),
        "expires_at": identity.expires_at,
    }


def user_document(user: User) -> dict[str, str | None]:
    """Return a user for programs."""
    return {name: getattr(user, name) or None for name in ("id", "name", "email")}


def shown_user(user: User) -> str:
    """Return a user for people."""
    return printable(user.shown) or "an unnamed user"


def shown_workspace(name: str, role: str = "") -> str:
    """Return a workspace for people, with the user's role in it."""
    return (printable(name) or EVERY_WORKSPACE) + (f" ({printable(role)})" if role else "")


def shown_expiry(moment: datetime, now: float) -> str:
    """Return when a token ends, and in how long that is."""
    left_s = moment.timestamp() - now
    then = f"in {in_words(left_s)}" if left_s > 0 else "in the past"
    return f"{moment:%Y-%m-%d %H:%M} UTC, {then}"
