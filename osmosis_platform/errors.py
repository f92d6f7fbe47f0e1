"""A request that is refused, as a value: its HTTP status, a code for programs, and one sentence.

A message never holds a value that was sent: it may be a key. Knows no web framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refused(Exception):
    """A request that cannot be done as it stands."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        """The path of the field that is wrong, as `experiment_config.dataset`."""
        self.details = details
        self.headers = headers

    @property
    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        found: dict[str, Any] = {"error": self.message, "code": self.code}
        if self.field is not None:
            found["field"] = self.field
        if self.details is not None:
            found["details"] = dict(self.details)
        return found


def not_found(what: str) -> Refused:
    """Return the refusal for an object that is not there, or is another workspace's."""
    return Refused(404, "not_found", f"there is no {what} of this name or id in the workspace")


def no_room() -> Refused:
    """Return the refusal of what the disk has no room for."""
    return Refused(507, "no_space", "the disk of the platform is full; its operator must make room")


def busy() -> Refused:
    """Return the refusal of a request for which there is no room now."""
    message = "the platform is busy; try again in a few seconds"
    return Refused(503, "busy", message, headers={"Retry-After": "5"})
