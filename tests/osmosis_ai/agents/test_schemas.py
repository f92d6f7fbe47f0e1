from __future__ import annotations

import copy
import json
import pickle
import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from osmosis_ai.agents.eval_request import EvalRequest
from osmosis_ai.agents.event_log import name_for_file
from osmosis_ai.rollout.core.schemas import (
    EVAL_SERVER_URL,
    MAX_METADATA_BYTES,
    CompletionsRequest,
    CompletionsResponse,
    InitResponse,
    OpenAIFunctionCallSchema,
    OpenAIFunctionParametersSchema,
    OpenAIFunctionParsedSchema,
    OpenAIFunctionPropertySchema,
    OpenAIFunctionSchema,
    OpenAIFunctionToolSchema,
    RolloutMetrics,
    RolloutRequest,
    RolloutResponse,
    RolloutStatus,
)

VALID = {"rollout_id": "r-1", "server_url": "http://trainer:8000", "messages": []}


def request(**changes):
    return RolloutRequest(**{**VALID, **changes})


def test_a_request_has_the_contracts_defaults():
    asked = request()
    assert (asked.max_turns, asked.max_tokens_total) == (10, 8192)
    assert (asked.metadata, asked.completion_params) == ({}, {})
    assert asked.tool_server_url is asked.api_key is asked.idempotency_key is None


@pytest.mark.parametrize(
    "rollout_id", ["a", "eval-3-run-1", "a/b c", "..", "run#1", "é", "{x}", "x" * 256, "\u202e"]
)
def test_a_rollout_id_may_hold_any_printable_character(rollout_id):
    assert request(rollout_id=rollout_id).rollout_id == rollout_id


@pytest.mark.parametrize("rollout_id", ["", " ", "\u3000", "a\n", "a\0", "\x9f", "x" * 257, 7])
def test_a_rollout_id_that_is_blank_too_long_or_has_control_characters_is_refused(rollout_id):
    with pytest.raises(ValidationError):
        request(rollout_id=rollout_id)


@given(st.text(max_size=300))
def test_a_rollout_id_that_is_taken_is_encoded_for_its_file(text):
    try:
        taken = request(rollout_id=text).rollout_id
    except ValidationError:
        return
    name = name_for_file(taken)
    assert taken == text and re.fullmatch(r"[\w.%:@~+-]{1,200}", name, re.ASCII)
    assert not name.startswith(".")
    assert "+" in name or unquote(name) == text


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://trainer:8000", "http://trainer:8000"),
        ("https://trainer.example/base/", "https://trainer.example/base"),
        ("http://[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_a_server_url_with_scheme_and_host_is_taken(url, kept):
    assert request(server_url=url).server_url == kept


@pytest.mark.parametrize(
    "url",
    [
        "",
        "trainer:8000",
        "file:///etc/passwd",
        "http://",
        "http:///x",
        "ftp://trainer",
        "http://a b",
        "http://a:99999",
        "http://a:0",
        "http://a\\@b",
        "http://user:key@a",
        "http://a/?x=1",
        "http://a/#f",
        "http://a\r\nX: 1",
        "http://[::1",
    ],
)
def test_any_other_server_url_is_refused(url):
    with pytest.raises(ValidationError):
        request(server_url=url)


@pytest.mark.parametrize("name", ["max_turns", "max_tokens_total"])
@pytest.mark.parametrize("value", [0, -1, True, "five", "0", 1.5])
def test_limits_are_positive_whole_numbers(name, value):
    with pytest.raises(ValidationError):
        request(**{name: value})


def test_metadata_of_one_mebibyte_is_taken_and_one_byte_more_is_not():
    room = MAX_METADATA_BYTES - len('{"a":""}')
    assert request(metadata={"a": "x" * room})
    with pytest.raises(ValidationError, match="1,048,577 bytes; at most 1,048,576"):
        request(metadata={"a": "x" * (room + 1)})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}])
def test_metadata_must_be_json(value):
    with pytest.raises(ValidationError, match="metadata must be JSON"):
        request(metadata={"a": value})


def test_metadata_nested_beyond_reason_is_refused_without_a_crash():
    nested: dict = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises((ValidationError, RecursionError)):
        request(metadata=nested)


def test_the_callback_key_is_in_no_repr_dump_or_error():
    asked = request(api_key="sk-very-secret")
    assert asked.api_key == "sk-very-secret"
    assert "sk-very" not in repr(asked) + str(asked.model_dump()) + asked.model_dump_json()
    with pytest.raises(ValidationError) as caught:
        request(api_key="sk-very-secret", max_turns=0, rollout_id="")
    assert "sk-very" not in str(caught.value)


def test_a_local_evaluations_request_is_the_one_that_the_wire_would_have_given():
    fields = {
        "rollout_id": "eval-0-run-0",
        "messages": [{"role": "user", "content": "hi"}],
        "completion_params": {"temperature": 0.0},
        "metadata": {"ground_truth": "4"},
        "max_turns": 3,
    }
    local = RolloutRequest.for_eval(**fields)
    assert type(local) is RolloutRequest
    assert local == RolloutRequest(server_url=EVAL_SERVER_URL, **fields)
    assert local.model_dump() == RolloutRequest(server_url=EVAL_SERVER_URL, **fields).model_dump()
    with pytest.raises(ValueError, match="a rollout_id has"):
        RolloutRequest.for_eval(rollout_id="", messages=[])
    own = EvalRequest(**fields)
    assert own.model_dump() == local.model_dump()
    assert own.model_copy(update={"max_turns": 4}).max_turns == 4
    own.messages.append({"role": "assistant", "content": "4"})
    assert own.model_dump()["messages"] == own.messages
    assert copy.deepcopy(own) == own == pickle.loads(pickle.dumps(own))
    with pytest.raises(AttributeError):
        own.no_such_name  # noqa: B018


def test_a_tool_schema_dumps_to_what_openai_takes():
    tool = OpenAIFunctionToolSchema(
        type="function",
        function=OpenAIFunctionSchema(
            name="add",
            description="Add two numbers",
            parameters=OpenAIFunctionParametersSchema(
                type="object",
                properties={"a": OpenAIFunctionPropertySchema(type="number", description="First")},
                required=["a"],
            ),
        ),
    )
    assert tool.model_dump(exclude_none=True) == {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number", "description": "First"}},
                "required": ["a"],
            },
        },
    }


def test_json_schema_keywords_that_have_no_field_survive():
    given_tool = {
        "type": "function",
        "function": {
            "name": "f",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "b": {"type": ["integer", "null"], "minimum": 1},
                    "c": {"type": "array", "items": {"type": "object", "properties": {}}},
                },
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    }
    tools = InitResponse(rollout_id="r", tools=[given_tool]).tools
    assert tools[0].model_dump(exclude_none=True) == given_tool


def test_parsed_arguments_tell_whether_they_are_a_json_object():
    def read(arguments):
        parsed = OpenAIFunctionParsedSchema(name="f", arguments=arguments)
        return OpenAIFunctionCallSchema.from_openai_function_parsed_schema(parsed)

    assert read('{"a": 1}') == (OpenAIFunctionCallSchema(name="f", arguments={"a": 1}), False)
    assert read("[1]") == read("{") == (OpenAIFunctionCallSchema(name="f", arguments={}), True)


def test_a_completion_request_has_the_contracts_defaults():
    body = CompletionsRequest(messages=[], rollout_id="r").model_dump(exclude_none=True)
    assert body == {
        "model": "default",
        "messages": [],
        "rollout_id": "r",
        "temperature": 1.0,
        "top_p": 1.0,
        "max_tokens": 512,
        "logprobs": True,
    }


def test_a_completion_without_choices_is_refused():
    with pytest.raises(ValidationError):
        CompletionsResponse(choices=[])
    answer = CompletionsResponse(choices=[{"message": {"role": "assistant", "content": "x"}}])
    assert answer.choices[0].message["content"] == "x"


def test_a_rollouts_end_is_json_with_a_finite_reward():
    end = RolloutResponse(
        rollout_id="r", status=RolloutStatus.COMPLETED, reward=1.0, metrics=RolloutMetrics()
    )
    assert json.loads(end.model_dump_json())["status"] == "COMPLETED"
    with pytest.raises(ValidationError):
        RolloutResponse(rollout_id="r", status="COMPLETED", reward=float("nan"))
    with pytest.raises(ValidationError):
        RolloutResponse(rollout_id="r", status="DONE")
