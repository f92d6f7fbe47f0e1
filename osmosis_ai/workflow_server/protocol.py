"""What a controller and a server of workflows say to each other.

Unknown fields are ignored: a controller may be newer. Knows no HTTP.
"""

from __future__ import annotations

from enum import Enum
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, Field, field_validator

from ..agents.schemas import RolloutSample

__all__ = [
    "CancelRolloutsRequest",
    "CancelRolloutsResponse",
    "ExecutionRequest",
    "ExecutionResult",
    "GraderCompleteRequest",
    "GraderInitRequest",
    "GraderStatus",
    "RolloutCompleteRequest",
    "RolloutErrorCategory",
    "RolloutInitRequest",
    "RolloutStatus",
    "RolloutStatusResponse",
]


class RolloutStatus(str, Enum):
    """Where a rollout is, and how it ended."""

    QUEUED = "queued"
    RUNNING = "running"
    GRADING = "grading"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class GraderStatus(str, Enum):
    """How grading ended."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"


class RolloutErrorCategory(str, Enum):
    """Why a rollout failed."""

    TIMEOUT = "timeout"
    VALIDATION_ERROR = "validation_error"
    HTTP_ERROR = "http_error"
    AGENT_ERROR = "agent_error"


class RolloutInitRequest(BaseModel):
    """A rollout to run: controller to server, `POST /rollout`."""

    rollout_id: str = Field(default_factory=lambda: uuid4().hex, min_length=1, max_length=256)
    initial_messages: list[dict[str, Any]]
    label: Any = None
    metadata: dict[str, Any] | None = None
    chat_completions_url: str
    """What OpenAI clients call `base_url`."""
    controller_api_key: str | None = Field(default=None, repr=False)
    completion_callback_url: str
    grader_callback_url: str | None = None
    agent_timeout_sec: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    grader_timeout_sec: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    extra_fields: dict[str, Any] | None = None

    @field_validator("rollout_id", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return uuid4().hex if value is None else value

    @field_validator("rollout_id")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not value.strip() or not value.isprintable():
            raise ValueError("must have characters that are not blank, and no control characters")
        return value


class ExecutionRequest(BaseModel):
    """One rollout for a backend; for annotations, since backends run nothing themselves here."""

    id: str
    prompt: list[dict[str, Any]]
    label: Any = None
    metadata: dict[str, Any] | None = None
    agent_timeout_sec: float | None = None
    grader_timeout_sec: float | None = None


class ExecutionResult(BaseModel):
    """What a backend made of it; for annotations."""

    status: RolloutStatus
    sample: RolloutSample | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None
    extra_fields: dict[str, Any] | None = None


class GraderInitRequest(BaseModel):
    """A sample to be graded by a service apart; for annotations, since there is no such service."""

    rollout_id: str
    samples: dict[str, RolloutSample]
    completion_callback_url: str
    controller_api_key: str | None = Field(default=None, repr=False)
    extra_fields: dict[str, Any] | None = None


class RolloutStatusResponse(BaseModel):
    """Where a rollout is: the server's answer to `GET /rollout/{rollout_id}/status`."""

    rollout_id: str
    status: RolloutStatus
    """UNKNOWN when none of that id is remembered."""
    reward: float | None = None
    err_message: str | None = None


class CancelRolloutsRequest(BaseModel):
    """The rollouts to cancel: controller to server, `POST /rollout/cancel`. Give one field."""

    ids: list[str] | None = None
    prefix: str | None = Field(default=None, min_length=1)
    all: bool = False


class CancelRolloutsResponse(BaseModel):
    """What became of each rollout that was to be cancelled."""

    dispositions: dict[str, str]
    """By rollout: `cancelled_queued`, `cancelled_running`, or `not_found` where none runs."""


class RolloutCompleteRequest(BaseModel):
    """How the workflow ended: server to controller, `POST <completion_callback_url>`."""

    status: RolloutStatus
    rollout_id: str | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None
    extra_fields: dict[str, Any] | None = None


class GraderCompleteRequest(BaseModel):
    """The graded sample: server to controller, `POST <grader_callback_url>`."""

    status: GraderStatus
    rollout_id: str | None = None
    sample: RolloutSample | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None
