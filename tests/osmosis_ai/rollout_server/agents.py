"""Agents that behave, and agents that do not, for tests of the RolloutServer."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, RolloutResult

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    },
}


class Asking(RolloutAgentLoop):
    """One model call."""

    name = "asking"

    def get_tools(self, request: Any) -> list[Any]:
        return [ADD]

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        messages = list(ctx.request.messages)
        answer = await ctx.chat(messages, **ctx.request.completion_params)
        return ctx.complete([*messages, answer.message], reward=0.5)


class Behaving(RolloutAgentLoop):
    """Does what the row's metadata says under `do`."""

    name = "behaving"

    def __init__(self, together: int = 1) -> None:
        self.meeting = threading.Barrier(together)
        """Where so many that `meet` wait for each other."""
        self.events: list[str] = []
        self.released = threading.Event()
        """Set by the test: lets what `hold` blocks go on."""
        self.holding = threading.Event()
        """Set when `hold` has begun to block."""

    def get_tools(self, request: Any) -> list[Any]:
        do = request.metadata.get("do")
        if do == "no tools":
            raise RuntimeError("the tool server is away")
        if do == "odd tools":
            return [object()]
        if do == "hanging tools":
            time.sleep(3600)
        return []

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        return await getattr(self, ctx.request.metadata.get("do", "answer"))(ctx)

    async def answer(self, ctx: RolloutContext) -> RolloutResult:
        answer = await ctx.chat(list(ctx.request.messages))
        return ctx.complete([*ctx.request.messages, answer.message])

    async def raise_key(self, ctx: RolloutContext) -> RolloutResult:
        raise ValueError(f"refused: {ctx.request.metadata['key']}")

    async def log_key(self, ctx: RolloutContext) -> RolloutResult:
        ctx.log_event("note", request=ctx.request.api_key)
        return await self.answer(ctx)

    async def hang(self, ctx: RolloutContext) -> RolloutResult:
        await asyncio.sleep(3600)
        return ctx.complete([])

    async def meet(self, ctx: RolloutContext) -> RolloutResult:
        self.meeting.wait(60)
        return await self.answer(ctx)

    async def hold(self, ctx: RolloutContext) -> RolloutResult:
        self.holding.set()
        self.released.wait(60)
        return await self.answer(ctx)

    async def swallow(self, ctx: RolloutContext) -> RolloutResult:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.events.append("cancelled")

    async def leave(self, ctx: RolloutContext) -> RolloutResult:
        sys.exit(3)

    async def leave_in_task(self, ctx: RolloutContext) -> RolloutResult:
        async def leaving() -> None:
            sys.exit(3)

        await asyncio.gather(asyncio.ensure_future(leaving()))
        return ctx.complete([])

    async def cancel_itself(self, ctx: RolloutContext) -> RolloutResult:
        raise asyncio.CancelledError

    async def not_json(self, ctx: RolloutContext) -> RolloutResult:
        return ctx.complete([{"role": "assistant", "content": object()}])

    async def nan(self, ctx: RolloutContext) -> RolloutResult:
        return ctx.complete([], reward=float("nan"))

    async def nothing(self, ctx: RolloutContext) -> Any:
        return None


asking = Asking()
behaving = Behaving()
