"""Strands Agents on rollouts, with the library itself; in `tox -e strands` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from strands import Agent

from osmosis_ai.rollout.context import RolloutContext
from osmosis_ai.rollout.integrations.agents.strands import (
    OsmosisRolloutModel,
    OsmosisStrandsAgent,
)
from tests.support.workspace_rollout import Evaluated, check, documented, evaluated, in_a_rollout

WORKFLOW = '''
from typing import Any

from strands import tool
from strands.models.model import Model

from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.context import AgentWorkflowContext
from osmosis_ai.rollout.integrations.agents.strands import (
    OsmosisRolloutModel,
    OsmosisStrandsAgent,
)
from osmosis_ai.rollout.types import AgentWorkflowConfig

@tool
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b

class MultiplyConfig(AgentWorkflowConfig):
    name: str = "Multiply"
    model: Model
    tools: Any

workflow_config = MultiplyConfig(
    model=OsmosisRolloutModel(params={"temperature": 1.0, "max_tokens": 512}), tools=[multiply]
)

class Multiply(AgentWorkflow[MultiplyConfig]):
    async def run(self, ctx: AgentWorkflowContext[MultiplyConfig]) -> None:
        agent = OsmosisStrandsAgent(
            name="multiply",
            model=ctx.config.model,
            tools=ctx.config.tools,
            messages=ctx.prompt,
            callback_handler=None,
        )
        await agent.invoke_async()
'''


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    return evaluated(tmp_path_factory.mktemp("workspace"), WORKFLOW)


def test_a_workspaces_rollout_is_evaluated_as_it_is(session: Evaluated):
    check(session)


def test_the_guides_example_is_evaluated_as_it_stands(tmp_path: Path):
    check(documented(tmp_path, "strands-agents"))


def test_a_prompt_given_to_the_agent_is_in_its_sample():
    async def work(context: RolloutContext) -> Any:
        agent = OsmosisStrandsAgent(system_prompt="Add.", callback_handler=None)
        result = await agent.invoke_async("What is 2 plus 3?")
        usage = result.metrics.accumulated_usage
        return usage, await context.get_sample()

    usage, sample = in_a_rollout(work)
    assert usage["totalTokens"] > 0
    assert sample.messages[0]["content"] == [{"text": "What is 2 plus 3?"}]
    chat = sample.trajectory_messages
    assert [message["role"] for message in chat] == ["system", "user", "assistant"]
    assert chat[-1]["content"][0]["text"] == sample.messages[-1]["content"][0]["text"]


def test_the_model_is_there_in_a_rollout_alone_and_keeps_its_name():
    agent = OsmosisStrandsAgent(callback_handler=None)
    with pytest.raises(RuntimeError, match="none is running here: use it in the `run`"):
        agent("hello")
    model = OsmosisRolloutModel(params={"temperature": 0.5})
    model.update_config(model_id="other", params={"temperature": 0.7})
    assert model.get_config() == {"model_id": "osmosis-rollout", "params": {"temperature": 0.7}}


def test_one_agent_a_rollout_is_the_sample_and_another_model_is_the_librarys_affair():
    async def work(context: RolloutContext) -> Any:
        OsmosisStrandsAgent(callback_handler=None)
        with pytest.raises(ValueError, match="has a sample source already"):
            OsmosisStrandsAgent(callback_handler=None)

        class Own(OsmosisRolloutModel):
            pass

        Agent(model=Own(), callback_handler=None)  # registers nothing

    in_a_rollout(work)


def test_a_structured_answer_comes_from_the_rollouts_model():
    class Sum(BaseModel):
        total: float

    async def work(context: RolloutContext) -> Any:
        model = OsmosisRolloutModel()
        prompt = [{"role": "user", "content": [{"text": "What is 2 plus 3?"}]}]
        return [event async for event in model.structured_output(Sum, prompt)]

    # The embedded model answers in prose, which Strands refuses: the request went its way.
    with pytest.raises(ValueError, match="Sum"):
        in_a_rollout(work)
