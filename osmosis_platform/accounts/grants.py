"""Device grants (RFC 8628): a code for the device, a code for the person, and a decision."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ..accounts.tokens import issue
from ..database.connection import count
from ..database.models import DeviceGrant, Token, now
from ..errors import Refused
from ..identifiers import digest, new_token, new_user_code
from ..settings import ServerLimits

MAX_PENDING = 1000
SLOW_DOWN_S = 5


def authorize(session: Session, device_name: str, limits: ServerLimits) -> tuple[DeviceGrant, str]:
    """Record a device that asks; return its grant and the code by which it will ask again."""
    session.execute(delete(DeviceGrant).where(DeviceGrant.expires_at <= now()))
    if count(session, DeviceGrant.expires_at > now()) >= MAX_PENDING:
        raise Refused(
            429,
            "too_many",
            "too many logins are waiting to be confirmed; try again in a minute",
            headers={"Retry-After": "60"},
        )
    code = new_token()
    grant = DeviceGrant(
        device_digest=digest(code),
        user_code=new_user_code(),
        device_name=device_name,
        interval_s=limits.device_interval_s,
        expires_at=now() + timedelta(seconds=limits.device_code_expires_s),
    )
    session.add(grant)
    session.flush()
    return grant, code


def poll(session: Session, code: str, limits: ServerLimits) -> tuple[Token, str] | Refused:
    """Return the token once the login is confirmed, else why not: a refusal that is kept.

    Returned, not raised: that the device asked is to be remembered.
    """
    wanted = select(DeviceGrant).where(DeviceGrant.device_digest == digest(code))
    grant = session.scalar(wanted.with_for_update())  # it is used once
    if grant is None or grant.expires_at <= now() or grant.status == "used":
        return _not_yet("expired_token")
    if grant.status == "denied":
        return _not_yet("access_denied")
    if grant.status == "pending":
        return _not_yet("slow_down" if _is_early(grant) else "authorization_pending")
    assert grant.user_id is not None
    grant.status = "used"
    return issue(
        session,
        grant.user_id,
        grant.workspace_id,
        label=grant.device_name,
        expires_s=limits.token_expires_s,
    )


def find_pending(session: Session, user_code: str) -> DeviceGrant | None:
    """Return the grant that waits for a decision on a code, however the code is typed."""
    letters = "".join(character for character in user_code.upper() if character.isalpha())
    wanted = select(DeviceGrant).where(DeviceGrant.user_code == f"{letters[:4]}-{letters[4:]}")
    grant = session.scalar(wanted.with_for_update())
    if grant is None or grant.status != "pending" or grant.expires_at <= now():
        return None
    return grant


def approve(grant: DeviceGrant, user_id: str, workspace_id: str) -> None:
    """Let the device act as a user in a workspace."""
    grant.status = "approved"
    grant.user_id = user_id
    grant.workspace_id = workspace_id


def deny(grant: DeviceGrant) -> None:
    """Refuse the device."""
    grant.status = "denied"


def _is_early(grant: DeviceGrant) -> bool:
    """Note that the device asks, and return whether it should have waited; it waits longer then."""
    moment = now()
    before, grant.polled_at = grant.polled_at, moment
    if before is None or moment >= before + timedelta(seconds=grant.interval_s):
        return False
    grant.interval_s += SLOW_DOWN_S
    return True


def _not_yet(code: str) -> Refused:
    # The standard has the code in `error`.
    return Refused(400, code, code)
