"""A workflow and its grader: the model answers, then is asked to check itself."""

from __future__ import annotations

import re
from typing import Any

import httpx

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    Grader,
    GraderContext,
    get_rollout_context,
)

config = AgentWorkflowConfig(
    name="checked-answer",
    description="Answers, then checks the answer.",
    concurrency={"max_concurrent": 8},
    checks=1,  # further keys are kept
)


class CheckedAnswer(AgentWorkflow):
    """The plugin finds `config` in this module and hands it over."""

    async def run(self, ctx: AgentWorkflowContext) -> list[dict[str, Any]]:
        question = ctx.prompt[-1]["content"]
        messages = [*ctx.prompt, await ask(ctx.prompt)]
        for _ in range(ctx.config.checks):
            messages.append({"role": "user", "content": f"Check that again: {question}"})
            messages.append(await ask(messages))
        return messages


class LastAnswerCounts(Grader):
    """1.0 when the last answer is right, 0.5 when only an earlier one was."""

    async def grade(self, ctx: GraderContext) -> None:
        said = [m["content"] for m in ctx.sample.messages if m["role"] == "assistant"]
        right = [answer_in(text) == float(ctx.label) for text in said]
        ctx.set_reward(1.0 if right[-1] else 0.5 if any(right) else 0.0)


async def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """One model call, with whatever HTTP client is at hand; the URL and key are the rollout's."""
    rollout = get_rollout_context()
    # The bridge is plain HTTP on this machine: no certificates have to be loaded for it.
    async with httpx.AsyncClient(timeout=None, verify=False, trust_env=False) as client:
        reply = await client.post(
            f"{rollout.chat_completions_url}/chat/completions",
            headers={"Authorization": f"Bearer {rollout.api_key}"},
            json={"model": "the evaluated one", "messages": messages},
        )
    reply.raise_for_status()
    return reply.json()["choices"][0]["message"]


def answer_in(text: str) -> float | None:
    """The number behind ####."""
    found = re.search(r"####\s*(-?[\d.]+)", text)
    return float(found.group(1)) if found else None
