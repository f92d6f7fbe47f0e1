"""The smallest agent: one question, one answer."""

from __future__ import annotations

from typing import Any

from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, RolloutRequest, RolloutResult


class OneAnswer(RolloutAgentLoop):
    name = "one-answer"

    def get_tools(self, request: RolloutRequest) -> list[Any]:
        return []

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        answer = await ctx.chat(ctx.request.messages, **ctx.request.completion_params)
        return ctx.complete([*ctx.request.messages, answer.message])


agent_loop = OneAnswer()
