"""`AgentWorkflow`s: `run(ctx)` with the model behind the bridge's URL."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import EvalFnError
from .agent import EVERYTHING, AgentResult, AgentRun, Reach, Takes, count_tool_results

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from osmosis_ai.bridge import Account
    from osmosis_ai.rollout import AgentWorkflow, Grader, RolloutSample


class WorkflowAgent:
    """Runs a workflow."""

    reach: frozenset[Reach] = EVERYTHING - {"turns"}
    needs_model = True
    takes: Takes = "task"
    reward_hint = "write a Grader"
    imports: Sequence[str] = ("osmosis_ai.agents.workflow", "osmosis_ai.bridge")

    def __init__(self, workflow: AgentWorkflow[Any], new: Callable[[], AgentWorkflow[Any]]) -> None:
        """`workflow` tells what the class is like; `new` returns the one that runs a rollout."""
        self.workflow = workflow
        self._new = new
        self.max_concurrent = max_concurrent(workflow_config(workflow))

    async def run(self, run: AgentRun) -> AgentResult:
        """One rollout of the workflow, as the ambient one of its task."""
        from osmosis_ai.agents.context import RolloutContext
        from osmosis_ai.agents.workflow import AgentWorkflowContext, run_workflow

        account = run.open_account()  # first: once it blocks, in another loop
        workflow = self._new()
        ambient = RolloutContext(
            rollout_id=run.rollout_id,
            chat_completions_url=account.url,
            api_key=account.key,
            debug_dir=run.debug_dir,
        )
        ctx: AgentWorkflowContext[Any] = AgentWorkflowContext(
            prompt=run.messages,
            config=workflow_config(workflow),
            metadata=run.metadata if run.task is None else run.task,
            artifacts_dir=run.artifacts_dir(),
        )
        given = await run_workflow(workflow, ctx, ambient)
        as_chat = None if given is None else given.trajectory_messages
        sample = _completed(given, account)
        if sample is None:
            return AgentResult()
        sample.label = run.ground_truth
        messages = [*(sample.messages if as_chat is None else as_chat)]
        return AgentResult(
            messages,
            reward=sample.reward,
            tool_calls=count_tool_results(messages),
            sample=sample,
        )


def workflow_config(workflow: AgentWorkflow[Any]) -> Any:
    """The workflow's config; one with its name alone where it has none."""
    from osmosis_ai.agents.workflow import AgentWorkflowConfig

    config = getattr(workflow, "config", None)
    return AgentWorkflowConfig(name=type(workflow).__name__) if config is None else config


def max_concurrent(config: Any) -> int | None:
    """`concurrency.max_concurrent` of a workflow's or a grader's config."""
    return getattr(getattr(config, "concurrency", None), "max_concurrent", None)


def _completed(sample: RolloutSample | None, account: Account) -> RolloutSample | None:
    """The sample with what the bridge recorded, where the workflow gave none itself."""
    from osmosis_ai.agents.schemas import RolloutSample

    if sample is None:
        if not account.trajectory:
            return None
        sample = RolloutSample(messages=account.trajectory.last())
    if sample.trajectory_messages is None and account.trajectory:
        sample.trajectory_messages = account.trajectory.all()
    return sample


class Grading:
    """Scores runs by the reward that a grader sets."""

    def __init__(self, grader: Grader, new: Callable[[], Grader]) -> None:
        """`grader` tells what the class is like; `new` returns the one that grades a run."""
        self.grader = grader
        self._new = new
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
            reward = await run_grader(self._new(), ctx)
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
