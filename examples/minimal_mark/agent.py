"""The smallest agent: no tools, one question, one answer."""

from __future__ import annotations

from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, RolloutRequest, RolloutResult
from osmosis_ai.rollout.core.schemas import OpenAIFunctionToolSchema


class OneAnswer(RolloutAgentLoop):
    name = "one-answer"

    def get_tools(self, request: RolloutRequest) -> list[OpenAIFunctionToolSchema]:
        return []

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        answer = await ctx.chat(ctx.request.messages, **ctx.request.completion_params)
        return ctx.complete([*ctx.request.messages, answer.message])


agent_loop = OneAnswer()
