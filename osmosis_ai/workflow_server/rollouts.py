"""The life of a controller's rollouts: admission, execution, the calls back, cancelling.

The controller's URLs are checked before a rollout is taken, and the calls back go to the addresses
that were checked. A failure of the user's code is a result. Knows nothing of requests but how to
refuse one.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import math
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from numbers import Integral, Real
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from ..agents.context import RolloutContext
from ..agents.errors import OsmosisRolloutError, OsmosisTimeoutError, OsmosisValidationError
from ..agents.grader import GraderContext, run_grader
from ..agents.schemas import RolloutSample
from ..agents.workflow import AgentWorkflowConfig, AgentWorkflowContext, run_workflow
from ..error_text import error_text, named_error
from ..rollout_server.admission import SHUTTING_DOWN, Admission
from ..rollout_server.http.messages import Refused
from ..rollout_server.rollouts import Delivery
from ..rollout_server.settings import ServerSettings
from ..rollout_server.trainer.address_policy import Trainer
from ..running.agent_thread import AgentThread
from ..running.guards import CodeEnded
from ..running.main_loop import Call, RunInMainLoop
from ..running.section import DeadlineExceeded, Section
from ..secret import Secret, check_api_key
from ..secret_variables import masking
from .backend import LocalBackend
from .protocol import (
    CancelRolloutsRequest,
    CancelRolloutsResponse,
    GraderCompleteRequest,
    GraderStatus,
    RolloutCompleteRequest,
    RolloutErrorCategory,
    RolloutInitRequest,
    RolloutStatus,
    RolloutStatusResponse,
)

logger = logging.getLogger(__name__)

CANCELLED = "the rollout was cancelled"
CLEAN_UP_S = 5.0
"""How long user code that was cancelled may clean up."""


@dataclass(frozen=True, slots=True)
class _Result:
    """How the workflow, or its grading, ended."""

    sample: RolloutSample | None = None
    error: str | None = None
    category: RolloutErrorCategory | None = None

    @property
    def status(self) -> RolloutStatus:
        return RolloutStatus.SUCCESS if self.error is None else RolloutStatus.FAILURE


@dataclass(slots=True)
class _Rollout:
    request: RolloutInitRequest
    digest: bytes
    """Of the request but its key."""
    ambient: RolloutContext
    key: Secret | None
    completion: Trainer
    grader: Trainer | None
    status: RolloutStatus = RolloutStatus.QUEUED
    task: asyncio.Task[None] | None = None
    delivery: asyncio.Task[Delivery] | None = None
    """The last call back."""
    calls_begun: int = 0
    """The calls back that were begun: about the workflow, then about its grading."""
    ended_at: float = 0.0
    why: str = ""
    """Why it was cancelled."""

    def cancel(self, why: str) -> bool:
        """Cancel it, but only once: a second time would cut its clean-up short.

        Returns whether it was still running.
        """
        if self.task is None:
            return False
        if self.why:
            return True
        self.why = why
        return self.task.cancel()


class Rollouts:
    """What one application runs."""

    def __init__(
        self, backend: LocalBackend, settings: ServerSettings, key: Secret | None = None
    ) -> None:
        """To be made in the server's event loop."""
        self._key = key
        self._backend = backend
        self._settings = settings
        self._known: dict[str, _Rollout] = {}
        self._admission = Admission(settings, places=backend.max_concurrency, caller="controller")
        self._thread = AgentThread(backend.max_concurrency)

    @asynccontextmanager
    async def entered(self, lifespan: AbstractAsyncContextManager[Any]) -> AsyncIterator[None]:
        """Run workflows, and in the end report each; `lifespan` is entered in their event loop."""
        try:
            async with self._thread.entered(lifespan):
                try:
                    yield
                finally:
                    await self._admission.drain(self._cancel_all, grace_s=CLEAN_UP_S)
        finally:
            await self._thread.close()

    # Admission.

    def health(self) -> dict[str, Any]:
        """Return how many run and wait."""
        limit, begun = self._backend.max_concurrency, len(self._admission.tasks)
        running = min(begun, limit)
        counts = {"max_concurrent": limit, "running": running, "queued": begun - running}
        return {"status": "ok", "concurrency": counts}

    def status(self, rollout_id: str) -> RolloutStatusResponse:
        """Return where a rollout is."""
        rollout = self._known.get(rollout_id)
        status = RolloutStatus.UNKNOWN if rollout is None else rollout.status
        return RolloutStatusResponse(rollout_id=rollout_id, status=status)

    async def start(self, request: RolloutInitRequest) -> None:
        """Start a rollout in the background; the same request again starts nothing."""
        before = time.monotonic() - self._settings.record_ttl_s
        for name in [name for name, each in self._known.items() if 0 < each.ended_at < before]:
            del self._known[name]
        digest = _digest(request)
        if self._is_started(request.rollout_id, digest):
            return
        self._admission.check_capacity()
        rollout = await self._checked(request, digest)
        if self._is_started(request.rollout_id, digest):
            return
        self._admission.check_capacity()
        self._known[request.rollout_id] = rollout
        rollout.task = self._admission.begin(self._run(rollout))
        # Not an `except` in the task: one that is cancelled before its first step runs nothing.
        rollout.task.add_done_callback(partial(self._ended, rollout))

    def _begun(self) -> list[_Rollout]:
        return [rollout for rollout in self._known.values() if rollout.task is not None]

    def _is_started(self, rollout_id: str, digest: bytes) -> bool:
        known = self._known.get(rollout_id)
        if known is None or known.digest == digest:
            return known is not None
        if not known.ended_at:
            raise Refused(409, "conflict", "another rollout of this id is running")
        return False  # another attempt; its URLs tell it apart

    async def _checked(self, request: RolloutInitRequest, digest: bytes) -> _Rollout:
        async def locate(field: str) -> Trainer:
            return await self._admission.locate(getattr(request, field), called=field)

        given = request.controller_api_key
        try:
            key = check_api_key(given, "controller_api_key") if given else None
        except ValueError as error:
            raise Refused(422, "controller_refused", str(error)) from None
        await locate("chat_completions_url")
        completion = await locate("completion_callback_url")
        is_graded = request.grader_callback_url is not None
        grader = await locate("grader_callback_url") if is_graded else None
        ambient = RolloutContext(
            rollout_id=request.rollout_id,
            chat_completions_url=request.chat_completions_url,
            api_key=given or "none",  # clients do not take an empty one
            redact=masking(self._key, key),
        )
        return _Rollout(request, digest, ambient, key, completion, grader)

    # Ending early.

    def cancel(self, request: CancelRolloutsRequest) -> CancelRolloutsResponse:
        """Cancel the rollouts that run or wait."""
        names = request.ids
        if names is None:
            begun = [rollout.request.rollout_id for rollout in self._begun()]
            names = [name for name in begun if request.all or name.startswith(str(request.prefix))]
        return CancelRolloutsResponse(dispositions={name: self._cancel(name) for name in names})

    def _cancel(self, rollout_id: str) -> str:
        rollout = self._known.get(rollout_id)
        if rollout is None or not rollout.cancel(CANCELLED):
            return "not_found"
        is_queued = rollout.status is RolloutStatus.QUEUED
        return "cancelled_queued" if is_queued else "cancelled_running"

    def _cancel_all(self) -> None:
        for rollout in self._begun():
            rollout.cancel(SHUTTING_DOWN)

    # Running.

    async def _run(self, rollout: _Rollout) -> None:
        request = rollout.request
        async with self._thread.places:
            rollout.status = RolloutStatus.RUNNING
            run = partial(self._run_workflow, rollout)
            result = await self._outcome(rollout, "workflow", request.agent_timeout_sec, run)
            self._tell_workflow(rollout, result)
            if rollout.grader:
                rollout.status = RolloutStatus.GRADING
                if result.error is None:
                    grade, limit_s = (
                        partial(self._grade, rollout, result.sample),
                        request.grader_timeout_sec,
                    )
                    result = await self._outcome(rollout, "grader", limit_s, grade, result.sample)
                self._tell_grader(rollout, result)
            rollout.status = result.status

    async def _run_workflow(self, rollout: _Rollout, main_loop: RunInMainLoop) -> _Result:
        workflow, request = self._backend.new_workflow(), rollout.request
        ctx: AgentWorkflowContext[Any] = AgentWorkflowContext(
            prompt=copy.deepcopy(request.initial_messages),
            config=workflow.config or AgentWorkflowConfig(name=type(workflow).__name__),
            metadata=dict(request.metadata or {}),
        )
        sample = await run_workflow(workflow, ctx, rollout.ambient)
        if sample is not None:
            sample.label = request.label
        return _Result(sample)

    async def _grade(
        self, rollout: _Rollout, sample: RolloutSample | None, main_loop: RunInMainLoop
    ) -> _Result:
        grader, request = self._backend.new_grader(), rollout.request
        if grader is None:
            return _Result(sample, "there is no grader")
        metadata = dict(request.metadata or {})
        ctx = GraderContext(label=request.label, sample=sample, metadata=metadata)
        with rollout.ambient:
            reward = await run_grader(grader, ctx)
        if reward is None:
            raise OsmosisValidationError(
                f"{type(grader).__name__}.grade set no reward: call ctx.set_reward(x)"
            )
        return _Result(ctx.sample)

    async def _outcome(
        self,
        rollout: _Rollout,
        what: str,
        timeout_s: float | None,
        call: Call[_Result],
        sample: RolloutSample | None = None,
    ) -> _Result:
        """Make a call of the user's code; what it raises is the result."""
        limit_s = math.inf if timeout_s is None else timeout_s
        name = rollout.request.rollout_id
        section = Section(self, f"the {what}", limit_s, job=name, clean_up_s=CLEAN_UP_S)
        try:
            return await self._thread.apart(section, call)
        except Exception as error:  # noqa: BLE001  the boundary: a rollout's failure is a result
            redact, workflow = rollout.ambient.redacted, self._backend.workflow_cls.__name__
            trace = redact(traceback.format_exc())
            logger.error("rollout %s of %s failed\n%s", name, workflow, trace)
            return _Result(sample, redact(_message(error, section)), _category(error))

    def _ended(self, rollout: _Rollout, task: asyncio.Task[None]) -> None:
        """Note the end; of one that was cut short, the controller gets to know here."""
        rollout.task, rollout.ended_at = None, time.monotonic()
        error = None if task.cancelled() else task.exception()
        if error is None and not task.cancelled():
            return
        why = rollout.why or CANCELLED
        if error is not None:
            logger.error("rollout %s failed", rollout.request.rollout_id, exc_info=error)
            why = "the server failed; its log says why"
        if rollout.calls_begun < 1:
            self._tell_workflow(rollout, _Result(error=why))
        if rollout.grader and rollout.calls_begun < 2:
            self._tell_grader(rollout, _Result(error=why))
        rollout.status = RolloutStatus.FAILURE if error else RolloutStatus.CANCELLED

    # Calls back.

    def _tell_workflow(self, rollout: _Rollout, result: _Result) -> None:
        report = RolloutCompleteRequest(
            rollout_id=rollout.request.rollout_id,
            status=result.status,
            err_message=result.error,
            err_category=result.category,
        )
        self._tell(rollout, rollout.completion, report)

    def _tell_grader(self, rollout: _Rollout, result: _Result) -> None:
        assert rollout.grader is not None
        sample = result.sample
        if sample is not None:
            sent: dict[str, Any] = {"trajectory_messages": None}
            if result.error is not None or sample.remove_sample:
                sent["reward"] = None  # controllers train on each reward that they get
            sample = sample.model_copy(update=sent)
        report = GraderCompleteRequest(
            rollout_id=rollout.request.rollout_id,
            status=GraderStatus.SUCCESS if result.error is None else GraderStatus.FAILURE,
            sample=sample,
            err_message=result.error,
            err_category=result.category,
        )
        self._tell(rollout, rollout.grader, report)

    def _tell(self, rollout: _Rollout, where: Trainer, what: BaseModel) -> None:
        """Call back in the background, after the calls about it that go out already."""
        # Not model_dump_json, which refuses half of a character, as models send it.
        fields = to_jsonable_python(what.model_dump(), inf_nan_mode="null", fallback=_json_number)
        body = json.dumps(fields).encode("ascii")
        host, path = replace(where, path=""), where.path or "/"
        post = partial(self._admission.deliveries.post, host, path, body, rollout.key)
        name = rollout.request.rollout_id
        rollout.calls_begun += 1
        rollout.delivery = self._admission.deliveries.begin(
            post, name, len(body), after=rollout.delivery
        )


def _message(error: Exception, section: Section) -> str:
    if isinstance(error, (CodeEnded, DeadlineExceeded)):
        return f"{section.name} {error}"
    return error_text(error) if isinstance(error, OsmosisRolloutError) else named_error(error)


def _category(error: Exception) -> RolloutErrorCategory:
    late = asyncio.TimeoutError | TimeoutError | OsmosisTimeoutError | DeadlineExceeded
    if isinstance(error, late):
        return RolloutErrorCategory.TIMEOUT
    if isinstance(error, ValueError | TypeError | AssertionError | OsmosisValidationError):
        return RolloutErrorCategory.VALIDATION_ERROR
    return RolloutErrorCategory.AGENT_ERROR


def _digest(request: RolloutInitRequest) -> bytes:
    fields = {name: value for name, value in request if name != "controller_api_key"}
    return sha256(json.dumps(fields, sort_keys=True).encode("ascii")).digest()


def _json_number(value: object) -> float | None:
    """Return Python's number for another library's, as numpy's; None for what is no number."""
    if isinstance(value, Integral):
        return int(value)
    number = float(value) if isinstance(value, Real) else math.nan
    return number if math.isfinite(number) else None
