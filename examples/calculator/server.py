"""A calculator: an agent that answers arithmetic with four tools.

`agent_loop` is what an evaluation runs; `app` serves the same agent to a trainer.
"""

from __future__ import annotations

import time
from typing import Any

from tools import CALCULATOR_TOOLS, execute_tool_call

from osmosis_ai.rollout import (
    RolloutAgentLoop,
    RolloutContext,
    RolloutRequest,
    RolloutResult,
    create_app,
)
from osmosis_ai.rollout.core.schemas import OpenAIFunctionToolSchema
from osmosis_ai.rollout.tools import execute_tool_calls


class CalculatorAgentLoop(RolloutAgentLoop):
    """Asks the model, runs the tools that it calls, and asks again until it has answered."""

    name = "calculator"

    def get_tools(self, request: RolloutRequest) -> list[OpenAIFunctionToolSchema]:
        return CALCULATOR_TOOLS

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        messages = list(ctx.request.messages)
        for turn in range(ctx.request.max_turns):
            answer = await ctx.chat(messages, **ctx.request.completion_params)
            messages.append(answer.message)
            ctx.log_event("turn", turn=turn, tool_calls=len(answer.tool_calls or []))
            if not answer.has_tool_calls:
                return ctx.complete(messages, finish_reason=answer.finish_reason or "stop")
            messages += await self._run_tools(ctx, answer.tool_calls)
        return ctx.complete(messages, finish_reason="max_turns")

    async def _run_tools(
        self, ctx: RolloutContext, tool_calls: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        async def timed(tool_call: dict[str, Any]) -> dict[str, Any]:
            start = time.monotonic()
            result = await execute_tool_call(tool_call)
            ctx.record_tool_call(latency_ms=(time.monotonic() - start) * 1000)
            return result

        return await execute_tool_calls(tool_calls, timed)


agent_loop = CalculatorAgentLoop()
app = create_app(agent_loop)
