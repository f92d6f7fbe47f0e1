"""What a model call and a rollout give back to agent code.

Plain values: they know neither the model that answered nor the context that built them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..messages import text_of

if TYPE_CHECKING:
    from .request import RolloutMetrics


NO_USAGE: Mapping[str, int] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@dataclass(frozen=True, slots=True)
class CompletionsResult:
    """The model's answer to one `ctx.chat`."""

    message: dict[str, Any]
    """The assistant message, ready to be appended to the history."""
    token_ids: list[int] = field(default_factory=list)
    """Empty where the endpoint sends none, as `logprobs`."""
    logprobs: Any = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=lambda: dict(NO_USAGE))
    """`prompt_tokens`, `completion_tokens`, `total_tokens`; 0 where they are not known."""
    finish_reason: str = "stop"
    """"stop" where the endpoint names no reason."""
    usage_details: Mapping[str, Any] = field(default_factory=dict)
    """`prompt_tokens_details` and `completion_tokens_details`, where the endpoint sends them."""
    document: Mapping[str, Any] | None = None
    """The whole reply, where a client asked for another API than chat completions."""
    further: Sequence[Mapping[str, Any]] = ()
    """The choices beyond the first, as the endpoint sent them, where `n` asked for several."""

    @property
    def has_tool_calls(self) -> bool:
        """Whether the model calls at least one tool."""
        return bool(self.message.get("tool_calls"))

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The tool calls as the model wrote them; empty when there are none."""
        return self.message.get("tool_calls") or []

    @property
    def content(self) -> str | None:
        """The answer's text, its text parts joined when it is a list; None when there is none."""
        content = self.message.get("content")
        return None if content is None else text_of(content)


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


def finite_number(value: Any, what: str) -> float:
    """Return `value` (a number, a bool or a numpy scalar) as a finite float, else ValueError."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, not {value!r}")
    return number
