"""One rollout of a `RolloutAgentLoop`. Imports the SDK's models: only where a rollout runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from osmosis_ai.agents.client import ModelLLM
from osmosis_ai.agents.context import RolloutContext
from osmosis_ai.agents.errors import OsmosisValidationError
from osmosis_ai.agents.request import RolloutRequest
from osmosis_ai.agents.runner import begin, checked
from osmosis_ai.agents.tools import dump_tools

from .agent import AgentResult, AgentRun, WrongTools

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop


async def run_loop(loop: RolloutAgentLoop, run: AgentRun, *, tools_of: str) -> AgentResult:
    """Run the loop; `tools_of` is what messages call its `get_tools`."""
    request = RolloutRequest.for_eval(
        rollout_id=run.rollout_id,
        messages=run.messages,
        completion_params=dict(run.params),
        metadata={**run.metadata, "ground_truth": run.ground_truth},
        max_turns=run.max_turns,
    )
    tools = loop.get_tools(request)
    try:
        dumped = dump_tools(tools, owner=tools_of)
    except OsmosisValidationError as error:
        raise WrongTools(str(error)) from None
    assert run.model is not None
    run.llm = ModelLLM(run.model, tools=dumped, params=run.sent, record=True)
    ctx = RolloutContext(request, tools, run.llm, debug_dir=run.debug_dir, redact=run.redact)
    with ctx:
        given = await begin(loop, ctx)
    result = checked(loop, given, ctx)
    failed = result.status == "ERROR"
    return AgentResult(
        [*result.final_messages],  # what a task of the agent appends later is not of this run
        error=(result.error_message or "") if failed else None,
        reward=result.reward,
        tool_calls=result.metrics.num_tool_calls if result.metrics is not None else 0,
    )
