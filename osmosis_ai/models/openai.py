"""Chat completions of an OpenAI-compatible endpoint over HTTP.

One call is one POST, repeated as the retry policy says, each with a deadline; every failure is a
`ProviderError`. Knows neither rows nor agents nor options.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from yarl import URL

from ..secret import Redactor, Secret
from .adaptation import MOST, STREAM, Adaptation
from .base import NO_HEADERS, NO_PARAMS, ChatCompletion, RateLimit
from .errors import CallFault, ProviderError
from .faults import Wording
from .headers import NO_SECRETS, merged_headers
from .parsing import parse_completion
from .progress import current_call
from .rate_limiter import RateLimiter
from .retry import CallFailed, Retrier, RetryPolicy
from .transport import cassettes
from .transport.base_url import BaseURL, normalise_base_url
from .transport.exchange import EVENT_STREAM, JSON_HEADERS, MAX_BODY_BYTES, ClientClosed, Reply
from .transport.model_client import model_client
from .transport.proxy import find_proxy, unreachable

if TYPE_CHECKING:
    from .other_apis import OtherAPIs, OtherRequest
    from .passing import Passing

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class OpenAIModel:
    """`ChatModel` at `base_url`, for the running event loop; opens no connection yet.

    `headers` go with each call. `request_timeout_s` bounds each try as a whole, `total_timeout_s`
    all tries and pauses of one call. ValueError: the base URL, a proxy variable or `SSL_CERT_FILE`
    is unusable.
    """

    def __init__(  # noqa: PLR0913  # one for each thing that may differ
        self,
        *,
        model: str,
        base_url: str | BaseURL,
        api_key: Secret | None,
        pool_size: int,
        headers: Mapping[str, Secret] = NO_SECRETS,
        request_timeout_s: float = 300.0,
        total_timeout_s: float | None = None,
        retry: RetryPolicy | None = None,
        rate_limit: RateLimit | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        address = base_url if isinstance(base_url, BaseURL) else normalise_base_url(base_url)
        self.name = model
        self.endpoint = address.netloc
        self._address = address
        self._url = URL(address.url("/chat/completions"), encoded=True)
        self._policy = retry or RetryPolicy()
        self._retrier = Retrier(
            self._policy,
            rate_limit or RateLimiter(),
            request_timeout_s=request_timeout_s,
            total_timeout_s=total_timeout_s,
        )
        self._proxy = find_proxy(address, os.environ)
        self._client = model_client(
            size=pool_size,
            max_body=max_body_bytes,
            secure=address.scheme == "https",
        )
        # An attribute, since tracebacks may show local variables.
        self._headers: Mapping[str, str] = merged_headers(
            JSON_HEADERS, {name: value.reveal() for name, value in headers.items()}
        )
        if api_key is not None:
            self._headers = {**self._headers, "Authorization": f"Bearer {api_key.reveal()}"}
        proxy_key = None if self._proxy is None else self._proxy.authorization
        self._redact = Redactor([api_key, proxy_key, *address.secrets, *headers.values()])
        self._adaptation = Adaptation(can_stream=True)
        self._wording = Wording(
            where=address.netloc,
            origin=address.origin,
            address=address,
            model=model,
            key_name=None if api_key is None else api_key.name,
            timeout_s=request_timeout_s,
        )
        self._succeeded = False
        self._listing = asyncio.Lock()
        self._only_whole = False
        """The endpoint refuses to stream."""
        self._others: OtherAPIs | None = None

    def __repr__(self) -> str:
        return f"<{self.name} at {self._address}>"

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
        headers: Mapping[str, str] = NO_HEADERS,
        other: OtherRequest | None = None,
    ) -> ChatCompletion:
        """Return the answer after as many tries as the policy allows; raise ProviderError."""
        if params.get("stream"):
            raise ValueError("stream=True is not supported: answers come whole")
        if other is not None and not other.is_translated():
            return await self._other_apis().complete(other, headers)
        request = {"model": self.name, "messages": messages, **params}
        if tools:
            request["tools"] = tools
        progress = current_call()
        passing = None if progress is None else progress.passing
        if passing is not None and (self._only_whole or cassettes.inserted is not None):
            passing = None  # recordings hold whole answers
        if progress is not None and passing is not None:
            progress.is_streamed = True
        tries, before_s = 0, 0.0
        while True:
            sent = self._adaptation.apply(request) if self._adaptation.is_needed else request
            if passing is not None:
                sent = {**sent, **STREAM}
            ask = partial(self._ask, self._encoded(sent), headers, passing)
            try:
                answer, retries, ms = await self._retrier.run(ask, self._read, self._described)
            except ClientClosed:
                raise RuntimeError("the model is closed") from None
            except CallFailed as failed:
                if passing is not None and passing.is_refused(failed.fault):
                    passing, self._only_whole = None, True
                    tries, before_s = tries + failed.tries, before_s + failed.elapsed_s
                    continue
                if tries < MOST and self._adaptation.learn(failed.fault, sent):
                    tries, before_s = tries + failed.tries, before_s + failed.elapsed_s
                    continue
                raise await self._error(failed) from None
            answer.retries, answer.latency_ms = tries + retries, before_s * 1000.0 + ms
            if self._adaptation.is_needed:
                answer.notes += self._adaptation.notes(request)
            return answer

    async def _error(self, failed: CallFailed) -> ProviderError:
        """Return what users see of it; of an unknown model with those that the endpoint lists."""
        is_model = failed.fault.kind == "model_not_found" and failed.fault.named == "model"
        if is_model and cassettes.inserted is None:  # a cassette holds what agents asked
            async with self._listing:
                if self._wording.served is None:
                    from .served import served_instead

                    url = self._address.url("/models")
                    ask = partial(self._client.request, headers=self._headers, proxy=self._proxy)
                    served = await served_instead(self.name, url, ask)
                    self._wording = replace(self._wording, served=served)
        return self._wording.error(failed, self._redact, succeeded=self._succeeded)

    def _other_apis(self) -> OtherAPIs:
        from .other_apis import OtherAPIs

        if self._others is None:
            self._others = OtherAPIs(
                send=self._send_other,
                address=self._address,
                retrier=self._retrier,
                policy=self._policy,
                wording=self._wording,
                redact=self._redact,
            )
        return self._others

    async def _send_other(
        self, path: str, body: bytes, further: Mapping[str, str], timeout_s: float
    ) -> Reply:
        url = URL(self._address.url(path), encoded=True)
        headers = merged_headers(self._headers, further)
        try:
            reply = await self._client.request(
                url, body, headers=headers, timeout_s=timeout_s, proxy=self._proxy
            )
        except ClientClosed:
            raise RuntimeError("the model is closed") from None
        if reply.status == 407 and self._proxy is not None:
            raise unreachable("the proxy asks for other credentials (407)", self._proxy)
        return reply

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        await self._client.aclose()

    def _headers_of(self, further: Mapping[str, str], passing: Passing | None) -> Mapping[str, str]:
        if not further and not self._adaptation.streams and passing is None:
            return self._headers
        accept = {"Accept": EVENT_STREAM} if self._adaptation.streams or passing else {}
        if passing is not None:
            accept["Accept-Encoding"] = "identity"
        return merged_headers(self._headers, {**accept, **further})

    def _encoded(self, request: Mapping[str, Any]) -> bytes:
        try:
            text = _encode(request)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"the request to {self.name} is not JSON: {error}") from None
        return text.encode("utf-8", "replace")

    def _described(self, fault: CallFault) -> str:
        return self._wording.of_fault(fault, self._redact)

    def _ask(
        self, body: bytes, further: Mapping[str, str], passing: Passing | None, timeout_s: float
    ) -> Awaitable[Reply]:
        headers = self._headers_of(further, passing)
        return self._client.request(
            self._url,
            body,
            headers=headers,
            timeout_s=timeout_s,
            proxy=self._proxy,
            passing=passing,
        )

    def _read(self, reply: Reply) -> ChatCompletion:
        if reply.status == 407 and self._proxy is not None:
            raise unreachable("the proxy asks for other credentials (407)", self._proxy)
        self._retrier.replied = True
        if not 200 <= reply.status < 300:
            from .failed_replies import fault_of_status

            raise fault_of_status(
                reply.status,
                reply.headers,
                reply.body,
                model=self.name,
                policy=self._policy,
                keyless=self._wording.key_name is None,
            )
        answer = parse_completion(reply, model=self.name, policy=self._policy)
        self._succeeded = True
        return answer
