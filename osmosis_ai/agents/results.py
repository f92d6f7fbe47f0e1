"""What a model call and a rollout give back to agent code.

Plain values: they know neither the model that answered nor the context that built them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..messages import text_of

if TYPE_CHECKING:
    from .schemas import RolloutMetrics


@dataclass(slots=True)
class CompletionsResult:
    """The model's answer to one `ctx.chat`."""

    message: dict[str, Any]
    """The assistant message, ready to be appended to the history."""
    token_ids: list[int] | None = None
    logprobs: Any = None
    usage: dict[str, Any] | None = None
    """`prompt_tokens`, `completion_tokens`, `total_tokens`; what is not known is absent."""
    finish_reason: str | None = None

    @property
    def has_tool_calls(self) -> bool:
        """Whether the model calls at least one tool."""
        return bool(self.message.get("tool_calls"))

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The tool calls as the model wrote them; empty when there are none."""
        return self.message.get("tool_calls") or []

    @property
    def content(self) -> str:
        """The answer's text: its text parts joined when it is a list, "" when there is none."""
        return text_of(self.message.get("content"))


@dataclass(slots=True)
class RolloutResult:
    """How a rollout ended; built by `ctx.complete` or `ctx.error`."""

    status: str
    """"COMPLETED" or "ERROR"."""
    final_messages: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str = "stop"
    error_message: str | None = None
    metrics: RolloutMetrics | None = None
    reward: float | None = None
