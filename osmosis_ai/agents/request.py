"""The request of a rollout and its metrics as pydantic models; what an untrusted request must pass.

Knows neither HTTP nor how an agent is run. `RolloutRequest.for_eval` builds a request without the
checks that untrusted input needs; a local evaluation has an `EvalRequest`. A module of its own: an
evaluation imports it behind its first model calls, and none of the other models.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from .eval_request import EVAL_SERVER_URL

Message = dict[str, Any]
"""One chat message in OpenAI's form."""

MAX_METADATA_BYTES = 1024 * 1024
"""The most that a request's metadata may take as JSON, unless another limit is set."""
DEFAULT_MAX_METADATA_SIZE_BYTES = MAX_METADATA_BYTES

_metadata_limit: int | None = None
"""None: that of the settings."""


def get_max_metadata_size_bytes() -> int:
    """Return the most that a request's metadata may take as JSON, in bytes."""
    if _metadata_limit is not None:
        return _metadata_limit
    from ..rollout_settings import get_settings  # three more classes, for the checks alone

    return get_settings().max_metadata_size_bytes


def set_max_metadata_size_bytes(size_bytes: int) -> None:
    """Set another limit for the requests that this process reads from now on."""
    if size_bytes < 1:
        raise ValueError(f"size_bytes must be a whole number from 1 on, not {size_bytes!r}")
    global _metadata_limit  # noqa: PLW0603  a limit of the process, as its documented setter says
    _metadata_limit = size_bytes


def _whole_number(value: Any) -> Any:
    """Pass on a whole number, also as text; true and 1.0 are none."""
    if isinstance(value, bool | float):
        raise ValueError("must be a whole number")
    return value


PositiveInt = Annotated[int, BeforeValidator(_whole_number), Field(ge=1)]


def check_rollout_id(value: str) -> str:
    """Return `value` if it can name a rollout, else raise ValueError."""
    if not 1 <= len(value) <= 256 or value.isspace():
        raise ValueError("a rollout_id has 1 to 256 characters and is not blank")
    if not value.isprintable() and any(unicodedata.category(c) in ("Cc", "Cs") for c in value):
        raise ValueError("a rollout_id must not hold control characters")
    return value


def _check_server_url(value: str) -> str:
    expected = "server_url must be an http or https URL with a host"
    if not value.isprintable() or " " in value or "\\" in value:
        raise ValueError(expected)
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(expected)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("server_url must not hold credentials, a query or a fragment")
    return value.rstrip("/")


def _check_metadata(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise ValueError("metadata must be JSON, with finite numbers") from None
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > get_max_metadata_size_bytes():
        most = get_max_metadata_size_bytes()
        raise ValueError(f"metadata takes {size:,} bytes; at most {most:,}")
    return value


class WireModel(BaseModel):
    """What all models of the wire are; one that is never read or written is never built."""

    model_config = ConfigDict(defer_build=True)


class RolloutMetrics(WireModel):
    """Latencies and counts of a rollout; tokens are None when the endpoint did not report them."""

    total_latency_ms: float = 0.0
    llm_latency_ms: float = 0.0
    tool_latency_ms: float = 0.0
    num_llm_calls: int = 0
    num_tool_calls: int = 0
    prompt_tokens: int | None = 0
    response_tokens: int | None = 0
    max_context_tokens: int | None = 0
    """Prompt and response of the largest single call."""


class RolloutRequest(WireModel):
    """The request of a rollout: trainer to server, `POST /v1/rollout/init`."""

    # The input may hold the caller's key: a validation error must not quote it.
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    rollout_id: str
    server_url: str
    """Where the trainer listens; `EVAL_SERVER_URL` in a local evaluation."""
    messages: list[Message]
    """The conversation so far, usually system then user."""
    completion_params: dict[str, Any] = Field(default_factory=dict)
    """Sampling options to hand to `ctx.chat(messages, **completion_params)`."""
    tool_server_url: str | None = None
    max_turns: PositiveInt = 10
    max_tokens_total: PositiveInt = 8192
    metadata: dict[str, Any] = Field(default_factory=dict)
    """The row's extra data; JSON, at most 1 MiB."""
    api_key: str | None = Field(default=None, repr=False, exclude=True)
    """Bearer key for the calls back to the trainer; never part of a dump or a repr."""
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=1024)

    _rollout_id = field_validator("rollout_id")(check_rollout_id)
    _server_url = field_validator("server_url")(_check_server_url)
    _metadata = field_validator("metadata")(_check_metadata)

    @classmethod
    def for_eval(
        cls,
        *,
        rollout_id: str,
        messages: list[Message],
        completion_params: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        max_turns: int = 10,
        max_tokens_total: int = 8192,
    ) -> RolloutRequest:
        """Return the request of a local evaluation, from values that the caller has checked.

        Only the rollout's id is checked, and nothing is copied: pass fresh lists and dicts.
        """
        return _EVAL_REQUEST.model_copy(
            update={
                "rollout_id": check_rollout_id(rollout_id),
                "messages": messages,
                "completion_params": {} if completion_params is None else completion_params,
                "max_turns": max_turns,
                "max_tokens_total": max_tokens_total,
                "metadata": {} if metadata is None else metadata,
            }
        )


# Checks are built when the first untrusted request is read: an evaluation has none.
_EVAL_REQUEST = RolloutRequest.model_construct(
    rollout_id="eval", server_url=EVAL_SERVER_URL, messages=[]
)
