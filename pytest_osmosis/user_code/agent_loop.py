"""`RolloutAgentLoop`s: `run(ctx)` with the model behind `ctx.chat`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from osmosis_ai.agents.client import ModelLLM
from osmosis_ai.agents.context import RolloutContext
from osmosis_ai.agents.errors import OsmosisValidationError, UnusableReturn
from osmosis_ai.agents.eval_request import EvalRequest
from osmosis_ai.agents.runner import begin, checked

from .agent import EVERYTHING, AgentResult, AgentRun, Reach, Takes, WrongReturn, WrongTools

if TYPE_CHECKING:
    from osmosis_ai.agents.request import RolloutRequest
    from osmosis_ai.rollout import RolloutAgentLoop


class LoopAgent:
    """Runs an agent loop."""

    max_concurrent: int | None = None
    reward_hint = "return ctx.complete(messages, reward=...)"
    imports: Sequence[str] = ("osmosis_ai.agents.request",)

    def __init__(self, loop: RolloutAgentLoop) -> None:
        self.loop = loop
        self.reach, self.needs_model = _reach(loop)
        self.takes: Takes = getattr(loop, "takes", "question")
        self._has_bridge = False
        self._is_callable = _is_callable(loop)
        if self._is_callable:
            self.imports = ()
        if self._is_callable and "endpoint" in self.reach:
            self._has_bridge, self.imports = True, ("osmosis_ai.bridge",)
        self._tools_of = f"{type(loop).__name__}.get_tools"

    async def run(self, run: AgentRun) -> AgentResult:
        """One rollout of the loop."""
        request = self._request(run)
        tools = self.loop.get_tools(request)
        try:
            is_none = type(tools) is list and not tools
            dumped = [] if is_none else _dumped(tools, self._tools_of)
        except OsmosisValidationError as error:
            raise WrongTools(str(error)) from None
        ctx = self._context(run, request, tools, dumped)
        with ctx:
            try:
                result = checked(self.loop, await begin(self.loop, ctx))
            except UnusableReturn as error:
                raise WrongReturn(str(error)) from None
        failed = result.status == "ERROR"
        return AgentResult(
            [*result.final_messages],  # what a task of the agent appends later is not of this run
            error=(result.error_message or "") if failed else None,
            cause=ctx.cause if failed else None,
            reward=result.reward,
            tool_calls=(result.metrics or ctx).num_tool_calls,
        )

    def _context(
        self, run: AgentRun, request: RolloutRequest, tools: list[Any], dumped: list[Any]
    ) -> RolloutContext:
        """Return the context of a run, whose model is behind `chat`, or behind the bridge."""
        if self._has_bridge and run.model_name:
            account = run.open_account()
            ctx = RolloutContext(
                request,
                tools,
                chat_completions_url=account.url,
                api_key=account.key,
                debug_dir=run.debug_dir,
                run_sync=run.run_sync,
            )
            ctx.bridged = account.trajectory.all
        else:
            run.llm = ModelLLM(run.model, tools=dumped, params=run.sent, record=True)
            run.llm.counts_all = run.model is not None
            ctx = RolloutContext(
                request, tools, run.llm, debug_dir=run.debug_dir, run_sync=run.run_sync
            )
            ctx.rate_limit, ctx.price_per_mtok = run.rate_limit, run.price_per_mtok
        ctx.model_name = run.model_name
        return ctx

    def _request(self, run: AgentRun) -> Any:
        """Return what `ctx.request` is; that of a plain callable, which never sees it, is light."""
        if self._is_callable:
            kind: Callable[..., Any] = EvalRequest
        else:
            from osmosis_ai.agents.request import RolloutRequest  # pydantic

            kind = RolloutRequest.for_eval
        return kind(
            rollout_id=run.rollout_id,
            messages=run.messages,
            completion_params=dict(run.params),
            metadata={**run.metadata, "ground_truth": run.ground_truth},
            max_turns=run.max_turns,
        )


def _dumped(tools: Any, owner: str) -> list[dict[str, Any]]:
    from osmosis_ai.agents.tools import dump_tools  # for agents with tools alone

    return dump_tools(tools, owner=owner)


def _is_callable(loop: RolloutAgentLoop) -> bool:
    """Return whether a loop calls a plain callable: that says what it has parameters for."""
    return hasattr(loop, "ours")


def _reach(loop: Any) -> tuple[frozenset[Reach], bool]:
    """Return which options reach an agent, and whether it can run without a model."""
    if not _is_callable(loop):
        if getattr(loop, "asks_model", True):
            return EVERYTHING, True
        return frozenset({"turns", "system"}), False
    reach: set[Reach] = set()
    if "model" in loop.ours:
        reach.add("model")
    if loop.asks_model:
        reach |= {"model", "endpoint"}
    if loop.sees_system_prompt:
        reach.add("system")
    return frozenset(reach), loop.needs_model
