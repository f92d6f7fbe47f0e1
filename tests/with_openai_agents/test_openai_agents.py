"""The OpenAI Agents SDK on rollouts, with the SDK itself; in `tox -e openai_agents` alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import agents
import pytest

from osmosis_ai.rollout.context import RolloutContext
from osmosis_ai.rollout.integrations.agents.openai_agents import (
    OsmosisAgent,
    OsmosisLitellmModel,
    OsmosisMemorySession,
    OsmosisRolloutModel,
    SessionSampleSource,
)
from tests.support.workspace_rollout import Evaluated, check, documented, evaluated, in_a_rollout

agents.set_tracing_disabled(True)

WORKFLOW = '''
from typing import Any

from agents import ModelSettings, Runner, function_tool
from agents.models.interface import Model

from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.context import AgentWorkflowContext
from osmosis_ai.rollout.integrations.agents.openai_agents import (
    OsmosisAgent,
    OsmosisMemorySession,
    OsmosisRolloutModel,
)
from osmosis_ai.rollout.types import AgentWorkflowConfig

@function_tool
async def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b

class MultiplyConfig(AgentWorkflowConfig):
    name: str = "Multiply"
    model: Model
    model_settings: ModelSettings
    tools: Any

workflow_config = MultiplyConfig(
    model=OsmosisRolloutModel(),
    model_settings=ModelSettings(temperature=1.0, max_tokens=512),
    tools=[multiply],
)

class Multiply(AgentWorkflow[MultiplyConfig]):
    async def run(self, ctx: AgentWorkflowContext[MultiplyConfig]) -> None:
        agent = OsmosisAgent(
            name="multiply",
            model=ctx.config.model,
            model_settings=ctx.config.model_settings,
            tools=ctx.config.tools,
        )
        await Runner.run(agent, ctx.prompt, session=OsmosisMemorySession(), max_turns=8)
'''


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    return evaluated(tmp_path_factory.mktemp("workspace"), WORKFLOW)


def test_a_workspaces_rollout_is_evaluated_as_it_is(session: Evaluated):
    check(session)


def test_the_guides_example_is_evaluated_as_it_stands(tmp_path: Path):
    check(documented(tmp_path, "openai-agents"))


def test_a_streamed_run_gives_the_same_sample():
    async def work(context: RolloutContext) -> Any:
        session = OsmosisMemorySession()
        agent = OsmosisAgent(name="adding")  # the rollout's model, without a word
        stream = agents.Runner.run_streamed(agent, "What is 2 plus 3?", session=session)
        kinds = [event.type async for event in stream.stream_events()]
        return kinds, stream.final_output, await context.get_sample()

    kinds, output, sample = in_a_rollout(work)
    assert "raw_response_event" in kinds
    assert sample.messages[-1]["content"][0]["text"] == output
    assert sample.trajectory_messages[-1]["content"] == output
    assert sample.trajectory_messages[0] == {"role": "user", "content": "What is 2 plus 3?"}


def test_a_session_of_the_sdk_can_be_the_sample_too(tmp_path: Any):
    async def work(context: RolloutContext) -> Any:
        session = agents.SQLiteSession("s", tmp_path / "sessions.db")
        context.set_sample_source(SessionSampleSource(session))
        agent = agents.Agent(name="adding", model=OsmosisLitellmModel())
        await agents.Runner.run(agent, "What is 2 plus 3?", session=session)
        return await context.get_sample()

    sample = in_a_rollout(work)
    assert [message["role"] for message in sample.trajectory_messages] == ["user", "assistant"]


def test_what_has_no_chat_form_leaves_the_sessions_items(caplog: pytest.LogCaptureFixture):
    async def work(context: RolloutContext) -> Any:
        session = OsmosisMemorySession()
        await session.add_items([{"type": "item_reference", "id": "i"}])
        return await context.get_sample()

    sample = in_a_rollout(work)
    assert sample.messages == [{"type": "item_reference", "id": "i"}]
    assert sample.trajectory_messages is None
    assert "cannot be said as chat messages" in caplog.text


def test_the_model_is_there_in_a_rollout_alone():
    agent = OsmosisAgent(name="adding", model=OsmosisRolloutModel())
    with pytest.raises(RuntimeError, match="none is running here: use it in the `run`"):
        asyncio.run(agents.Runner.run(agent, "hello"))
    assert OsmosisAgent(name="other", model="gpt-5-mini").model == "gpt-5-mini"


def test_a_session_belongs_to_its_rollout():
    async def work(context: RolloutContext) -> Any:
        session = OsmosisMemorySession()
        other = RolloutContext(rollout_id="other")
        with other, pytest.raises(RuntimeError, match="belongs to another rollout"):
            await session.get_items()
        with pytest.raises(ValueError, match="has a sample source already"):
            OsmosisMemorySession()
        await session.add_items([{"role": "user", "content": str(n)} for n in range(3)])
        assert [item["content"] for item in await session.get_items(limit=2)] == ["1", "2"]
        assert (await session.pop_item())["content"] == "2"
        await session.clear_session()
        assert await session.pop_item() is None
        return await session.get_items()

    assert in_a_rollout(work) == []

    async def outside() -> Any:
        session = OsmosisMemorySession()
        await session.add_items([{"role": "user", "content": "hello"}])
        return await session.get_items()

    assert len(asyncio.run(outside())) == 1
