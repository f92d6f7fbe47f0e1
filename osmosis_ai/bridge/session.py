"""One rollout's account at the bridge: its key, what its calls took, and what was said.

The bridge's thread writes it, the rollout's reads it. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..secret import Secret
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..agents.client import ModelLLM
    from ..agents.results import CompletionsResult
    from .openai import Call


class Account:
    """What `Bridge.open_account` gives to a rollout; `close()` it when the rollout has ended."""

    def __init__(
        self, *, url: str, key: Secret, llm: ModelLLM, on_close: Callable[[Account], None]
    ) -> None:
        self.url = url
        """What OpenAI clients call `base_url`."""
        self.key = key
        """Good for this rollout alone, and until it ends."""
        self.llm = llm
        """The rollout's totals: calls, tokens, cost, retries; and its last error."""
        self.trajectory = Trajectory()
        self._on_close = on_close
        self._asking: set[asyncio.Task[Any]] = set()

    def __repr__(self) -> str:
        return f"<Account at {self.url}, {self.llm.num_llm_calls} calls>"

    def close(self) -> None:
        """End the rollout: its key is refused, a call that is under way is cancelled."""
        self.llm.close()
        self._on_close(self)

    async def ask(self, call: Call) -> CompletionsResult:
        """Forward a call; in the bridge's loop."""
        task = asyncio.current_task()
        assert task is not None
        self._asking.add(task)
        try:
            result = await self.llm.chat_completions(call.messages, **call.params)
        finally:
            self._asking.discard(task)
        self.trajectory.note(call.messages, result.message)
        return result

    def cancel(self) -> None:
        """Cancel what is under way; in the bridge's loop."""
        for task in self._asking:
            task.cancel()
