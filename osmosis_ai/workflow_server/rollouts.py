"""The life of a controller's rollouts: admission, execution, the calls back, cancelling.

The controller's URLs are checked before a rollout is taken, and the calls back go to the addresses
that were checked. Knows nothing of requests but how to refuse one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from numbers import Integral, Real
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from ..agents.context import RolloutContext
from ..rollout_server.events import event
from ..rollout_server.http.messages import Refused, busy
from ..rollout_server.rollouts import Delivery
from ..rollout_server.settings import ServerSettings
from ..rollout_server.trainer.address_policy import (
    Trainer,
    TrainerRefused,
    TrainerRules,
    TrainerUnknown,
)
from ..rollout_server.trainer.client import TrainerChannel, callback_retries
from ..rollout_server.trainer.delivery import deliver
from ..rollout_server.trainer.wire import TrainerClient
from ..secret import Secret, check_api_key
from ..secret_variables import masking
from .backend import CLEAN_UP_S, ExecutionBackend
from .protocol import (
    CancelRolloutsRequest,
    CancelRolloutsResponse,
    ExecutionRequest,
    ExecutionResult,
    GraderCompleteRequest,
    GraderStatus,
    RolloutCompleteRequest,
    RolloutInitRequest,
    RolloutStatus,
    RolloutStatusResponse,
)

logger = logging.getLogger(__name__)

CANCELLED = "the rollout was cancelled"
SHUT_DOWN = "the server is shutting down"
NOT_REPORTED = "the backend ended without a result"


@dataclass(slots=True)
class _Rollout:
    digest: bytes
    """Of the request but its key."""
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
        self, backend: ExecutionBackend, settings: ServerSettings, key: Secret | None = None
    ) -> None:
        self._key = key
        self._backend = backend
        self._settings = settings
        self._rules = TrainerRules(settings.allowed_trainers, anywhere=settings.local)
        self._known: dict[str, _Rollout] = {}
        self._client: TrainerClient | None = None
        self._stopping = asyncio.Event()
        self._last_round = asyncio.Event()
        self._deliveries: set[asyncio.Task[Delivery]] = set()
        self._undelivered_bytes = 0
        self._closing = False

    def status(self, rollout_id: str) -> RolloutStatusResponse:
        """Return where a rollout is: what the backend says of it, else what is known here."""
        found = self._known.get(rollout_id)
        state = self._backend.rollout_status(rollout_id)
        if state is None:
            state = {"status": RolloutStatus.UNKNOWN if found is None else found.status}
        return RolloutStatusResponse(rollout_id=rollout_id, **state)

    async def start(self, request: RolloutInitRequest) -> None:
        """Start a rollout in the background; the same request again starts nothing."""
        self._forget_old()
        digest = _digest(request)
        if self._is_started(request.rollout_id, digest):
            return
        self._check_capacity()
        calls = await self._calls(request)
        if self._is_started(request.rollout_id, digest):
            return
        self._check_capacity()
        rollout = self._known[request.rollout_id] = _Rollout(digest)
        rollout.task = asyncio.ensure_future(self._run(rollout, request, calls))
        # Not an `except` in the task: one that is cancelled before its first step runs nothing.
        rollout.task.add_done_callback(partial(self._ended, rollout, calls))

    def _is_started(self, rollout_id: str, digest: bytes) -> bool:
        known = self._known.get(rollout_id)
        if known is None or known.digest == digest:
            return known is not None
        if not known.ended_at:
            raise Refused(409, "conflict", "another rollout of this id is running")
        return False  # another attempt; its URLs tell it apart

    def _check_capacity(self) -> None:
        if self._closing:
            raise Refused(503, "draining", SHUT_DOWN, headers={"retry-after": "10"}, hang_up=True)
        if not self._backend.has_capacity():
            message = "as many rollouts run or wait as this server takes"
            raise busy("busy", message, retry_after_s=5.0)
        if self._undelivered_bytes > self._settings.max_held_bytes:
            message = "too many results wait for a controller that does not take them"
            raise busy("backlog", message, retry_after_s=30.0)

    def cancel(self, request: CancelRolloutsRequest) -> CancelRolloutsResponse:
        """Cancel the rollouts that run or wait, but those that the backend has cancelled."""
        by_backend = self._backend.cancel_rollouts(
            ids=request.ids, prefix=request.prefix, all=request.all
        )
        names = request.ids
        if names is None:
            running = (name for name, each in self._known.items() if each.task is not None)
            names = [name for name in running if name.startswith(request.prefix or "")]
        by_server = {name: self._cancel(name) for name in names if name not in by_backend}
        return CancelRolloutsResponse(dispositions={**by_backend, **by_server})

    def _cancel(self, rollout_id: str) -> str:
        is_queued = self.status(rollout_id).status is RolloutStatus.QUEUED
        rollout = self._known.get(rollout_id)
        if rollout is None or not rollout.cancel(CANCELLED):
            return "not_found"
        return "cancelled_queued" if is_queued else "cancelled_running"

    async def close(self) -> None:
        """Wait for rollouts to end, cancel the rest, and report each of these."""
        self._closing = True
        self._stopping.set()
        tasks = {each.task for each in self._known.values() if each.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._settings.drain_s)
            for rollout in self._known.values():
                if rollout.task in late:
                    rollout.cancel(SHUT_DOWN)
            if late:
                await asyncio.wait(late, timeout=CLEAN_UP_S + 1.0)
        self._last_round.set()
        if deliveries := tuple(self._deliveries):
            await asyncio.wait(deliveries, timeout=self._settings.flush_s)
        if left := sum(not each.done() or each.result() == "pending" for each in deliveries):
            event("results_undelivered", logging.ERROR, results=left, kept="nowhere")
        for delivery in deliveries:
            delivery.cancel()
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
        return _Calls(
            request.rollout_id,
            self._client,
            self._settings,
            self._stopping,
            checked,
            completion,
            grader,
        )

    async def _run(self, rollout: _Rollout, request: RolloutInitRequest, calls: _Calls) -> None:
        async def on_workflow(result: ExecutionResult) -> None:
            self._tell_workflow(rollout, calls, result)
            rollout.status = RolloutStatus.GRADING if calls.grader else result.status

        async def on_grader(result: ExecutionResult) -> None:
            if calls.grader:
                self._tell_grader(rollout, calls, result)
            rollout.status = result.status

        rollout.status = RolloutStatus.RUNNING
        is_graded = calls.grader or self._backend.capture_final_result
        with self._ambient(request, calls):
            await self._backend.execute(
                _execution(request),
                on_workflow_complete=on_workflow,
                on_grader_complete=on_grader if is_graded else None,
            )

    def _ended(self, rollout: _Rollout, calls: _Calls, task: asyncio.Task[None]) -> None:
        """Note the end; what the backend has not reported of it, the controller gets from here."""
        rollout.task, rollout.ended_at = None, time.monotonic()
        if rollout.calls_begun == calls.expected and not task.cancelled() and not task.exception():
            return
        why = rollout.why or CANCELLED
        if not task.cancelled():
            error = task.exception()
            logger.error("rollout %s failed in the backend", calls.rollout_id, exc_info=error)
            why = "the server failed; its log says why" if error else NOT_REPORTED
        failed = ExecutionResult(status=RolloutStatus.FAILURE, err_message=why)
        if rollout.calls_begun < 1:
            self._tell_workflow(rollout, calls, failed)
        if rollout.calls_begun < calls.expected:
            self._tell_grader(rollout, calls, failed)
        rollout.status = RolloutStatus.CANCELLED if task.cancelled() else failed.status

    def _tell_workflow(self, rollout: _Rollout, calls: _Calls, result: ExecutionResult) -> None:
        report = RolloutCompleteRequest(
            rollout_id=calls.rollout_id,
            status=result.status,
            err_message=result.err_message,
            err_category=result.err_category,
        )
        self._tell(rollout, calls, calls.completion, report)

    def _tell_grader(self, rollout: _Rollout, calls: _Calls, result: ExecutionResult) -> None:
        assert calls.grader is not None
        good = result.status is RolloutStatus.SUCCESS
        sample = result.sample
        if sample is not None:
            sent: dict[str, Any] = {"trajectory_messages": None}
            if not good or sample.remove_sample:  # controllers train on each reward that they get
                sent["reward"] = None
            sample = sample.model_copy(update=sent)
        report = GraderCompleteRequest(
            rollout_id=calls.rollout_id,
            status=GraderStatus.SUCCESS if good else GraderStatus.FAILURE,
            sample=sample,
            err_message=result.err_message,
            err_category=result.err_category,
        )
        self._tell(rollout, calls, calls.grader, report)

    def _tell(self, rollout: _Rollout, calls: _Calls, where: Trainer, what: BaseModel) -> None:
        """Call back in the background, after the calls about it that go out already."""
        # Not model_dump_json, which refuses half of a character, as models send it.
        fields = to_jsonable_python(what.model_dump(), inf_nan_mode="null", fallback=_json_number)
        body = json.dumps(fields).encode("ascii")
        before = rollout.delivery
        until = time.monotonic() + self._settings.record_ttl_s

        async def send_in_turn() -> Delivery:
            if before is not None:
                await asyncio.wait([before])
            send = partial(calls.post, where, body)
            return await deliver(send, calls.rollout_id, until=until, last_round=self._last_round)

        rollout.calls_begun += 1
        rollout.delivery = asyncio.ensure_future(send_in_turn())
        self._deliveries.add(rollout.delivery)
        self._undelivered_bytes += len(body)
        rollout.delivery.add_done_callback(partial(self._delivered, len(body)))

    def _delivered(self, size: int, delivery: asyncio.Task[Delivery]) -> None:
        self._deliveries.discard(delivery)
        self._undelivered_bytes -= size

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


def _digest(request: RolloutInitRequest) -> bytes:
    fields = {name: value for name, value in request if name != "controller_api_key"}
    return sha256(json.dumps(fields, sort_keys=True).encode("ascii")).digest()


def _json_number(value: object) -> float | None:
    """Return Python's number for another library's, as numpy's; None for what is no number."""
    if isinstance(value, Integral):
        return int(value)
    number = float(value) if isinstance(value, Real) else math.nan
    return number if math.isfinite(number) else None


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

    rollout_id: str
    client: TrainerClient
    settings: ServerSettings
    stopping: asyncio.Event
    key: Secret | None
    completion: Trainer
    grader: Trainer | None

    @property
    def expected(self) -> int:
        """How many calls back a rollout has."""
        return 1 if self.grader is None else 2

    async def post(self, where: Trainer, body: bytes) -> None:
        """Post a call back; raise an OsmosisRolloutError."""
        channel = TrainerChannel(
            self.client,
            replace(where, path=""),
            key=self.key,
            request_timeout_s=self.settings.request_timeout_s,
            stopping=self.stopping,
        )
        policy = callback_retries(self.settings.client)
        await channel.ask(where.path or "/", body, policy, lambda reply: reply.status)
