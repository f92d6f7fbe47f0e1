"""`chat`: the agent of an evaluation that names none, one call with the row's messages."""

from __future__ import annotations

from .context import RolloutContext
from .results import RolloutResult


async def chat(ctx: RolloutContext) -> RolloutResult:
    """Return the model's answer to the row's messages."""
    messages = ctx.request.messages
    reply = await ctx.chat(messages, **ctx.request.completion_params)
    return ctx.complete([*messages, reply.message])
