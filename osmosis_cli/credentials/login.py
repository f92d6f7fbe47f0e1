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

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from osmosis_ai.platform.account import User, parse_moment
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


class _Kept(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        populate_by_name=True,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )


class KeptLogin(_Kept):
    """What is kept of a login to one workspace."""

    user: User = User()
    role: str = ""
    token: Secret | None
    """None where the keyring has it."""
    token_id: str = ""
    expires_at: str
    """As the platform wrote it: an ISO date with a time."""

    @field_validator("token", mode="before")
    @classmethod
    def _read_token(cls, value: Any) -> Any:
        return check_token(value, "the token of your login") if isinstance(value, str) else value

    @field_validator("expires_at")
    @classmethod
    def _check_date(cls, value: str) -> str:
        if moment_of(value) is None:
            raise ValueError("is no date")
        return value

    @field_serializer("token")
    def _write_token(self, token: Secret | None) -> str | None:
        return None if token is None else token.reveal()

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


class PlatformLogins(_Kept):
    """The logins at one platform, by workspace."""

    active: str | None = Field(
        None, validation_alias="active_workspace", serialization_alias="active_workspace"
    )
    """The workspace whose login is used; None when none was chosen."""
    workspaces: dict[str, KeptLogin] = {}

    @model_validator(mode="after")
    def _check_active(self) -> PlatformLogins:
        if self.active is not None and self.active not in self.workspaces:
            raise ValueError("its active workspace is none of those in it")
        return self


class Logins(_Kept):
    """All logins, by platform and workspace."""

    version: Literal[1] = 1
    platforms: dict[str, PlatformLogins] = {}

    def at(self, platform: str) -> PlatformLogins:
        """Return the logins at a platform; none of an unknown one."""
        return self.platforms.get(platform, PlatformLogins(active=None))

    def with_login(self, platform: str, workspace: str, login: KeptLogin) -> Logins:
        """Return these logins and one more, which becomes the active one of its platform."""
        here = self.at(platform)
        spaces = {**here.workspaces, workspace: login}
        return self._with(platform, PlatformLogins(workspaces=spaces, active=workspace))

    def without(self, platform: str, workspace: str) -> Logins:
        """Return these logins but one; none takes the place of an active one."""
        here = self.at(platform)
        spaces = {name: login for name, login in here.workspaces.items() if name != workspace}
        active = None if here.active == workspace else here.active
        return self._with(platform, PlatformLogins(workspaces=spaces, active=active))

    def switched(self, platform: str, workspace: str) -> Logins:
        """Return these logins with another active workspace."""
        return self._with(platform, self.at(platform).model_copy(update={"active": workspace}))

    def _with(self, platform: str, here: PlatformLogins) -> Logins:
        kept = {url: logins for url, logins in self.platforms.items() if url != platform}
        return Logins(platforms={**kept, platform: here} if here.workspaces else kept)


def parse(content: bytes) -> Logins:
    """Return the logins of a file's content; raise ValueError with what is wrong."""
    try:
        found = Logins.model_validate_json(content)
        if found.model_fields_set >= {"version", "platforms"}:
            return found
        raise ValueError("it has no version or no platforms")
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    if place == "version":
        raise ValueError("another version of osmosis has written it")
    raise ValueError(f"{place}: {first['msg']}" if place else "it is not a JSON object of logins")


def dump(logins: Logins) -> bytes:
    """Return the content of a file with these logins."""
    return logins.model_dump_json(indent=2, by_alias=True).encode() + b"\n"
