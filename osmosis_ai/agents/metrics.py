"""What a rollout took, as a pydantic model: `ctx.metrics()`, and part of a result on the wire."""

from __future__ import annotations

from .wire_model import WireModel


class RolloutMetrics(WireModel):
    """Latencies and counts of a rollout; tokens are None when the endpoint did not report them."""

    total_latency_ms: float = 0.0
    llm_latency_ms: float = 0.0
    tool_latency_ms: float = 0.0
    num_llm_calls: int = 0
    num_tool_calls: int = 0
    prompt_tokens: int | None = 0
    response_tokens: int | None = 0
    max_context_tokens: int | None = 0
    """Prompt and response of the largest single call."""
