# ruff: noqa: UP006, UP035
"""A remote rollout server, as an existing project has it."""

import logging
import os
import time
from typing import Any, Dict, List

from tools import CALCULATOR_TOOLS, execute_tool

from osmosis_ai.rollout import (
    RolloutAgentLoop,
    RolloutContext,
    RolloutRequest,
    RolloutResult,
    create_app,
)
from osmosis_ai.rollout.core.schemas import OpenAIFunctionToolSchema
from osmosis_ai.rollout.tools import execute_tool_calls

logger = logging.getLogger(__name__)


class CalculatorAgentLoop(RolloutAgentLoop):
    name = "calculator"

    def get_tools(self, request: RolloutRequest) -> List[OpenAIFunctionToolSchema]:
        return CALCULATOR_TOOLS

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        messages: List[Dict[str, Any]] = list(ctx.request.messages)
        finish_reason = "stop"
        ctx.log_event("pre_run", max_turns=ctx.request.max_turns)

        for turn in range(ctx.request.max_turns):
            result = await ctx.chat(messages, **ctx.request.completion_params)
            messages.append(result.message)
            if not result.has_tool_calls:
                finish_reason = result.finish_reason
                break

            start = time.monotonic()
            tool_results = await execute_tool_calls(result.tool_calls, execute_tool)
            messages.extend(tool_results)
            ctx.record_tool_call(latency_ms=(time.monotonic() - start) * 1000)
            logger.debug("turn %d: %d tool calls", turn, len(result.tool_calls))
        else:
            finish_reason = "max_turns"

        return ctx.complete(messages, finish_reason=finish_reason)


agent_loop = CalculatorAgentLoop()
app = create_app(agent_loop, debug_dir=os.environ.get("ROLLOUT_DEBUG_DIR"))

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(
        app,
        host=os.environ.get("ROLLOUT_SERVER_HOST", "0.0.0.0"),
        port=int(os.environ.get("ROLLOUT_SERVER_PORT", "9000")),
    )
