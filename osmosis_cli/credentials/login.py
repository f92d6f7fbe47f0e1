"""Logins: a token, the platform that issued it, and for whom; and the content of their file.

    {"version": 1,
     "platforms": {"https://platform.osmosis.ai": {
       "active_workspace": "acme",
       "workspaces": {"acme": {
         "user": {"id": "u1", "name": "Ada", "email": "ada@example.com"}, "role": "owner",
         "token": "...", "token_id": "t1", "expires_at": "2027-01-31T12:00:00Z"}}}}}

A token that the keyring has is null here. A login to no workspace has the name "".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from osmosis_ai.platform.account import User, parse_moment, text_or_empty, user_of
from osmosis_ai.platform.address import platform_origin
from osmosis_ai.platform.answers import moment_of
from osmosis_ai.secret import Secret, check_token

SKEW_S = 60.0
"""A token that expires so soon is treated as expired."""


DEFAULT_PLATFORM = "https://platform.osmosis.ai"
PLATFORM = "OSMOSIS_PLATFORM_URL"


class LoginProblem(Exception):
    """A login cannot be used or kept; `str()` says why and what to do."""


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


_VERSION = 1


@dataclass(frozen=True, slots=True)
class PlatformLogins:
    """The logins at one platform, by workspace."""

    workspaces: Mapping[str, KeptLogin] = field(default_factory=dict)
    active: str | None = None
    """The workspace whose login is used; None when none was chosen."""


@dataclass(frozen=True, slots=True)
class Logins:
    """All logins, by platform and workspace."""

    platforms: Mapping[str, PlatformLogins] = field(default_factory=dict)

    def at(self, platform: str) -> PlatformLogins:
        """Return the logins at a platform; none of an unknown one."""
        return self.platforms.get(platform, PlatformLogins())

    def with_login(self, platform: str, workspace: str, login: KeptLogin) -> Logins:
        """Return these logins and one more, which becomes the active one of its platform."""
        here = self.at(platform)
        spaces = {**here.workspaces, workspace: login}
        return self._with(platform, PlatformLogins(spaces, workspace))

    def without(self, platform: str, workspace: str) -> Logins:
        """Return these logins but one; none takes the place of an active one."""
        here = self.at(platform)
        spaces = {name: login for name, login in here.workspaces.items() if name != workspace}
        active = None if here.active == workspace else here.active
        return self._with(platform, PlatformLogins(spaces, active))

    def switched(self, platform: str, workspace: str) -> Logins:
        """Return these logins with another active workspace."""
        return self._with(platform, replace(self.at(platform), active=workspace))

    def _with(self, platform: str, here: PlatformLogins) -> Logins:
        kept = {url: logins for url, logins in self.platforms.items() if url != platform}
        return Logins({**kept, platform: here} if here.workspaces else kept)


def parse(content: bytes) -> Logins:
    """Return the logins of a file's content; raise ValueError with what is wrong."""
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    if document.get("version") != _VERSION:
        raise ValueError("another version of osmosis has written it")
    platforms = _table(document, "platforms")
    return Logins({url: _platform(_table(platforms, url), url) for url in platforms})


def dump(logins: Logins) -> bytes:
    """Return the content of a file with these logins."""
    platforms = {
        url: {
            "active_workspace": here.active,
            "workspaces": {name: _entry(login) for name, login in here.workspaces.items()},
        }
        for url, here in logins.platforms.items()
    }
    document = {"version": _VERSION, "platforms": platforms}
    return json.dumps(document, indent=2).encode() + b"\n"


def _entry(login: KeptLogin) -> dict[str, Any]:
    return {
        "user": asdict(login.user),
        "role": login.role,
        "token": login.token.reveal() if login.token else None,
        "token_id": login.token_id,
        "expires_at": login.expires_at,
    }


def _platform(here: Mapping[str, Any], url: str) -> PlatformLogins:
    entries, active = _table(here, "workspaces"), here.get("active_workspace")
    if active is not None and active not in entries:
        raise ValueError(f"the active workspace for {url} is none of those in it")
    return PlatformLogins({name: _login(_table(entries, name), name) for name in entries}, active)


def _login(entry: Mapping[str, Any], name: str) -> KeptLogin:
    user = _table(entry, "user") if "user" in entry else {}
    value, expires = entry.get("token", ""), entry.get("expires_at")
    if value is not None and not isinstance(value, str):
        raise ValueError(f"the token of the workspace {name!r} is no text")
    if not isinstance(expires, str) or moment_of(expires) is None:
        raise ValueError(f"the workspace {name!r} has no date as expires_at")
    return KeptLogin(
        user=user_of(user),
        role=text_or_empty(entry, "role"),
        token=None if value is None else check_token(value, "the token of your login"),
        token_id=text_or_empty(entry, "token_id"),
        expires_at=expires,
    )


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    if not isinstance(found, dict):
        raise ValueError(f"{name!r} in it is no table")
    return found
