"""Pydantic models: messages between trainer, RolloutServer and model, and a workflow's sample.

Knows neither HTTP nor how an agent is run. `RolloutRequest.for_eval` builds the request of a local
evaluation without the checks that untrusted input needs.
"""

from __future__ import annotations

import json
import unicodedata
from enum import Enum
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from ..rollout_settings import get_settings
from .numbers import finite_number
from .tool_schemas import (
    OpenAIFunctionCallSchema,
    OpenAIFunctionParametersSchema,
    OpenAIFunctionParsedSchema,
    OpenAIFunctionPropertySchema,
    OpenAIFunctionSchema,
    OpenAIFunctionToolCall,
    OpenAIFunctionToolSchema,
    ToolResponse,
    WireModel,
)

__all__ = [
    "DEFAULT_MAX_METADATA_SIZE_BYTES",
    "EVAL_SERVER_URL",
    "MAX_METADATA_BYTES",
    "CompletionUsage",
    "CompletionsChoice",
    "CompletionsRequest",
    "CompletionsResponse",
    "InitResponse",
    "Message",
    "MessageDict",
    "OpenAIFunctionCallSchema",
    "OpenAIFunctionParametersSchema",
    "OpenAIFunctionParsedSchema",
    "OpenAIFunctionPropertySchema",
    "OpenAIFunctionSchema",
    "OpenAIFunctionToolCall",
    "OpenAIFunctionToolSchema",
    "PositiveInt",
    "RolloutMetrics",
    "RolloutRequest",
    "RolloutResponse",
    "RolloutSample",
    "RolloutStatus",
    "SamplingParamsDict",
    "ToolResponse",
    "check_rollout_id",
    "get_max_metadata_size_bytes",
    "normalize_stop",
    "set_max_metadata_size_bytes",
]

Message = dict[str, Any]
"""One chat message in OpenAI's form."""

SamplingParams = dict[str, Any]
"""Options of a model call: temperature, max_tokens, ..."""

MessageDict, SamplingParamsDict = Message, SamplingParams

MAX_METADATA_BYTES = 1024 * 1024
"""The most that a request's metadata may take as JSON, unless another limit is set."""
DEFAULT_MAX_METADATA_SIZE_BYTES = MAX_METADATA_BYTES

_metadata_limit: int | None = None
"""None: that of the settings."""


def get_max_metadata_size_bytes() -> int:
    """Return the most that a request's metadata may take as JSON, in bytes."""
    return get_settings().max_metadata_size_bytes if _metadata_limit is None else _metadata_limit


def set_max_metadata_size_bytes(size_bytes: int) -> None:
    """Set another limit for the requests that this process reads from now on."""
    if size_bytes < 1:
        raise ValueError(f"size_bytes must be a whole number from 1 on, not {size_bytes!r}")
    global _metadata_limit  # noqa: PLW0603  a limit of the process, as its documented setter says
    _metadata_limit = size_bytes


EVAL_SERVER_URL = "http://eval.invalid"
"""The `server_url` of a local evaluation, which has no trainer: a name that cannot resolve."""


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
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise ValueError("a rollout_id must not hold control characters")
    return value


def normalize_stop(stop: Any) -> list[str] | None:
    """Return the `stop` of a model call as a list; None where there is none."""
    if isinstance(stop, str):
        return [stop]
    return [str(item) for item in stop] if isinstance(stop, list | tuple) else None


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


class RolloutStatus(str, Enum):
    """How a rollout ended."""

    COMPLETED = "COMPLETED"
    ERROR = "ERROR"


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
        return cls.model_construct(
            _REQUEST_FIELDS,
            rollout_id=check_rollout_id(rollout_id),
            server_url=EVAL_SERVER_URL,
            messages=messages,
            completion_params={} if completion_params is None else completion_params,
            tool_server_url=None,
            max_turns=max_turns,
            max_tokens_total=max_tokens_total,
            metadata={} if metadata is None else metadata,
            api_key=None,
            idempotency_key=None,
        )


_REQUEST_FIELDS = set(RolloutRequest.model_fields)


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


class RolloutSample(BaseModel):
    """The conversation of a workflow in one rollout, and the reward of its grader."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    messages: list[dict[str, Any]] = Field(default_factory=list)
    """The conversation, in the form of the agent's own framework."""
    trajectory_messages: list[dict[str, Any]] | None = None
    """The model calls' messages as the endpoint saw them, where they were recorded."""
    label: str | None = None
    """The row's ground truth."""
    reward: float | None = None
    remove_sample: bool = False
    """Whether a trainer must skip this sample."""
    metrics: dict[str, float] = Field(default_factory=dict)
    extra_fields: dict[str, Any] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """What code calls this sample that knows several a rollout: its `id`, where it has one."""
        return str((self.model_extra or {}).get("id", "sample"))

    @field_validator("reward", mode="before")
    @classmethod
    def _finite_reward(cls, value: Any) -> float | None:
        return None if value is None else finite_number(value, "reward")


class InitResponse(WireModel):
    """The server's answer to an init: 202 with the tools that the agent will use."""

    rollout_id: str
    tools: list[OpenAIFunctionToolSchema] = Field(default_factory=list)


class RolloutResponse(WireModel):
    """How a rollout ended: server to trainer, `POST /v1/rollout/completed`."""

    rollout_id: str
    status: RolloutStatus
    final_messages: list[Message] = Field(default_factory=list)
    finish_reason: str | None = None
    error_message: str | None = None
    reward: float | None = Field(default=None, allow_inf_nan=False)
    metrics: RolloutMetrics | None = None
    extra_fields: dict[str, Any] = Field(default_factory=dict)


class CompletionsRequest(WireModel):
    """One model call: server to trainer, `POST /v1/chat/completions`."""

    model_config = ConfigDict(extra="allow")

    model: str = "default"
    messages: list[Message]
    """The whole history; a rollout only ever appends to it."""
    rollout_id: str
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512
    stop: Annotated[list[str] | None, BeforeValidator(normalize_stop)] = None
    logprobs: bool = True

    _rollout_id = field_validator("rollout_id")(check_rollout_id)


class CompletionUsage(WireModel):
    """Tokens of one model call; 0 where the endpoint does not report them."""

    model_config = ConfigDict(extra="allow")

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CompletionsChoice(WireModel):
    """One answer of the model."""

    model_config = ConfigDict(extra="allow")

    index: int = 0
    message: Message
    finish_reason: str | None = None


class CompletionsResponse(WireModel):
    """The answer to a model call, in OpenAI's form."""

    model_config = ConfigDict(extra="allow")

    id: str = ""
    object: Literal["chat.completion"] = "chat.completion"
    created: int = 0
    model: str = ""
    choices: list[CompletionsChoice] = Field(min_length=1)
    usage: CompletionUsage | None = None
    token_ids: list[int] | None = None
    logprobs: Any = None
