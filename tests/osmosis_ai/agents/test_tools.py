from __future__ import annotations

import asyncio
import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from osmosis_ai.rollout import RolloutAgentLoop
from osmosis_ai.rollout.core.exceptions import (
    OsmosisRolloutError,
    OsmosisValidationError,
    ToolArgumentError,
    ToolExecutionError,
)
from osmosis_ai.rollout.core.schemas import OpenAIFunctionSchema, OpenAIFunctionToolSchema
from osmosis_ai.rollout.testing import request
from osmosis_ai.rollout.tools import (
    MAX_TOOL_CALLS,
    create_tool_error_result,
    create_tool_result,
    execute_tool_calls,
    get_tool_call_info,
    parse_tool_arguments,
    serialize_tool_result,
    tool_schemas,
)


def tool_call(arguments, name="add", call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_tool_result_is_a_tool_message():
    assert create_tool_result("c1", "4") == {"role": "tool", "tool_call_id": "c1", "content": "4"}
    error = create_tool_error_result("c1", "division by zero")
    assert (error["tool_call_id"], error["content"]) == ("c1", "Error: division by zero")


class Point(BaseModel):
    x: int


class Odd:
    def __str__(self):
        return "odd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (4.0, "4.0"),
        (None, "null"),
        (True, "true"),
        ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
        (Point(x=1), '{"x": 1}'),
        (Odd(), '"odd"'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
)
def test_what_a_tool_returned_becomes_text(value, text):
    assert serialize_tool_result(value) == text


@pytest.mark.parametrize(
    "arguments", ['{"a": 1}', {"a": 1}, tool_call('{"a": 1}'), tool_call({"a": 1})]
)
def test_arguments_are_read_from_a_call_from_text_and_from_a_dict(arguments):
    assert parse_tool_arguments(arguments) == {"a": 1}


@pytest.mark.parametrize("nothing", ["", "  \n", "{}", {}, None, "null"])
def test_no_arguments_are_an_empty_dict(nothing):
    assert parse_tool_arguments(nothing) == parse_tool_arguments(tool_call(nothing)) == {}


@pytest.mark.fault("the arguments of a tool call are not JSON, or no object")
@pytest.mark.parametrize("arguments", ["{bad", "[1]", "7", '"x"', [1], 7, "[" * 10**5])
def test_arguments_that_are_no_json_object_are_an_error_that_carries_the_calls_id(arguments):
    with pytest.raises(ToolArgumentError) as caught:
        parse_tool_arguments(tool_call(arguments))
    assert (caught.value.tool_call_id, caught.value.tool_name) == ("c1", "add")
    assert isinstance(caught.value, (ToolExecutionError, OsmosisRolloutError))
    with pytest.raises(ToolArgumentError):
        get_tool_call_info(tool_call(arguments))


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none(), max_size=4))
def test_arguments_survive_the_way_to_text_and_back(arguments):
    assert get_tool_call_info(tool_call(json.dumps(arguments))) == ("c1", "add", arguments)


@pytest.mark.fault("a tool call is of an unknown tool, lacks an id or repeats one")
def test_a_call_without_an_id_is_given_one_that_stays():
    call = tool_call("{}", call_id=None)
    call_id, name, _ = get_tool_call_info(call)
    assert call_id.startswith("call_") and name == "add"
    assert call["id"] == call_id == get_tool_call_info(call)[0]


@pytest.mark.parametrize("function", [None, {}, {"name": ""}, {"name": 7}, "add"])
def test_a_call_that_names_no_function_is_an_error(function):
    with pytest.raises(ToolArgumentError, match="names no function") as caught:
        get_tool_call_info({"id": "c9", "function": function})
    assert caught.value.tool_call_id == "c9"


async def add(call):
    call_id, _name, arguments = get_tool_call_info(call)
    return create_tool_result(call_id, serialize_tool_result(arguments["a"] + 1))


def execute(calls, executor=add):
    return asyncio.run(execute_tool_calls(calls, executor))


def test_a_call_that_exits_is_an_error_result_and_ends_nothing_else():
    async def executor(call):
        if call["id"] == "leaves":
            sys.exit(3)
        return "stays"

    calls = [tool_call("{}", call_id="leaves"), tool_call("{}", call_id="other")]
    contents = [result["content"] for result in execute(calls, executor)]
    assert contents == ["Error: SystemExit: 3", "stays"]


def test_calls_run_at_once_and_results_come_in_call_order():
    arrived = asyncio.Event()
    order = []

    async def executor(call):
        if call["id"] == "c0":
            await arrived.wait()
        else:
            arrived.set()
        order.append(call["id"])
        return create_tool_result(call["id"], "done")

    results = execute([tool_call("{}", call_id=f"c{n}") for n in range(3)], executor)
    assert [result["tool_call_id"] for result in results] == ["c0", "c1", "c2"]
    assert order == ["c1", "c2", "c0"]


def test_a_call_that_goes_wrong_is_answered_with_its_error_and_the_others_go_on(caplog):
    calls = [
        tool_call('{"a": 1}', call_id="good"),
        tool_call("{bad", call_id="bad-json"),
        tool_call("[]", call_id="list"),
        tool_call('{"b": 1}', call_id="raises"),
        tool_call({"a": 2}, call_id="dict"),
    ]
    contents = {result["tool_call_id"]: result["content"] for result in execute(calls)}
    assert contents["good"] == "2" and contents["dict"] == "3"
    assert contents["bad-json"].startswith("Error: arguments are not JSON")
    assert contents["list"] == "Error: arguments must be a JSON object, not a list"
    assert contents["raises"] == "Error: KeyError: 'a'"
    assert "raises" in caplog.text and "bad-json" not in caplog.text


@pytest.mark.fault("a tool call is of an unknown tool, lacks an id or repeats one")
def test_every_call_is_answered_whatever_its_shape():
    same = [tool_call('{"a": 1}', call_id="same"), tool_call('{"a": 2}', call_id="same")]
    assert [result["content"] for result in execute(same)] == ["2", "3"]
    (nameless,) = execute([tool_call('{"a": 1}', call_id=None)])
    assert nameless["tool_call_id"].startswith("call_")
    (text,) = execute(["add"])
    assert text["content"] == "Error: the tool call is not a JSON object"
    assert execute([]) == []


def test_an_executor_may_return_a_bare_value_and_need_not_be_async():
    assert execute([tool_call("{}")], lambda call: {"sum": 4}) == [
        create_tool_result("c1", '{"sum": 4}')
    ]


@pytest.mark.fault("the model calls tools without end, or hundreds at once")
def test_calls_beyond_the_limit_are_answered_and_not_executed():
    executed = []
    calls = [tool_call("{}", call_id=f"c{n}") for n in range(MAX_TOOL_CALLS + 2)]
    results = execute(calls, lambda call: executed.append(call) or "ok")
    assert len(executed) == MAX_TOOL_CALLS
    assert [result["tool_call_id"] for result in results] == [call["id"] for call in calls]
    assert results[-1]["content"].startswith("Error: too many tool calls at once (130; at most 128")


def test_cancelling_the_rollout_cancels_its_tools():
    cancelled = []

    async def hang(call):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(call["id"])
            raise

    async def main():
        task = asyncio.create_task(execute_tool_calls([tool_call("{}")], hang))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert cancelled == ["c1"]


class Agent(RolloutAgentLoop):
    name = "agent"

    def __init__(self, tools):
        self.tools = tools

    def get_tools(self, request):
        return self.tools

    async def run(self, ctx):
        return ctx.complete([])


def function(name="f", **more):
    return {"type": "function", "function": {"name": name, **more}}


def test_schemas_and_dicts_are_dumped_alike():
    schema = OpenAIFunctionToolSchema(function=OpenAIFunctionSchema(name="f", description="F"))
    dumped = function(
        description="F", parameters={"type": "object", "properties": {}, "required": []}
    )
    assert tool_schemas(Agent([schema]), request()) == [dumped]
    assert tool_schemas(Agent((dumped,)), request()) == [dumped]
    assert tool_schemas(Agent([]), request()) == []


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        (None, "Agent.get_tools returned None; expected a list of tools"),
        ({"f": 1}, "Agent.get_tools returned dict; expected a list of tools"),
        (["f"], "Agent.get_tools: tool 0 is str; expected an OpenAIFunctionToolSchema or a dict"),
        ([{"name": "f"}], "tool 0 is not of the form"),
        ([function(), function(name="")], "tool 1 has the name ''; expected 1 to 64 letters"),
        ([function(name="a b")], "tool 0 has the name 'a b'"),
        ([function(name="f\n")], "tool 0 has the name 'f\\n'"),
        ([function(name="x" * 65)], "expected 1 to 64 letters"),
        ([function(), function()], "Agent.get_tools: two tools are named 'f'"),
        ([function(parameters={"type": "string"})], "tool 0 (f) needs parameters of type object"),
        ([function(parameters={"type": "object", "properties": []})], "needs properties as a dict"),
        (
            [function(parameters={"type": "object", "properties": {}, "required": ["a"]})],
            "tool 0 (f) requires 'a', which is not among its properties",
        ),
        ([function(parameters={"type": "object", "default": math.nan})], "tool 0 is not JSON"),
        ([function(description=object())], "tool 0 is not JSON"),
    ],
)
def test_tools_that_are_no_valid_function_schemas_are_named(tools, problem):
    with pytest.raises(OsmosisValidationError) as caught:
        tool_schemas(Agent(tools), request())
    assert problem in str(caught.value)


def test_an_async_get_tools_is_named():
    class Async(Agent):
        async def get_tools(self, request):
            return []

    with pytest.raises(OsmosisValidationError, match=r"Async.get_tools is async; expected a plain"):
        tool_schemas(Async([]), request())
