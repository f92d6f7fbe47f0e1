"""The user of a token, and its end: `GET verify` and `DELETE tokens`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .answers import moment_of, table_of, text_of

if TYPE_CHECKING:
    from .client import PlatformClient


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person at a platform, as far as it says."""

    id: str = ""
    name: str = ""
    email: str = ""

    @property
    def display_name(self) -> str:
        """The name with the address, as far as they are known."""
        both = self.name and self.email
        return f"{self.name} <{self.email}>" if both else self.name or self.email or self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The user of a token, with its workspace and its end."""

    user: User
    workspace: str = ""
    """Empty for a token that is for no workspace in particular."""
    role: str = ""
    clone_folder: str = ""
    """The folder of this machine that the platform clones the workspace from, if it is one."""
    token_id: str = ""
    expires_at: str
    """As the platform wrote it: an ISO date with a time."""


def verify(client: PlatformClient) -> Identity:
    """Return the user of the client's token; raise PlatformError."""
    answer = client.get("/api/cli/verify")
    workspace = table_of(answer, "workspace")
    expires = text_or_empty(answer, "expires_at")
    if moment_of(expires) is None:
        raise client.bad_answer("does not say when the token expires")
    return Identity(
        user=user_of(table_of(answer, "user")),
        workspace=text_or_empty(workspace, "name"),
        role=text_or_empty(workspace, "role"),
        clone_folder=text_or_empty(workspace, "clone_folder"),
        token_id=text_or_empty(answer, "token_id"),
        expires_at=expires,
    )


def revoke(client: PlatformClient, token_id: str) -> None:
    """End a token at its platform, also one that has ended already; raise PlatformError."""
    from .client import PlatformError, cli_path

    try:
        client.delete(cli_path("tokens", token_id), subject="such token")
    except PlatformError as error:
        if error.status not in (401, 404):
            raise


def user_of(entry: Mapping[str, Any]) -> User:
    """Return the user of a JSON object, as far as it says."""
    return User(**{name: text_or_empty(entry, name) for name in ("id", "name", "email")})


def parse_moment(text: str) -> datetime:
    """Return a date of the wire, in UTC where it has no zone; raise ValueError."""
    moment = moment_of(text)
    if moment is None:
        raise ValueError("no date")
    return moment


def text_or_empty(entry: Mapping[str, Any], name: str) -> str:
    """Return a text of a JSON object; empty where there is none."""
    return text_of(entry, name) or ""
