"""What can go wrong in a rollout.

    OsmosisRolloutError
    ├── OsmosisTransportError      the other side could not be reached
    ├── OsmosisServerError         it answered with a 5xx status
    ├── OsmosisValidationError     a value breaks the contract, or it answered with a 4xx status
    ├── OsmosisTimeoutError        it did not answer in time
    ├── AgentLoopNotFoundError     no agent loop has that name
    └── ToolExecutionError         a tool failed; carries tool_call_id and tool_name
        └── ToolArgumentError      its arguments are not a JSON object

`ToolArgumentError` is both an `OsmosisRolloutError` and a kind of tool failure, so one
`except ToolExecutionError` around a tool call is enough. This module knows nothing else of the SDK.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "AgentLoopNotFoundError",
    "OsmosisRolloutError",
    "OsmosisServerError",
    "OsmosisTimeoutError",
    "OsmosisTransportError",
    "OsmosisValidationError",
    "ToolArgumentError",
    "ToolExecutionError",
]


class OsmosisRolloutError(Exception):
    """Anything that went wrong in a rollout."""


class OsmosisTransportError(OsmosisRolloutError):
    """The other side could not be reached, or the connection broke."""


class OsmosisServerError(OsmosisRolloutError):
    """The other side answered with a 5xx status."""

    def __init__(self, message: str, status_code: int | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code


class OsmosisValidationError(OsmosisRolloutError):
    """A value breaks the contract, or the other side answered with a 4xx status."""

    def __init__(self, message: str, status_code: int | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code


class UnusableReturn(OsmosisValidationError):
    """A value of a type that no agent can return: every run of the agent would."""


class OsmosisTimeoutError(OsmosisRolloutError):
    """The other side did not answer in time."""


class AgentLoopNotFoundError(OsmosisRolloutError):
    """No agent loop has the name that was asked for."""

    def __init__(self, name: str, available: Iterable[str] = ()) -> None:
        self.name = name
        self.available = list(available)
        super().__init__(name, self.available)

    def __str__(self) -> str:
        known = ", ".join(self.available) or "none"
        return f"no agent loop is named {self.name!r}; there are: {known}"


class ToolExecutionError(OsmosisRolloutError):
    """A tool failed."""

    def __init__(
        self, message: str, tool_call_id: str | None = None, tool_name: str | None = None
    ) -> None:
        super().__init__(message)
        self.tool_call_id = tool_call_id
        self.tool_name = tool_name


class ToolArgumentError(ToolExecutionError):
    """A tool call's arguments are not a JSON object."""
