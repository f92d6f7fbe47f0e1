"""The life of a controller's rollouts: admission, execution, the calls back, cancelling.

The controller's URLs are checked before a rollout is taken, and the calls back go to the addresses
that were checked. Knows nothing of requests but how to refuse one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import BaseModel

from ..agents.context import RolloutContext
from ..agents.errors import OsmosisRolloutError
from ..rollout_server.http.messages import Refused, busy
from ..rollout_server.settings import ServerSettings
from ..rollout_server.trainer.address_policy import (
    Trainer,
    TrainerRefused,
    TrainerRules,
    TrainerUnknown,
)
from ..rollout_server.trainer.client import TrainerChannel, callback_retries
from ..rollout_server.trainer.haste import Haste
from ..rollout_server.trainer.wire import TrainerClient
from ..secret import Secret, check_api_key
from ..secret_variables import masking
from .backend import ExecutionBackend
from .protocol import (
    ExecutionRequest,
    ExecutionResult,
    GraderCompleteRequest,
    GraderStatus,
    RolloutCompleteRequest,
    RolloutInitRequest,
    RolloutStatus,
)

logger = logging.getLogger(__name__)

CANCELLED = "the rollout was cancelled"
SHUT_DOWN = "the server is shutting down"
_FLUSH_S = 2.0
"""How long a shutdown waits for the calls back about the rollouts that it cancels."""


@dataclass(slots=True)
class _Rollout:
    status: RolloutStatus = RolloutStatus.QUEUED
    task: asyncio.Task[None] | None = None
    ended_at: float = 0.0
    why: str = CANCELLED


class Rollouts:
    """What one application runs."""

    def __init__(
        self, backend: ExecutionBackend, settings: ServerSettings, key: Secret | None = None
    ) -> None:
        self._key = key
        self._backend = backend
        self._settings = settings
        self._rules = TrainerRules(settings.allowed_trainers, anywhere=settings.local)
        self._known: dict[str, _Rollout] = {}
        self._client: TrainerClient | None = None
        self._haste = Haste()
        self.closing = False
        """Whether the server is shutting down."""

    def status(self, rollout_id: str) -> RolloutStatus:
        """Return where a rollout is; UNKNOWN when none of that id is remembered."""
        found = self._known.get(rollout_id)
        return RolloutStatus.UNKNOWN if found is None else found.status

    async def start(self, request: RolloutInitRequest) -> None:
        """Start a rollout in the background; the same id again starts nothing."""
        if self.closing:
            raise Refused(503, "draining", SHUT_DOWN, headers={"retry-after": "10"}, hang_up=True)
        self._forget_old()
        if request.rollout_id in self._known:
            return
        if not self._backend.has_capacity():
            told = "as many rollouts run or wait as this server takes"
            raise busy("busy", told, retry_after_s=5.0)
        rollout = self._known[request.rollout_id] = _Rollout()
        try:
            calls = await self._calls(request)
        except BaseException:
            del self._known[request.rollout_id]
            raise
        rollout.task = asyncio.ensure_future(self._run(rollout, request, calls))

    def cancel(self, chosen: Callable[[str], bool]) -> dict[str, str]:
        """Cancel the rollouts that run or wait; return what became of each."""
        told = {}
        for rollout_id, rollout in self._known.items():
            if chosen(rollout_id):
                running = rollout.task is not None and rollout.task.cancel()
                told[rollout_id] = "cancelled" if running else rollout.status.value
        return told

    async def close(self) -> None:
        """Wait for rollouts to end, cancel the rest, and report each of these."""
        self.closing = True
        self._haste.hurry()
        tasks = {each.task for each in self._known.values() if each.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._settings.drain_s)
            for rollout in self._known.values():
                if rollout.task in late and rollout.task is not None:
                    rollout.why = SHUT_DOWN
                    rollout.task.cancel()
            if late:
                await asyncio.wait(late, timeout=_FLUSH_S)
        if self._client is not None:
            await self._client.aclose()

    async def _calls(self, request: RolloutInitRequest) -> _Calls:
        key = request.controller_api_key
        graded_at = request.grader_callback_url
        try:
            checked = check_api_key(key, "controller_api_key") if key else None
            await self._rules.locate(request.chat_completions_url, called="chat_completions_url")
            completion = await self._rules.locate(
                request.completion_callback_url, called="completion_callback_url"
            )
            grader = (
                None
                if graded_at is None
                else await self._rules.locate(graded_at, called="grader_callback_url")
            )
        except (TrainerRefused, ValueError) as error:
            raise Refused(422, "controller_refused", str(error)) from None
        except TrainerUnknown as error:
            retry = {"retry-after": "5"}
            raise Refused(503, "controller_unknown", str(error), headers=retry) from None
        self._client = self._client or TrainerClient(self._settings.connections)
        return _Calls(self._client, self._settings, self._haste, checked, completion, grader)

    async def _run(self, rollout: _Rollout, request: RolloutInitRequest, calls: _Calls) -> None:
        ended = False

        async def on_workflow(result: ExecutionResult) -> None:
            nonlocal ended
            ended = True
            rollout.status = RolloutStatus.GRADING if calls.grader else result.status
            await calls.tell_workflow(request.rollout_id, result)

        async def on_grader(result: ExecutionResult) -> None:
            rollout.status = result.status
            await calls.tell_grader(request.rollout_id, result)

        rollout.status = RolloutStatus.RUNNING
        try:
            with self._ambient(request, calls):
                await self._backend.execute(
                    _execution(request), on_workflow, on_grader if calls.grader else None
                )
        except asyncio.CancelledError:
            rollout.status = RolloutStatus.CANCELLED
            await self._report(request, calls, ended, rollout.why)
        except Exception:
            logger.exception("rollout %s failed in the backend", request.rollout_id)
            rollout.status = RolloutStatus.FAILURE
            await self._report(request, calls, ended, "the server failed; its log says why")
        finally:
            rollout.task, rollout.ended_at = None, time.monotonic()

    async def _report(
        self, request: RolloutInitRequest, calls: _Calls, ended: bool, why: str
    ) -> None:
        """Tell the controller what it has not been told yet."""
        failed = ExecutionResult(status=RolloutStatus.FAILURE, err_message=why)
        if not ended:
            await calls.tell_workflow(request.rollout_id, failed)
        if calls.grader:
            await calls.tell_grader(request.rollout_id, failed)

    def _ambient(self, request: RolloutInitRequest, calls: _Calls) -> RolloutContext:
        return RolloutContext(
            rollout_id=request.rollout_id,
            chat_completions_url=request.chat_completions_url,
            api_key=request.controller_api_key or "none",  # clients do not take an empty one
            redact=masking(self._key, calls.key),
        )

    def _forget_old(self) -> None:
        before = time.monotonic() - self._settings.record_ttl_s
        old = [name for name, each in self._known.items() if 0 < each.ended_at < before]
        for name in old:
            del self._known[name]


def _execution(request: RolloutInitRequest) -> ExecutionRequest:
    return ExecutionRequest(
        id=request.rollout_id,
        prompt=request.initial_messages,
        label=request.label,
        metadata=request.metadata,
        agent_timeout_sec=request.agent_timeout_sec,
        grader_timeout_sec=request.grader_timeout_sec,
    )


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls back about one rollout."""

    client: TrainerClient
    settings: ServerSettings
    haste: Haste
    key: Secret | None
    completion: Trainer
    grader: Trainer | None

    async def tell_workflow(self, rollout_id: str, result: ExecutionResult) -> None:
        await self._post(
            self.completion,
            RolloutCompleteRequest(
                rollout_id=rollout_id,
                status=result.status,
                err_message=result.err_message,
                err_category=result.err_category,
            ),
        )

    async def tell_grader(self, rollout_id: str, result: ExecutionResult) -> None:
        assert self.grader is not None
        good = result.status is RolloutStatus.SUCCESS
        sample = result.sample
        if sample is not None:
            sample = sample.model_copy(update={"trajectory_messages": None})
        await self._post(
            self.grader,
            GraderCompleteRequest(
                rollout_id=rollout_id,
                status=GraderStatus.SUCCESS if good else GraderStatus.FAILURE,
                sample=sample,
                err_message=result.err_message,
                err_category=result.err_category,
            ),
        )

    async def _post(self, where: Trainer, what: BaseModel) -> None:
        """Post a call back; one that fails is logged, and the rollout goes on."""
        channel = TrainerChannel(
            self.client,
            replace(where, path=""),
            key=self.key,
            request_timeout_s=self.settings.request_timeout_s,
            haste=self.haste,
        )
        body = what.model_dump_json().encode("utf-8")
        policy = callback_retries(self.settings.client)
        try:
            await channel.ask(where.path or "/", body, policy, lambda reply: reply.status)
        except OsmosisRolloutError as error:
            logger.warning("a call back was not taken: %s", error)
