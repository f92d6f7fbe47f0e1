"""Attempts at a login, counted for all processes of a platform: passwords, and devices that begin.

They are counted by a digest of the name, whether there is such a user or not: the table has so many
rows at most, whatever names are tried, and nothing that is tried ends the block of a name. A device
has the address that it asks from as its name, behind a word and a space, which no user's name has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ..database.models import LoginAttempts, now
from ..errors import Refused

WINDOW = timedelta(minutes=10)
_DIGITS = 4
"""Of the digest: names of different users hardly ever have the same."""


def key_of(name: str, sign: Callable[[str], str]) -> str:
    """Return under what a name is counted; only who can sign knows which names have the same."""
    return sign(f"login {name}")[:_DIGITS]


def count(
    session: Session, key: str, most: int, message: str = "too many logins of this user have failed"
) -> None:
    """Count an attempt; refuse it, uncounted, where there were so many in the last minutes."""
    moment = now()
    found = _find(session, key, moment)
    if moment >= found.since + WINDOW:
        found.since, found.count = moment, 0
    if found.count >= most:
        left_s = math.ceil((found.since + WINDOW - moment).total_seconds())
        raise Refused(
            429,
            "too_many",
            f"{message}; try again in {math.ceil(left_s / 60)} min",
            headers={"Retry-After": str(left_s)},
        )
    found.count += 1


def take_back(session: Session, key: str) -> None:
    """Take back an attempt that was none at guessing."""
    found = _find(session, key, now())
    found.count = max(0, found.count - 1)


def _find(session: Session, key: str, moment: datetime) -> LoginAttempts:
    """Return the row of a key, which no other transaction changes meanwhile."""
    found = session.get(LoginAttempts, key, with_for_update=True)
    if found is None:
        try:
            with session.begin_nested():
                session.add(LoginAttempts(key=key, since=moment, count=0))
        except IntegrityError:  # another transaction was first
            pass
        found = session.get_one(LoginAttempts, key, with_for_update=True)
    return found
