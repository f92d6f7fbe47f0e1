"""Calls to a trainer: the model's answers for an agent, and the result of a rollout.

5xx, timeouts and broken connections are retried, 4xx never; redirects are not followed. A failure
that remains is an exception of the SDK. Knows no agent and no server.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from pydantic_core import to_jsonable_python

from ...agents.client import ModelLLM
from ...agents.errors import (
    OsmosisRolloutError,
    OsmosisServerError,
    OsmosisTimeoutError,
    OsmosisTransportError,
    OsmosisValidationError,
)
from ...agents.results import CompletionsResult
from ...agents.schemas import RolloutMetrics, RolloutResponse, RolloutStatus, normalize_stop
from ...models.base import NO_HEADERS, NO_PARAMS, ChatCompletion
from ...models.errors import CallFault, clip, efforts
from ...models.other_apis import OtherRequest
from ...models.parsing import parse_completion
from ...models.rate_limiter import RateLimiter
from ...models.retry import CallFailed, Retrier, RetryPolicy, parse_retry_after
from ...models.transport.exchange import Reply, TransportError
from ...rollout_settings import RolloutClientSettings, get_settings
from ...running.main_loop import RunInMainLoop, run_directly
from ...secret import Redactor, Secret, check_api_key
from .address_policy import Trainer, TrainerRefused, TrainerRules, TrainerUnknown

if TYPE_CHECKING:
    from .wire import TrainerClient

T = TypeVar("T")
N = TypeVar("N", int, float)

COMPLETIONS_PATH = "/v1/chat/completions"
COMPLETED_PATH = "/v1/rollout/completed"
DEFAULTS: Mapping[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "max_tokens": 512,
    "logprobs": True,
}
"""Sent with every model call unless the agent says otherwise."""

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def retries(count: int, settings: RolloutClientSettings) -> RetryPolicy:
    """Return the contract's policy: `count` further tries after the first."""
    return RetryPolicy(
        max_tries=count + 1,
        base_s=settings.retry_base_delay,
        cap_s=settings.retry_max_delay,
        statuses=frozenset(range(500, 600)),
        tries_for={},
    )


def callback_retries(settings: RolloutClientSettings) -> RetryPolicy:
    """Return the policy of the callback with a result."""
    return retries(settings.complete_rollout_retries, settings)


class TrainerChannel:
    """The way to one trainer for one rollout."""

    def __init__(
        self,
        client: TrainerClient,
        trainer: Trainer,
        *,
        key: Secret | None = None,
        request_timeout_s: float = 300.0,
        run_in_main_loop: RunInMainLoop = run_directly,
    ) -> None:
        """`run_in_main_loop` runs requests in the client's event loop."""
        self.key = key
        self._run_in_main_loop = run_in_main_loop
        self._client = client
        self._trainer = trainer
        self._request_timeout_s = request_timeout_s

    async def ask(
        self,
        path: str,
        body: bytes,
        policy: RetryPolicy,
        read: Callable[[Reply], T],
        *,
        idempotency_key: str | None = None,
    ) -> tuple[T, int, float]:
        """Return what `read` makes of a reply with a 2xx status; raise an OsmosisRolloutError."""
        headers = self._headers(idempotency_key)

        def send(timeout_s: float) -> Awaitable[Reply]:
            return self._client.post(
                self._trainer, path, body, headers=headers, timeout_s=timeout_s
            )

        def accept(reply: Reply) -> T:
            if not 200 <= reply.status < 300:
                raise _fault_of(reply, policy)
            try:
                return read(reply)
            except CallFault as fault:
                fault.retried = False  # the trainer has counted this call as answered
                raise

        retrier = Retrier(policy, RateLimiter(), request_timeout_s=self._request_timeout_s)
        try:
            return await self._run_in_main_loop(retrier.run(send, accept))
        except CallFailed as call_failed:
            raise self._error(call_failed) from None

    def _headers(self, idempotency_key: str | None) -> dict[str, str]:
        headers = {}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = quote(idempotency_key, safe=":@")
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key.reveal()}"
        return headers

    def _error(self, call_failed: CallFailed) -> OsmosisRolloutError:
        fault, tried = call_failed.fault, efforts(call_failed.tries, call_failed.elapsed_s)
        redact = Redactor([self.key])
        detail = clip(redact(fault.detail))
        where = f"the trainer at {self._trainer.netloc}"
        status = fault.status
        if status is not None and not 200 <= status < 300:
            sentence = f"{where} answered {status}{tried}" + (f": {detail}" if detail else "")
            kind = OsmosisServerError if status >= 500 else OsmosisValidationError
            return kind(sentence, status_code=status)
        what = ": ".join(filter(None, (fault.summary, detail))) or fault.kind
        if fault.kind == "timeout":
            return OsmosisTimeoutError(f"{where} did not answer{tried}: {what}")
        if isinstance(fault, TransportError):
            return OsmosisTransportError(f"{where} cannot be reached{tried}: {what}")
        return OsmosisValidationError(f"{where} sent {what}")


def _fault_of(reply: Reply, policy: RetryPolicy) -> CallFault:
    failed = reply.status >= 500
    return CallFault(
        "overloaded" if failed else "bad_request",
        reply.body.decode("utf-8", "replace"),
        status=reply.status,
        retried=failed and policy.retries_status(reply.status, reply.headers),
        retry_after_s=parse_retry_after(reply.headers) if failed else None,
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
        params: Mapping[str, Any] = NO_PARAMS,
        headers: Mapping[str, str] = NO_HEADERS,
        other: OtherRequest | None = None,
    ) -> ChatCompletion:
        """Return the trainer's answer, to which no headers go; raise an OsmosisRolloutError."""
        if other is not None:
            raise OsmosisValidationError(f"a trainer has no {other.api}: {other.instead}")
        body = self._body(messages, tools, params)

        def read(reply: Reply) -> ChatCompletion:
            return parse_completion(reply, model=self.name, policy=self._policy)

        channel = await self._channel()
        answer = await channel.ask(COMPLETIONS_PATH, body, self._policy, read)
        return replace(answer[0], retries=answer[1], latency_ms=answer[2])

    async def aclose(self) -> None:
        """Nothing to close: the connections belong to the channel's client."""

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


def _or(given: N | None, default: N) -> N:
    return default if given is None else given


class OsmosisLLMClient:
    """`LLMClient` over a trainer: what `ctx.chat` calls in the RolloutServer.

    Also to be used alone: `async with OsmosisLLMClient(url, rollout_id) as client`. It calls any
    `server_url`; a server that restricts trainers gives it a `channel`.
    """

    def __init__(
        self,
        server_url: str,
        rollout_id: str,
        api_key: str | Secret | None = None,
        *,
        timeout_seconds: float | None = None,
        max_retries: int | None = None,
        complete_rollout_retries: int | None = None,
        settings: RolloutClientSettings | None = None,
        channel: TrainerChannel | None = None,
    ) -> None:
        chosen = get_settings().client if settings is None else settings
        self.server_url = server_url.rstrip("/")
        self.rollout_id = rollout_id
        self.settings = chosen
        self.timeout_seconds = _or(timeout_seconds, chosen.timeout_seconds)
        self.max_retries = _or(max_retries, chosen.max_retries)
        self.complete_rollout_retries = _or(
            complete_rollout_retries, chosen.complete_rollout_retries
        )
        self._key = check_api_key(api_key, "api_key") if isinstance(api_key, str) else api_key
        self._channel = channel
        self._own_client: TrainerClient | None = None
        model = TrainerModel(rollout_id, self._opened, retries(self.max_retries, chosen))
        self._llm = ModelLLM(model, params=DEFAULTS)

    @property
    def api_key(self) -> str | None:
        """The bearer key for the trainer."""
        return None if self._key is None else self._key.reveal()

    def __repr__(self) -> str:
        return f"<OsmosisLLMClient of {self.rollout_id!r}>"

    async def __aenter__(self) -> OsmosisLLMClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def chat_completions(
        self, messages: list[dict[str, Any]], **params: Any
    ) -> CompletionsResult:
        """Return the model's answer to the history; raise an OsmosisRolloutError."""
        if "stop" in params:
            params["stop"] = normalize_stop(params["stop"])
        return await self._llm.chat_completions(messages, **params)

    def get_metrics(self) -> RolloutMetrics:
        """Return the metrics of all calls so far."""
        return self._llm.get_metrics()

    async def complete_rollout(
        self,
        status: str | RolloutResponse,
        final_messages: list[dict[str, Any]] | None = None,
        finish_reason: str = "stop",
        error_message: str | None = None,
        metrics: RolloutMetrics | None = None,
        reward: float | None = None,
    ) -> None:
        """Report how the rollout ended, in parts or as one `RolloutResponse`.

        Raises an OsmosisRolloutError.
        """
        response = status
        if not isinstance(response, RolloutResponse):
            response = RolloutResponse(
                rollout_id=self.rollout_id,
                status=RolloutStatus(response),
                final_messages=[] if final_messages is None else final_messages,
                finish_reason=finish_reason,
                error_message=error_message,
                metrics=metrics,
                reward=reward,
            )
        fields = response.model_dump()
        if response.metrics is not None:  # without the tokens that are not known
            fields["metrics"] = response.metrics.model_dump(exclude_none=True)
        body = _encode(to_jsonable_python(fields, inf_nan_mode="null")).encode("ascii")
        channel = await self._opened()
        await channel.ask(
            COMPLETED_PATH,
            body,
            retries(self.complete_rollout_retries, self.settings),
            lambda reply: reply.status,
            idempotency_key=self.rollout_id,
        )

    def end(self) -> None:
        """End the rollout: later calls raise."""
        self._llm.close()

    async def close(self) -> None:
        """End the rollout and close the client's own connections."""
        self.end()
        if self._own_client is not None:
            await self._own_client.aclose()

    aclose = close

    async def _opened(self) -> TrainerChannel:
        if self._channel is None:
            try:
                trainer = await TrainerRules(anywhere=True).locate(self.server_url)
            except TrainerRefused as error:
                raise OsmosisValidationError(str(error)) from None
            except TrainerUnknown as error:
                raise OsmosisTransportError(str(error)) from None
            from .wire import TrainerClient  # imports aiohttp

            self._own_client = self._own_client or TrainerClient(self.settings.max_connections)
            self._channel = TrainerChannel(
                self._own_client, trainer, key=self._key, request_timeout_s=self.timeout_seconds
            )
        return self._channel
