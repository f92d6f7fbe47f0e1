"""Calls to a trainer: the model's answers for an agent, and the result of a rollout.

Retries 5xx, timeouts and broken connections, never 4xx; follows no redirect. What remains of a
failure is an exception of the SDK. Knows no agent and no server.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from ...agents.client import ModelLLM
from ...agents.errors import (
    OsmosisRolloutError,
    OsmosisServerError,
    OsmosisTimeoutError,
    OsmosisTransportError,
    OsmosisValidationError,
)
from ...agents.results import CompletionsResult
from ...agents.schemas import RolloutMetrics, RolloutResponse
from ...models.base import ChatCompletion, clip, efforts
from ...models.errors import CallFault
from ...models.parsing import parse_completion
from ...models.rate_limit import LocalGate
from ...models.retry import RetryPolicy, parse_retry_after
from ...models.transport.http1 import Reply, WireError
from ...models.tries import GaveUp, Success, Tries
from ...secret import Redactor, Secret, check_api_key
from .address_policy import Trainer, TrainerRefused, TrainerRules, TrainerUnknown
from .wire import Post, TrainerPool

T = TypeVar("T")

COMPLETIONS_PATH = "/v1/chat/completions"
COMPLETED_PATH = "/v1/rollout/completed"
DEFAULTS: Mapping[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "max_tokens": 512,
    "logprobs": True,
}
"""Sent with every model call unless the agent says otherwise."""

_NO_PARAMS: Mapping[str, Any] = {}
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def retries(count: int) -> RetryPolicy:
    """The contract's policy: `count` further tries after the first, from 1 s on."""
    return RetryPolicy(
        max_tries=count + 1, base_s=1.0, statuses=frozenset(range(500, 600)), tries_for={}
    )


CALLBACK_RETRIES = retries(2)


class TrainerChannel:
    """The way to one trainer for one rollout."""

    def __init__(
        self,
        pool: TrainerPool,
        trainer: Trainer,
        *,
        key: Secret | None = None,
        request_timeout_s: float = 300.0,
    ) -> None:
        self.key = key
        self._pool = pool
        self._trainer = trainer
        self._request_timeout_s = request_timeout_s

    async def ask(self, post: Post, policy: RetryPolicy, read: Callable[[Reply], T]) -> Success[T]:
        """What `read` makes of the reply with a 2xx status; raises an OsmosisRolloutError."""
        sent = replace(post, key=self.key)

        async def once(timeout_s: float) -> T:
            reply = await self._pool.post(self._trainer, sent, timeout_s)
            if not 200 <= reply.status < 300:
                raise _fault_of(reply, policy)
            try:
                return read(reply)
            except CallFault as fault:
                fault.retried = False  # the trainer has counted this call as answered
                raise

        tries = Tries(policy, LocalGate(), request_timeout_s=self._request_timeout_s)
        try:
            return await tries.until_answered(once)
        except GaveUp as gave_up:
            raise self._error(gave_up) from None

    def _error(self, gave_up: GaveUp) -> OsmosisRolloutError:
        fault, tried = gave_up.fault, efforts(gave_up.tries, gave_up.elapsed_s)
        redact = Redactor([self.key] if self.key else [])
        detail = clip(redact(fault.detail))
        where = f"the trainer at {self._trainer.netloc}"
        status = fault.status
        if status is not None and not 200 <= status < 300:
            told = f"{where} answered {status}{tried}" + (f": {detail}" if detail else "")
            kind = OsmosisServerError if status >= 500 else OsmosisValidationError
            return kind(told, status_code=status)
        what = ": ".join(filter(None, (fault.summary, detail))) or fault.kind
        if fault.kind == "timeout":
            return OsmosisTimeoutError(f"{where} did not answer{tried}: {what}")
        if isinstance(fault, WireError):
            return OsmosisTransportError(f"{where} cannot be reached{tried}: {what}")
        return OsmosisValidationError(f"{where} sent {what}")


def _fault_of(reply: Reply, policy: RetryPolicy) -> CallFault:
    headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in reply.headers.items()}
    failed = reply.status >= 500
    return CallFault(
        "overloaded" if failed else "bad_request",
        reply.body[:4096].decode("utf-8", "replace"),
        status=reply.status,
        retried=failed and policy.retries_status(reply.status, headers),
        retry_after_s=parse_retry_after(headers) if failed else None,
    )


class TrainerModel:
    """`ChatModel` over a trainer: one rollout's model."""

    name = "default"

    def __init__(
        self, rollout_id: str, channel: Callable[[], Awaitable[TrainerChannel]], policy: RetryPolicy
    ) -> None:
        self.endpoint = "trainer"
        self._rollout_id = rollout_id
        self._channel = channel
        self._policy = policy

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = _NO_PARAMS,
    ) -> ChatCompletion:
        """The trainer's answer; raises an OsmosisRolloutError."""
        body = self._body(messages, tools, params)
        turn = len(messages)

        def read(reply: Reply) -> ChatCompletion:
            return parse_completion(
                reply.body,
                model=self.name,
                turn=turn,
                content_type=reply.headers.get(b"content-type", b"").decode("latin-1"),
                status=reply.status,
                policy=self._policy,
            )

        channel = await self._channel()
        found = await channel.ask(Post(path=COMPLETIONS_PATH, body=body), self._policy, read)
        return replace(found.value, retries=found.retries, latency_ms=found.latency_ms)

    async def aclose(self) -> None:
        """Nothing to close: the connections are the pool's."""

    def _body(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        params: Mapping[str, Any],
    ) -> bytes:
        asked: dict[str, Any] = {
            "model": self.name,
            "messages": messages,
            "rollout_id": self._rollout_id,
            **params,
        }
        if tools:
            asked["tools"] = tools
        try:
            return _encode(asked).encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            raise OsmosisValidationError(f"the request to the model is not JSON: {error}") from None


class OsmosisLLMClient:
    """`LLMClient` over a trainer: what `ctx.chat` asks in the RolloutServer.

    Stands alone as well: `async with OsmosisLLMClient(url, rollout_id) as client`. It calls
    whatever `server_url` names; rules about that are the server's, which hands in a `channel`.
    """

    def __init__(
        self,
        server_url: str,
        rollout_id: str,
        api_key: str | Secret | None = None,
        *,
        timeout_seconds: float = 300.0,
        max_retries: int = 3,
        complete_rollout_retries: int = 2,
        connections: int = 100,
        channel: TrainerChannel | None = None,
    ) -> None:
        self.server_url = server_url.rstrip("/")
        self.rollout_id = rollout_id
        self._key = check_api_key(api_key, "api_key") if isinstance(api_key, str) else api_key
        self._timeout_s = timeout_seconds
        self._connections = connections
        self._channel = channel
        self._own_pool: TrainerPool | None = None
        self._callback_policy = retries(complete_rollout_retries)
        model = TrainerModel(rollout_id, self._opened, retries(max_retries))
        self._llm = ModelLLM(model, params=DEFAULTS)

    def __repr__(self) -> str:
        return f"<OsmosisLLMClient of {self.rollout_id!r}>"

    async def __aenter__(self) -> OsmosisLLMClient:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def chat_completions(
        self, messages: list[dict[str, Any]], **params: Any
    ) -> CompletionsResult:
        """The model's answer to the whole history; raises an OsmosisRolloutError."""
        return await self._llm.chat_completions(messages, **params)

    def get_metrics(self) -> RolloutMetrics:
        """What all calls so far took."""
        return self._llm.get_metrics()

    async def complete_rollout(self, response: RolloutResponse) -> None:
        """Tell the trainer how the rollout ended; raises an OsmosisRolloutError."""
        body = response.model_dump_json().encode("utf-8")
        post = Post(path=COMPLETED_PATH, body=body, idempotency_key=self.rollout_id)
        channel = await self._opened()
        await channel.ask(post, self._callback_policy, lambda reply: reply.status)

    def close(self) -> None:
        """End the rollout: later calls raise."""
        self._llm.close()

    async def aclose(self) -> None:
        """End the rollout and close the client's own connections."""
        self.close()
        if self._own_pool is not None:
            await self._own_pool.aclose()

    async def _opened(self) -> TrainerChannel:
        if self._channel is None:
            try:
                trainer = await TrainerRules(anywhere=True).locate(self.server_url)
            except TrainerRefused as error:
                raise OsmosisValidationError(str(error)) from None
            except TrainerUnknown as error:
                raise OsmosisTransportError(str(error)) from None
            self._own_pool = self._own_pool or TrainerPool(self._connections)
            self._channel = TrainerChannel(
                self._own_pool, trainer, key=self._key, request_timeout_s=self._timeout_s
            )
        return self._channel
