"""A workflow that does what its prompt says, and a grader."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress
from numbers import Integral

import httpx
from pydantic import Field

from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.context import (
    AgentWorkflowContext,
    GraderContext,
    get_rollout_context,
)
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.types import AgentWorkflowConfig

tidying = threading.Event()
"""Set while `tidy up` has something to tidy up."""


class Config(AgentWorkflowConfig):
    name: str = "asking"
    seen: list[str] = Field(default_factory=list)
    kind: type = dict


class Asking(AgentWorkflow[Config]):
    """Asks the rollout's model once."""

    async def run(self, ctx: AgentWorkflowContext[Config]) -> list[dict[str, object]]:
        wish = ctx.prompt[-1]["content"]
        if wish == "raise":
            raise LookupError("no such drawer")
        if wish == "give up":
            await asyncio.wait_for(asyncio.sleep(3600), 0)
        if wish == "leave":
            sys.exit(3)
        if wish == "leak":
            rollout = get_rollout_context()
            assert rollout is not None
            raise PermissionError(f"refused: {rollout.api_key} and {os.environ['SEARCH_API_KEY']}")
        if wish == "swallow":
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
            await asyncio.sleep(3600)
        if wish == "tidy up":
            try:
                tidying.set()
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0.3)
                tidying.clear()
        if wish == "wait":
            await asyncio.sleep(3600)
        assert ctx.config is not None
        ctx.config.seen.append(wish)
        assert len(ctx.config.seen) == 1  # a copy for each rollout
        rollout = get_rollout_context()
        assert rollout is not None
        headers = {"Authorization": f"Bearer {rollout.api_key}"}
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
            reply = await client.post(
                f"{rollout.chat_completions_url}/chat/completions",
                json={"messages": ctx.prompt},
                headers=headers,
            )
        return [*ctx.prompt, reply.json()["choices"][0]["message"]]


@Integral.register
class LibraryNumber:
    """As numpy's: no int, but registered as a whole number."""

    def __int__(self) -> int:
        return 3


class Matching(Grader):
    """1.0 when the last message is the label."""

    async def grade(self, ctx: GraderContext) -> None:
        assert ctx.sample is not None
        if ctx.label == "leave":
            sys.exit(4)
        if ctx.label == "boundless":
            ctx.sample.metrics = {"margin": float("inf")}
            ctx.sample.extra_fields = {"steps": LibraryNumber(), "grader": self}
        if ctx.label != "ungraded":
            ctx.set_reward(float(ctx.sample.messages[-1]["content"] == ctx.label))


config = Config()
