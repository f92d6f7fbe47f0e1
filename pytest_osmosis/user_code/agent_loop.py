"""`RolloutAgentLoop`s: `run(ctx)` with the model behind `ctx.chat`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from osmosis_ai.agents.client import ModelLLM
from osmosis_ai.agents.context import RolloutContext
from osmosis_ai.agents.errors import OsmosisValidationError
from osmosis_ai.agents.runner import begin, checked
from osmosis_ai.agents.tools import dump_tools

from .agent import AgentResult, AgentRun, WrongTools

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop


class LoopAgent:
    """Runs an agent loop."""

    max_concurrent: int | None = None
    reward_hint = "return ctx.complete(messages, reward=...)"
    imports: Sequence[str] = ("osmosis_ai.agents.request",)

    def __init__(self, loop: RolloutAgentLoop) -> None:
        self.loop = loop
        self.asks_model: bool = getattr(loop, "asks_model", True)
        self._tools_of = f"{type(loop).__name__}.get_tools"

    async def run(self, run: AgentRun) -> AgentResult:
        """One rollout of the loop."""
        from osmosis_ai.agents.request import RolloutRequest  # pydantic

        request = RolloutRequest.for_eval(
            rollout_id=run.rollout_id,
            messages=run.messages,
            completion_params=dict(run.params),
            metadata={**run.metadata, "ground_truth": run.ground_truth},
            max_turns=run.max_turns,
        )
        tools = self.loop.get_tools(request)
        try:
            is_none = type(tools) is list and not tools
            dumped = [] if is_none else dump_tools(tools, owner=self._tools_of)
        except OsmosisValidationError as error:
            raise WrongTools(str(error)) from None
        run.llm = ModelLLM(run.model, tools=dumped, params=run.sent, record=True)
        ctx = RolloutContext(
            request,
            tools,
            run.llm,
            debug_dir=run.debug_dir,
            run_sync=run.run_sync,
        )
        run.llm.counts_all = self.asks_model
        ctx.rate_limit, ctx.price_per_mtok = run.rate_limit, run.price_per_mtok
        with ctx:
            given = await begin(self.loop, ctx)
        result = checked(self.loop, given, ctx)
        failed = result.status == "ERROR"
        return AgentResult(
            [*result.final_messages],  # what a task of the agent appends later is not of this run
            error=(result.error_message or "") if failed else None,
            reward=result.reward,
            tool_calls=result.metrics.num_tool_calls if result.metrics is not None else 0,
        )
