"""A login: a token, the platform that issued it, and for whom; and which platform is meant.

Exception
└── LoginProblem      a login cannot be used or kept; `str()` says why and what to do
    └── BrokenFile    the credentials file cannot be understood, and was left unchanged
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from osmosis_ai.platform.account import User, parse_moment
from osmosis_ai.platform.address import platform_origin
from osmosis_ai.secret import Secret

SKEW_S = 60.0
"""A token that expires so soon is treated as expired."""


DEFAULT_PLATFORM = "https://platform.osmosis.ai"
PLATFORM = "OSMOSIS_PLATFORM_URL"


class LoginProblem(Exception):
    """There is a login, but it cannot be used or kept."""


class BrokenFile(LoginProblem):
    """The credentials file is not what this version writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A token and the platform that issued it."""

    platform_url: str
    token: Secret
    workspace: str | None = None
    """None for a token from the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLogin:
    """What is kept of a login to one workspace."""

    user: User
    role: str = ""
    token: Secret | None
    """None where the keyring has it."""
    token_id: str = ""
    expires_at: str
    """As the platform wrote it: an ISO date with a time."""

    @property
    def expiry(self) -> datetime:
        """When the token stops being valid."""
        return parse_moment(self.expires_at)

    def is_expired(self, now: float) -> bool:
        """Return whether the token is of no use any more, or within a minute."""
        return self.expiry.timestamp() <= now + SKEW_S


def platform_url(environ: Mapping[str, str]) -> str:
    """Return the platform's origin; raise LoginProblem unless it is https, or http on loopback."""
    text = environ.get(PLATFORM, "").strip() or DEFAULT_PLATFORM
    try:
        return platform_origin(text)
    except ValueError as error:
        raise LoginProblem(f"{PLATFORM}: {error}") from None
