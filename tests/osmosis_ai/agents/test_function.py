"""An async function in the place of an agent loop."""

from __future__ import annotations

import functools

import pytest

from osmosis_ai.agents.base import FunctionAgent
from osmosis_ai.rollout import OsmosisValidationError, create_app
from osmosis_ai.rollout.testing import ScriptedModel, context, rollout

LOOKUP = {"type": "function", "function": {"name": "lookup"}}


async def agent(ctx):
    messages = list(ctx.request.messages)
    answer = await ctx.chat(messages, tools=[LOOKUP])
    return ctx.complete([*messages, answer.message])


async def tuned(temperature, ctx):
    return ctx.complete([{"role": "assistant", "content": str(temperature)}])


async def forgetful(ctx):
    await ctx.chat(ctx.request.messages)


async def judge(messages, ground_truth, metadata):
    return 1.0


def test_it_runs_as_an_agent_loop_does():
    model = ScriptedModel(["42"])
    result = rollout(agent, model, user="What is 6 x 7?")
    assert result.status == "COMPLETED"
    assert result.final_messages[-1]["content"] == "42"
    assert model.requests[0].tools == [LOOKUP]
    assert result.metrics is not None and result.metrics.num_llm_calls == 1


def test_it_has_its_own_name_and_no_tools_of_the_request():
    assert FunctionAgent(agent).name == "agent"
    assert context(ScriptedModel([]), agent).tools == []


def test_a_partial_function_is_one_too():
    result = rollout(functools.partial(tuned, 0.5), ScriptedModel([]), user="?")
    assert result.final_messages[-1]["content"] == "0.5"


def test_a_function_without_a_result_is_named():
    with pytest.raises(OsmosisValidationError, match="forgetful returned None; expected Rollout"):
        rollout(forgetful, ScriptedModel(["42"]), user="?")


def test_a_function_of_other_arguments_is_refused():
    with pytest.raises(TypeError, match="the function judge is no agent: missing a required"):
        create_app(judge)


def test_the_server_takes_a_function():
    assert create_app(agent).options.agent.name == "agent"
