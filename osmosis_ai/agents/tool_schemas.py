"""OpenAI's function calling as pydantic models: tools, tool calls, what a tool gives back.

JSON Schema has many more keywords than the fields named here; the rest is kept as it is given.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import ConfigDict, Field

from .wire_model import WireModel


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
