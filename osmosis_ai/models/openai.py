"""Chat completions from an OpenAI-compatible endpoint, straight over HTTP.

One call is one POST, tried again as the retry policy says, under a deadline each; whatever goes
wrong ends as one `ProviderError`. Knows no rows, no agents and no options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..jsontext import compact_encoder
from ..secret import Redactor, Secret, check_api_key
from .base import (
    DETAIL_LIMIT,
    FATAL_KINDS,
    CallGate,
    ChatCompletion,
    ChatModel,
    ProviderError,
    clip,
    efforts,
)
from .errors import fault_of_status
from .parsing import parse_completion
from .rate_limit import LocalGate
from .retry import RetryPolicy
from .transport.base_url import BaseURL, normalise_base_url
from .transport.http1 import MAX_BODY_BYTES
from .transport.pool import Pool
from .transport.proxy import find_proxy
from .tries import GaveUp, Tries
from .wording import Wording

__all__ = ["BaseURL", "check_api_key", "normalise_base_url", "open_chat_model"]

_encode = compact_encoder(ensure_ascii=False)
_NO_PARAMS: Mapping[str, Any] = {}


def open_chat_model(
    *,
    model: str,
    base_url: str | BaseURL,
    api_key: Secret | None,
    pool_size: int,
    request_timeout_s: float = 300.0,
    total_timeout_s: float | None = None,
    retry: RetryPolicy | None = None,
    gate: CallGate | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> ChatModel:
    """A model at `base_url`, to be used within the running event loop; opens no connection yet.

    `request_timeout_s` bounds each try as a whole, `total_timeout_s` all tries and pauses of one
    call. ValueError: the base URL, a proxy variable or `SSL_CERT_FILE` is unusable.
    """
    address = base_url if isinstance(base_url, BaseURL) else normalise_base_url(base_url)
    pool = Pool(
        address,
        api_key=api_key,
        size=pool_size,
        max_body=max_body_bytes,
        proxy=find_proxy(address, os.environ),
    )
    policy = retry or RetryPolicy()
    tries = Tries(
        policy,
        gate or LocalGate(),
        request_timeout_s=request_timeout_s,
        total_timeout_s=total_timeout_s,
    )
    return _HTTPModel(model, pool, api_key=api_key, policy=policy, tries=tries)


class _HTTPModel:
    """`ChatModel` over a pool of connections."""

    def __init__(
        self,
        name: str,
        pool: Pool,
        *,
        api_key: Secret | None,
        policy: RetryPolicy,
        tries: Tries,
    ) -> None:
        self.name = name
        self.endpoint = pool.address.netloc
        self._pool = pool
        self._policy = policy
        self._tries = tries
        secrets = [api_key, pool.proxy.authorization if pool.proxy is not None else None]
        self._redact = Redactor(secret for secret in secrets if secret is not None)
        self._wording = Wording(
            address=pool.address,
            model=name,
            key_name=None if api_key is None else api_key.name or "the API key",
            timeout_s=tries.request_timeout_s,
        )
        self._succeeded = False

    def __repr__(self) -> str:
        return f"<{self.name} at {self._pool.address}>"

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = _NO_PARAMS,
    ) -> ChatCompletion:
        """One answer, after as many tries as the policy allows; raises ProviderError."""
        body = self._body(messages, tools, params)
        turn = len(messages)
        try:
            found = await self._tries.until_answered(lambda limit_s: self._ask(body, turn, limit_s))
        except GaveUp as gave_up:
            raise self._error(gave_up) from None
        answer = found.value
        answer.retries, answer.latency_ms = found.retries, found.latency_ms
        return answer

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        await self._pool.aclose()

    def _body(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        params: Mapping[str, Any],
    ) -> bytes:
        if params.get("stream"):
            raise ValueError("stream=True is not supported: answers come whole")
        request: dict[str, Any] = {"model": self.name, "messages": messages, **params}
        if tools:
            request["tools"] = tools
        try:
            text = _encode(request)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"the request to {self.name} is not JSON: {error}") from None
        return text.encode("utf-8", "replace")

    async def _ask(self, body: bytes, turn: int, timeout_s: float) -> ChatCompletion:
        reply = await self._pool.exchange(body, timeout_s)
        self._tries.replied = True
        if not 200 <= reply.status < 300:
            raise fault_of_status(
                reply.status,
                _text_headers(reply.headers),
                reply.body,
                model=self.name,
                policy=self._policy,
            )
        answer = parse_completion(
            reply.body,
            model=self.name,
            turn=turn,
            content_type=reply.headers.get(b"content-type", b"").decode("latin-1"),
            status=reply.status,
            policy=self._policy,
        )
        self._succeeded = True
        return answer

    def _error(self, gave_up: GaveUp) -> ProviderError:
        fault = gave_up.fault
        detail = clip(self._redact(fault.detail), 200 if fault.summary else DETAIL_LIMIT)
        sentence = self._wording(fault, detail, efforts(gave_up.tries, gave_up.elapsed_s))
        return ProviderError(
            self._redact(sentence),
            kind=fault.kind,
            status=fault.status,
            endpoint=self.endpoint,
            tries=gave_up.tries,
            elapsed_s=gave_up.elapsed_s,
            fatal=fault.kind in FATAL_KINDS and not (fault.local and self._succeeded),
            detail=detail,
        )


def _text_headers(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
