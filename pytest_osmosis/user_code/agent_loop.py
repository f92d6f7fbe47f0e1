"""`RolloutAgentLoop`s: `run(ctx)` with the model behind `ctx.chat`."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop

    from .agent import AgentResult, AgentRun


class LoopAgent:
    """Runs an agent loop."""

    max_concurrent: int | None = None
    reward_hint = "return ctx.complete(messages, reward=...)"
    imports: Sequence[str] = ("pytest_osmosis.user_code.loop_rollout",)

    def __init__(self, loop: RolloutAgentLoop) -> None:
        self.loop = loop
        self._tools_of = f"{type(loop).__name__}.get_tools"

    def run(self, run: AgentRun) -> Awaitable[AgentResult]:
        """One rollout of the loop."""
        from .loop_rollout import run_loop

        return run_loop(self.loop, run, tools_of=self._tools_of)
