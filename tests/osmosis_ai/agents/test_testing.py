from __future__ import annotations

import asyncio

import pytest

from osmosis_ai.models.errors import ProviderError
from osmosis_ai.rollout import RolloutAgentLoop
from osmosis_ai.rollout.testing import ScriptedModel, call, context, rollout
from osmosis_ai.rollout.tools import (
    create_tool_result,
    execute_tool_calls,
    get_tool_call_info,
    serialize_tool_result,
)


async def add(tool_call):
    call_id, _name, arguments = get_tool_call_info(tool_call)
    return create_tool_result(call_id, serialize_tool_result(arguments["a"] + arguments["b"]))


class Calculator(RolloutAgentLoop):
    """The usual loop: ask, execute the calls, ask again."""

    name = "calculator"

    def get_tools(self, request):
        number = {"type": "number"}
        parameters = {"type": "object", "properties": {"a": number, "b": number}}
        return [{"type": "function", "function": {"name": "add", "parameters": parameters}}]

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        for _turn in range(ctx.request.max_turns):
            answer = await ctx.chat(messages, **ctx.request.completion_params)
            messages.append(answer.message)
            if not answer.has_tool_calls:
                return ctx.complete(messages, finish_reason=answer.finish_reason)
            messages.extend(await execute_tool_calls(answer.tool_calls, add))
            ctx.record_tool_call()
        return ctx.complete(messages, finish_reason="max_turns")


def test_an_agent_is_tested_by_a_script():
    model = ScriptedModel([call("add", a=2, b=2) + call("add", a=1, b=1), "The answer is 4."])
    result = rollout(Calculator(), model, system="Be exact.", user="What is 2 + 2?")
    assert (result.status, result.finish_reason) == ("COMPLETED", "stop")
    assert result.final_messages[-1]["content"] == "The answer is 4."
    assert [message["content"] for message in model.requests[1].messages[-2:]] == ["4", "2"]
    assert model.requests[0].tools[0]["function"]["name"] == "add"
    assert (result.metrics.num_llm_calls, result.metrics.num_tool_calls) == (2, 1)


def test_a_script_may_be_a_function_of_the_messages():
    model = ScriptedModel(lambda messages: messages[-1]["content"].upper())
    assert rollout(Calculator(), model, user="hi").final_messages[-1]["content"] == "HI"


def test_a_model_that_always_calls_tools_is_ended_by_max_turns():
    model = ScriptedModel(lambda messages: call("add", a=1, b=1))
    result = rollout(Calculator(), model, max_turns=3)
    assert (result.finish_reason, len(model.requests)) == ("max_turns", 3)


def test_a_script_may_raise_or_give_a_whole_message():
    error = ProviderError("503 from here", kind="overloaded")
    with pytest.raises(ProviderError):
        rollout(Calculator(), ScriptedModel([error]))
    whole = {"content": "x", "refusal": None}
    assert rollout(Calculator(), ScriptedModel([whole])).final_messages[-1] == {
        "role": "assistant",
        **whole,
    }


def test_an_agent_is_run_inside_of_an_event_loop_too():
    async def in_a_notebook():
        return rollout(Calculator(), ScriptedModel(["4"]), user="2 + 2?")

    assert asyncio.run(in_a_notebook()).status == "COMPLETED"


def test_a_call_beyond_the_script_says_so():
    with pytest.raises(AssertionError, match=r"the script has no further turn.*hello"):
        rollout(Calculator(), ScriptedModel([]), user="hello")


def test_what_was_asked_is_kept_as_it_was_and_a_script_is_not_changed_by_its_use():
    turn = {"content": None, "tool_calls": [{"function": {"name": "add", "arguments": {}}}]}
    model = ScriptedModel([turn, "done"])
    ctx = context(model, Calculator(), user="hi")
    messages = list(ctx.request.messages)

    async def talk():
        messages.append((await ctx.chat(messages)).message)
        messages.append((await ctx.chat(messages)).message)

    asyncio.run(talk())
    assert [len(asked.messages) for asked in model.requests] == [1, 2]
    assert "id" not in turn["tool_calls"][0]
    assert ctx.tools[0]["function"]["name"] == "add"


def test_a_tool_call_with_broken_arguments_can_be_scripted():
    from osmosis_ai.rollout.testing import ToolCall

    model = ScriptedModel([[ToolCall("add", "{broken")], "sorry"])
    result = rollout(Calculator(), model)
    assert result.final_messages[-2]["content"].startswith("Error: arguments are not JSON")
