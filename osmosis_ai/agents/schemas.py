"""Pydantic models: messages between trainer, RolloutServer and model, and a workflow's sample.

Knows neither HTTP nor how an agent is run. What every rollout takes is in `request` and `metrics`.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from .eval_request import EVAL_SERVER_URL
from .request import (
    DEFAULT_MAX_METADATA_SIZE_BYTES,
    MAX_METADATA_BYTES,
    Message,
    PositiveInt,
    RolloutMetrics,
    RolloutRequest,
    WireModel,
    check_rollout_id,
    get_max_metadata_size_bytes,
    set_max_metadata_size_bytes,
)
from .results import finite_number

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

MessageDict = Message
SamplingParamsDict = dict[str, Any]
"""Options of a model call: temperature, max_tokens, ..."""


def normalize_stop(stop: Any) -> list[str] | None:
    """Return the `stop` of a model call as a list; None where there is none."""
    if isinstance(stop, str):
        return [stop]
    return [str(item) for item in stop] if isinstance(stop, list | tuple) else None


class RolloutStatus(str, Enum):
    """How a rollout ended."""

    COMPLETED = "COMPLETED"
    ERROR = "ERROR"


class RolloutSample(BaseModel):
    """The conversation of a workflow in one rollout, and the reward of its grader."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    messages: list[dict[str, Any]] = Field(default_factory=list)
    """The conversation, in the form of the agent's own framework."""
    trajectory_messages: list[dict[str, Any]] | None = None
    """The model calls' messages as the endpoint saw them, where they were recorded."""
    label: Any = None
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


# OpenAI's function calling. JSON Schema has many more keywords than the fields named here; the rest
# is kept as it is given.


class OpenAIFunctionPropertySchema(WireModel):
    """One parameter of a function, as JSON Schema; further keywords are kept."""

    model_config = ConfigDict(extra="allow")

    type: str | list[str] | None = None
    description: str | None = None
    enum: list[Any] | None = None


class OpenAIFunctionParametersSchema(WireModel):
    """A function's parameters: a JSON Schema of type object."""

    model_config = ConfigDict(extra="allow")

    type: Literal["object"] = "object"
    properties: dict[str, OpenAIFunctionPropertySchema] = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)


class OpenAIFunctionSchema(WireModel):
    """The description of a function for the model."""

    model_config = ConfigDict(extra="allow")

    name: str
    description: str | None = None
    parameters: OpenAIFunctionParametersSchema = Field(
        default_factory=OpenAIFunctionParametersSchema
    )
    strict: bool | None = None


class OpenAIFunctionToolSchema(WireModel):
    """One tool, as in the `tools` of a chat request."""

    type: Literal["function"] = "function"
    function: OpenAIFunctionSchema


class OpenAIFunctionParsedSchema(WireModel):
    """A function call as the model wrote it: the arguments are JSON text."""

    name: str
    arguments: str


class OpenAIFunctionCallSchema(WireModel):
    """A function call whose arguments have been read."""

    name: str
    arguments: dict[str, Any]

    @staticmethod
    def from_openai_function_parsed_schema(
        parsed: OpenAIFunctionParsedSchema,
    ) -> tuple[OpenAIFunctionCallSchema, bool]:
        """Read the arguments; the second value is True when they are not a JSON object."""
        try:
            arguments = json.loads(parsed.arguments)
        except (ValueError, RecursionError):
            arguments = None
        failed = not isinstance(arguments, dict)
        return OpenAIFunctionCallSchema(
            name=parsed.name, arguments={} if failed else arguments
        ), failed


class OpenAIFunctionToolCall(WireModel):
    """One call in an assistant message's `tool_calls`, its arguments read."""

    id: str
    type: Literal["function"] = "function"
    function: OpenAIFunctionCallSchema


class ToolResponse(WireModel):
    """What a tool gives back."""

    text: str | None = None
    image: list[Any] | None = None
    video: list[Any] | None = None
