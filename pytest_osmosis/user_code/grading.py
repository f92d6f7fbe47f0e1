"""A `Grader` as a score: what it is given, and the reward that it sets."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .agent import AgentResult, AgentRun
from .eval_function import EvalFnError
from .workflow import max_concurrent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from osmosis_ai.rollout import Grader, RolloutSample


class Grading:
    """Scores runs by the reward that a grader sets."""

    def __init__(self, grader: Grader) -> None:
        self._grader = grader
        self.name = type(grader).__name__
        limit = max_concurrent(getattr(grader, "config", None))
        self.slot: AbstractAsyncContextManager[Any] = (
            nullcontext() if limit is None else asyncio.Semaphore(limit)
        )
        """To be held while it grades: a grader may limit how many it grades at once."""

    async def reward(
        self, run: AgentRun, outcome: AgentResult, metadata: Mapping[str, Any]
    ) -> float:
        """The reward; EvalFnError when the grader set none, else what it raised."""
        from osmosis_ai.agents.grader import GraderContext, run_grader

        ctx = GraderContext(
            label=run.ground_truth,
            sample=_sample(run, outcome),
            metadata=dict(metadata),
            artifacts_dir=run.artifacts_dir(),
        )
        try:
            reward = await run_grader(self._grader, ctx)
        except SystemExit as error:  # it would end the event loop, and every other run with it
            raise EvalFnError(f"`{self.name}.grade` called sys.exit({error.code!r})") from error
        if reward is None:
            raise EvalFnError(f"`{self.name}.grade` set no reward: call ctx.set_reward(x)")
        return reward


def _sample(run: AgentRun, outcome: AgentResult) -> RolloutSample | None:
    from osmosis_ai.agents.schemas import RolloutSample

    sample = outcome.sample
    if sample is None and outcome.messages:
        recorded = run.account.trajectory.all() if run.account is not None else []
        sample = RolloutSample(messages=outcome.messages, trajectory_messages=recorded or None)
    if sample is None:
        return None
    # A copy: eval functions score the same messages, whatever the grader does to them.
    return sample.model_copy(update={"label": run.ground_truth, "reward": None}, deep=True)
