"""What agents return: classes in the shape of the libraries' own, and what no agent can return."""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import MagicMock

import pytest
from pydantic import BaseModel

from osmosis_ai.agents.errors import UnusableReturn
from osmosis_ai.agents.returned import json_text, messages_of
from osmosis_ai.rollout import OsmosisValidationError

USER = {"role": "user", "content": "6 x 7?"}
SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "42"}


def calls(arguments: str, identity: str = "c1") -> list[dict[str, Any]]:
    function = {"name": "times", "arguments": arguments}
    return [{"id": identity, "type": "function", "function": function}]


ASKS = {"role": "assistant", "content": "", "tool_calls": calls('{"a": 6}')}
RESULT = {"role": "tool", "content": "42", "tool_call_id": "c1"}


class Chain(BaseModel):
    """A message of LangChain: its type, and no role."""

    type: str
    content: Any
    additional_kwargs: dict[str, Any] = {}
    id: str | None = "run-1"
    tool_calls: list[dict[str, Any]] = []
    tool_call_id: str | None = None


def human(text: str) -> Chain:
    return Chain(type="human", content=text)


def ai(text: Any, **more: Any) -> Chain:
    return Chain(type="ai", content=text, **more)


TOOL_CALL = {"name": "times", "args": {"a": 6}, "id": "c1", "type": "tool_call"}
TURNS = [
    Chain(type="system", content="Be brief."),
    human("6 x 7?"),
    ai("", tool_calls=[TOOL_CALL]),
    Chain(type="tool", content="42", tool_call_id="c1"),
    ai("42"),
]


class OpenAIMessage(BaseModel):
    role: str = "assistant"
    content: str | None = "42"
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


REFUSAL = OpenAIMessage(content=None, refusal="No.")
TOOL_CALLS = OpenAIMessage(content=None, tool_calls=[{"id": "c1", "type": "function"}])


class Choice(BaseModel):
    message: OpenAIMessage = OpenAIMessage()
    finish_reason: str = "stop"


class Completion(BaseModel):
    id: str = "chatcmpl-1"
    choices: list[Choice] = [Choice()]


class Response:
    """A response of OpenAI's Responses API."""

    output: tuple[Any, ...] = ()
    output_text = "42"

    def model_dump(self) -> dict[str, Any]:
        raise AssertionError("its text is the answer")


class Block(BaseModel):
    type: str = "text"
    text: str = "42"


class AnthropicMessage(BaseModel):
    role: str = "assistant"
    type: str = "message"
    content: list[Block] = [Block()]


class Role(str, enum.Enum):
    ASSISTANT = "assistant"


class Plain:
    """A message with attributes alone."""

    def __init__(self, role: Any = Role.ASSISTANT, content: str = "42") -> None:
        self.role, self.content = role, content


@dataclass
class Part:
    part_kind: str
    content: Any = None
    tool_name: str | None = None
    args: Any = None
    tool_call_id: str | None = None


@dataclass
class ModelMessage:
    """A message of pydantic-ai."""

    kind: str
    parts: list[Part]


AI_TURNS = [
    ModelMessage("request", [Part("system-prompt", "Be brief."), Part("user-prompt", "6 x 7?")]),
    ModelMessage(
        "response",
        [Part("thinking", "hm"), Part("tool-call", None, "times", {"a": 6}, "c1")],
    ),
    ModelMessage("request", [Part("tool-return", "42", "times", None, "c1")]),
    ModelMessage("request", [Part("retry-prompt", "again")]),
    ModelMessage("response", [Part("text", "4"), Part("text", "2")]),
]


@dataclass
class AgentRunResult:
    output: Any = "42"

    def all_messages(self) -> list[ModelMessage]:
        return AI_TURNS


@dataclass
class State:
    messages: list[Any] = field(default_factory=lambda: TURNS)
    step: int = 3


class StateModel(BaseModel):
    messages: list[Chain] = TURNS


class Answer(BaseModel):
    value: int = 42
    unit: str | None = None


CONVERSATION = [SYSTEM, USER, ASKS, RESULT, ANSWER]
AI_CONVERSATION = [
    SYSTEM,
    USER,
    {**ASKS, "content": None},
    RESULT,
    {"role": "user", "content": "again"},
    ANSWER,
]


@pytest.mark.parametrize(
    ("returned", "messages"),
    [
        (ANSWER, [ANSWER]),
        (OpenAIMessage(), [ANSWER]),
        (REFUSAL, [{"role": "assistant", "content": None, "refusal": "No."}]),
        (
            Completion(choices=[Choice(message=TOOL_CALLS)]),
            [TOOL_CALLS.model_dump(exclude={"refusal"})],
        ),
        (Completion(), [ANSWER]),
        (Response(), [ANSWER]),
        (AnthropicMessage(), [{**ANSWER, "type": "message", "content": [Block().model_dump()]}]),
        (Plain(), [ANSWER]),
        (Plain("assistant"), [ANSWER]),
        ([USER, Plain()], [USER, ANSWER]),
        ((USER, OpenAIMessage()), [USER, ANSWER]),
        (ai("42"), [ANSWER]),
        (ai([{"type": "text", "text": "42"}]), [{**ANSWER, "content": [Block().model_dump()]}]),
        (Chain(type="AIMessageChunk", content="42"), [ANSWER]),
        ({"type": "ai", "content": "42", "id": "1"}, [ANSWER]),
        (TURNS, CONVERSATION),
        ({"messages": TURNS, "step": 3}, CONVERSATION),
        ({"messages": [USER, ANSWER]}, [USER, ANSWER]),
        (State(), CONVERSATION),
        (StateModel(), CONVERSATION),
        (AI_TURNS, AI_CONVERSATION),
        (AgentRunResult(), AI_CONVERSATION),
        (AgentRunResult(Answer()), [*AI_CONVERSATION, {**ANSWER, "content": '{"value": 42}'}]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_messages_of_libraries_are_reported_by_their_shape(returned: Any, messages: Any):
    assert messages_of(returned) == messages


class OwnDump:
    def model_dump(self) -> dict[str, Any]:
        return {"value": 42}


@dataclass
class Point:
    x: int = 4
    inner: Any = field(default_factory=Answer)


@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (42, 42),
        (4.2, 4.2),
        (True, True),
        ([], []),
        ([1, "two", None], [1, "two", None]),
        (("a", 0.5), ["a", 0.5]),
        ({"messages": []}, {"messages": []}),
        ({"messages": ["hi"]}, {"messages": ["hi"]}),
        ({"type": "ai"}, {"type": "ai"}),
        ({"role": 7}, {"role": 7}),
        (Answer(), {"value": 42}),
        ([Answer()], [{"value": 42}]),
        ({"answer": Answer(unit="m")}, {"answer": {"value": 42, "unit": "m"}}),
        (OwnDump(), {"value": 42}),
        (Point(), {"x": 4, "inner": {"value": 42}}),
    ],
    ids=lambda each: str(each)[:30],
)
def test_any_other_value_of_json_is_its_json(returned: Any, value: Any):
    assert messages_of(returned) is None
    assert json.loads(json_text(returned, "agent")) == value


@pytest.mark.parametrize(
    ("returned", "came"),
    [
        (object(), "a value of type object"),
        ({1, 2}, "a value of type set"),
        (b"42", "a value of type bytes"),
        ((each for each in "42"), "a value of type generator"),
        (print, "a value of type builtin_function_or_method"),
        (Answer, "a value of type ModelMetaclass"),
        (Point, "a value of type type"),
        (4j, "a value of type complex"),
        ([1, {2}], "a value of type list with a value of type set"),
        ({"a": {"b": object()}}, "a value of type dict with a value of type object"),
        (Point(inner=object()), "a value of type Point with a value of type object"),
        ({(1, 2): 3}, "a value of type dict, which JSON does not have (keys must be"),
        (functools.partial(print), "a value of type partial"),
    ],
    ids=[f"value{at}" for at in range(13)],
)
def test_a_type_that_no_agent_can_return_is_distinguished_from_a_value(returned: Any, came: str):
    assert messages_of(returned) is None
    with pytest.raises(UnusableReturn) as raised:
        json_text(returned, "agent")
    said = str(raised.value)
    assert said.startswith(f"agent returned {came}"), said
    assert "expected text, a message" in said and "model_dump()" in said


def itself() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


@pytest.mark.parametrize("returned", [None, float("nan"), {"a": float("inf")}, itself()])
def test_a_value_that_json_has_not_is_the_error_of_one_run(returned: Any):
    with pytest.raises(OsmosisValidationError, match="expected text") as raised:
        json_text(returned, "agent")
    assert not isinstance(raised.value, UnusableReturn)


def test_an_object_that_has_every_attribute_is_none_of_them():
    assert messages_of(MagicMock()) is None
