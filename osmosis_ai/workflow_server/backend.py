"""Backends: what runs a workflow and its grader when a controller asks for a rollout.

`LocalBackend` runs both in this process. A failure is a result, never an exception. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import math
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any

from ..agents.context import RolloutContext, get_rollout_context
from ..agents.errors import OsmosisRolloutError, OsmosisTimeoutError, OsmosisValidationError
from ..agents.grader import Grader, GraderConfig, GraderContext, run_grader
from ..agents.schemas import RolloutSample
from ..agents.workflow import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    run_workflow,
)
from ..error_text import error_text, named_error
from ..running.agent_thread import AgentThread
from ..running.guards import CodeEnded
from ..running.loop_call import Call, RunInMainLoop
from ..running.section import DeadlineExceeded, Section
from .protocol import ExecutionRequest, ExecutionResult, RolloutErrorCategory, RolloutStatus

__all__ = ["ExecutionBackend", "LocalBackend", "ResultCallback"]

ResultCallback = Callable[[ExecutionResult], Awaitable[None]]
CLEAN_UP_S = 5.0
"""How long user code that was cancelled may clean up."""
WITHOUT_LIMIT = 100
"""Rollouts at once where the workflow's config names no limit."""

logger = logging.getLogger(__name__)


class ExecutionBackend(ABC):
    """What `create_rollout_server` hands rollouts to: write `execute`, the rest has defaults."""

    @abstractmethod
    async def execute(
        self,
        request: ExecutionRequest,
        on_workflow_complete: ResultCallback,
        on_grader_complete: ResultCallback | None = None,
    ) -> None:
        """Run one rollout; await each callback with how its part ended."""

    @property
    def max_concurrency(self) -> int:
        """How many rollouts run at once; 0 is no limit. The backend itself holds it."""
        return 0

    @property
    def capture_final_result(self) -> bool:
        """Whether `execute` gets `on_grader_complete` although the controller asks for no reward.

        For backends that compute the reward themselves: it is the rollout's final status then.
        """
        return False

    def health(self) -> dict[str, Any]:
        """Return what `GET /health` answers."""
        return {"status": "ok"}

    def has_capacity(self) -> bool:
        """Return whether another rollout may be queued; where not, it is refused with 429."""
        return True

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        """Return the fields of RolloutStatusResponse that are known; None: ask the server."""
        return None

    def cancel_rollouts(
        self,
        ids: Sequence[str] | None = None,
        prefix: str | None = None,
        all: bool = False,
    ) -> dict[str, str]:
        """Cancel rollouts; return what became of each, as in CancelRolloutsResponse.

        The server cancels the `execute` of those that are not named in the result.
        """
        return {}

    def entered(
        self, lifespan: AbstractAsyncContextManager[Any]
    ) -> AbstractAsyncContextManager[Any]:
        """Return what is entered for as long as a server lives: the user's `lifespan`, at least."""
        return lifespan


class LocalBackend(ExecutionBackend):
    """Runs a workflow and its grader in a thread of this process.

    Each is a class, or a text `package.module:Class`; so are their configs, as instances.
    """

    def __init__(
        self,
        *,
        workflow: type[AgentWorkflow[Any]] | str,
        workflow_config: AgentWorkflowConfig | str | None = None,
        grader: type[Grader] | str | None = None,
        grader_config: GraderConfig | str | None = None,
    ) -> None:
        self.workflow_cls: type[AgentWorkflow[Any]] = _a_class("workflow", workflow, AgentWorkflow)
        self.workflow_config: AgentWorkflowConfig | None = _resolved(workflow_config)
        self.grader_cls: type[Grader] | None = (
            None if grader is None else _a_class("grader", grader, Grader)
        )
        self.grader_config: GraderConfig | None = _resolved(grader_config)
        concurrency = getattr(self.workflow_config, "concurrency", None)
        self._limit = getattr(concurrency, "max_concurrent", None) or WITHOUT_LIMIT
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: AgentThread
        self._asked = 0
        self._waiting: set[str] = set()

    def __repr__(self) -> str:
        return f"<LocalBackend of {self.workflow_cls.__name__}>"

    @property
    def max_concurrency(self) -> int:
        """How many rollouts run at once."""
        return self._limit

    def has_capacity(self) -> bool:
        """Return whether another rollout may be queued: as many wait as run."""
        return self._asked < 2 * self._limit

    def health(self) -> dict[str, Any]:
        """Return what `GET /health` answers."""
        running = min(self._asked, self._limit)
        queued = self._asked - running
        counts = {"max_concurrent": self._limit, "running": running, "queued": queued}
        return {"status": "ok", "concurrency": counts}

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        """Return that a rollout waits for a place; None for any other."""
        return {"status": RolloutStatus.QUEUED} if rollout_id in self._waiting else None

    def new_workflow(self) -> AgentWorkflow[Any]:
        """Return a workflow of its own for a rollout, with its own copy of the config."""
        return self.workflow_cls(copy.deepcopy(self.workflow_config))

    def new_grader(self) -> Grader | None:
        """Return a grader; None when there is none."""
        if self.grader_cls is None:
            return None
        return self.grader_cls(copy.deepcopy(self.grader_config))

    async def execute(
        self,
        request: ExecutionRequest,
        on_workflow_complete: ResultCallback,
        on_grader_complete: ResultCallback | None = None,
    ) -> None:
        """Run one rollout as soon as there is a place; await each callback with its part's end."""
        thread = self._running_thread()
        self._asked += 1
        self._waiting.add(request.id)
        try:
            async with thread.places:
                self._waiting.discard(request.id)
                run = partial(self._run, request)
                result = await self._ended(request, "workflow", request.agent_timeout_sec, run)
                await on_workflow_complete(result)
                if on_grader_complete is not None:
                    await on_grader_complete(await self._graded(request, result))
        finally:
            self._asked -= 1
            self._waiting.discard(request.id)

    @asynccontextmanager
    async def entered(self, lifespan: AbstractAsyncContextManager[Any]) -> AsyncIterator[None]:
        """Run workflows; the user's `lifespan` is entered in their event loop."""
        thread = self._running_thread()
        try:
            async with thread.entered(lifespan):
                yield
        finally:
            self._loop = None
            await thread.close()

    def _running_thread(self) -> AgentThread:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a server that is started again has another one
            self._loop, self._thread = loop, AgentThread(self._limit)
        return self._thread

    async def _run(self, request: ExecutionRequest, main_loop: RunInMainLoop) -> ExecutionResult:
        ambient = get_rollout_context() or RolloutContext(rollout_id=request.id)
        workflow = self.new_workflow()
        ctx: AgentWorkflowContext[Any] = AgentWorkflowContext(
            prompt=copy.deepcopy(request.prompt),
            config=workflow.config or AgentWorkflowConfig(name=type(workflow).__name__),
            metadata=dict(request.metadata or {}),
        )
        sample = await run_workflow(workflow, ctx, ambient)
        if sample is not None:
            sample.label = request.label
        return ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)

    async def _graded(self, request: ExecutionRequest, result: ExecutionResult) -> ExecutionResult:
        if result.status is not RolloutStatus.SUCCESS or self.grader_cls is None:
            why = result.err_message or "there is no grader"
            failed = {"status": RolloutStatus.FAILURE, "err_message": why}
            return result.model_copy(update=failed)
        sample, grade = result.sample, partial(self._grade, request, result.sample)
        return await self._ended(request, "grader", request.grader_timeout_sec, grade, sample)

    async def _grade(
        self, request: ExecutionRequest, sample: RolloutSample | None, main_loop: RunInMainLoop
    ) -> ExecutionResult:
        grader = self.new_grader()
        assert grader is not None
        metadata = dict(request.metadata or {})
        ctx = GraderContext(label=request.label, sample=sample, metadata=metadata)
        if await run_grader(grader, ctx) is None:
            raise OsmosisValidationError(
                f"{type(grader).__name__}.grade set no reward: call ctx.set_reward(x)"
            )
        return ExecutionResult(status=RolloutStatus.SUCCESS, sample=ctx.sample)

    async def _ended(
        self,
        request: ExecutionRequest,
        what: str,
        timeout_s: float | None,
        call: Call[ExecutionResult],
        sample: RolloutSample | None = None,
    ) -> ExecutionResult:
        """Make a call of the user's code; what it raises is the result."""
        limit_s = math.inf if timeout_s is None else timeout_s
        section = Section(self, f"the {what}", limit_s, job=request.id, clean_up_s=CLEAN_UP_S)
        try:
            return await self._thread.apart(section, call)
        except Exception as error:  # noqa: BLE001  the boundary: a rollout's failure is a result
            ambient = get_rollout_context()
            redact = str if ambient is None else ambient.redacted
            trace = redact(traceback.format_exc())
            name = self.workflow_cls.__name__
            logger.error("rollout %s of %s failed\n%s", request.id, name, trace)
            return _failed(error, redact(_message(error, section)), sample)


def _message(error: Exception, section: Section) -> str:
    if isinstance(error, (CodeEnded, DeadlineExceeded)):
        return f"{section.name} {error}"
    return error_text(error) if isinstance(error, OsmosisRolloutError) else named_error(error)


def _failed(error: Exception, message: str, sample: RolloutSample | None) -> ExecutionResult:
    """Return the result for an exception; `message` is what it says, without secrets."""
    category = RolloutErrorCategory.AGENT_ERROR
    if isinstance(
        error, asyncio.TimeoutError | TimeoutError | OsmosisTimeoutError | DeadlineExceeded
    ):
        category = RolloutErrorCategory.TIMEOUT
    elif isinstance(error, ValueError | TypeError | AssertionError | OsmosisValidationError):
        category = RolloutErrorCategory.VALIDATION_ERROR
    return ExecutionResult(
        status=RolloutStatus.FAILURE, sample=sample, err_message=message, err_category=category
    )


def _a_class(option: str, named: Any, base: type) -> Any:
    found = _resolved(named)
    if isinstance(found, type) and issubclass(found, base):
        return found
    raise TypeError(f"LocalBackend needs as {option} a class of {base.__name__}s, not {found!r}")


def _resolved(named: Any) -> Any:
    """Return the object itself, or the one that a text `module:name` or `module.name` names."""
    if not isinstance(named, str):
        return named
    module, _, name = named.rpartition(":" if ":" in named else ".")
    if not module or not name:
        raise ValueError(f"{named!r} names no object: write package.module:name")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
