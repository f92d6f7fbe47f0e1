"""Models by their LiteLLM name, `provider/model`: what `--osmosis-model` without a base URL means.

Knows neither LiteLLM, which is behind `client`, nor rows, agents and options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...providers import ModelName, key_from_environment, parse_model_name
from ...secret import Redactor, Secret
from ..base import (
    DETAIL_LIMIT,
    FATAL_KINDS,
    CallFault,
    ChatCompletion,
    ChatModel,
    ProviderError,
    RateLimit,
    clip,
    efforts,
)
from ..rate_limit import RateLimiter
from ..retry import (
    RETRY_AFTER_LIMIT_S,
    CallFailed,
    Retrier,
    RetryPolicy,
    Success,
    in_words,
)
from .client import LiteLLMClient, Question
from .params import for_the_model
from .reading import UNSUPPORTED, Answer

__all__ = ["LiteLLMModel", "open_litellm_model"]

_NO_PARAMS: Mapping[str, Any] = {}


def open_litellm_model(
    *,
    model: str,
    api_key: Secret | None = None,
    api_base: str | None = None,
    request_timeout_s: float = 300.0,
    total_timeout_s: float | None = None,
    retry: RetryPolicy | None = None,
    rate_limit: RateLimit | None = None,
) -> ChatModel:
    """A provider's model, to be used within one event loop; opens and imports nothing yet.

    Without `api_key` the provider's usual variable is read now. `request_timeout_s` bounds each try
    as a whole, from its request on, `total_timeout_s` all tries and pauses of one call. ValueError:
    no model name.
    """
    return LiteLLMModel(
        parse_model_name(model),
        api_key=api_key,
        api_base=api_base,
        timeouts_s=(request_timeout_s, total_timeout_s),
        retry=retry or RetryPolicy(),
        rate_limit=rate_limit or RateLimiter(),
    )


class LiteLLMModel:
    """`ChatModel` over LiteLLM; also gives the provider's reply as it came."""

    def __init__(
        self,
        name: ModelName,
        *,
        api_key: Secret | None,
        api_base: str | None,
        timeouts_s: tuple[float, float | None],
        retry: RetryPolicy,
        rate_limit: RateLimit,
    ) -> None:
        self.name = str(name)
        self.endpoint = _printable_base(api_base) or name.provider
        self._name = name
        self._api_key = api_key or key_from_environment(name.provider)
        self._api_base = api_base
        self._client = LiteLLMClient(retry)
        self._retrier = Retrier(
            retry, rate_limit, request_timeout_s=timeouts_s[0], total_timeout_s=timeouts_s[1]
        )
        self._redact = Redactor([self._api_key] if self._api_key is not None else [])
        self._succeeded = False

    def __repr__(self) -> str:
        return f"<{self.name} through LiteLLM>"

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = _NO_PARAMS,
    ) -> ChatCompletion:
        """One answer, after as many tries as the policy allows; raises ProviderError."""
        if params.get("stream"):
            raise ValueError("stream=True is not supported: answers come whole")
        asked = {**params, "tools": [dict(tool) for tool in tools]} if tools else params
        found = await self.answer(messages, params=for_the_model(asked))
        answer = found.value.completion
        answer.retries, answer.latency_ms = found.retries, found.latency_ms
        return answer

    async def answer(
        self, messages: Sequence[Mapping[str, Any]], *, params: Mapping[str, Any] = _NO_PARAMS
    ) -> Success[Answer]:
        """As `complete`, with the raw reply, and `params` as LiteLLM takes them."""
        question = Question(
            name=self._name,
            messages=messages,
            api_key=self._api_key,
            api_base=self._api_base,
            params=params,
        )
        failure: CallFailed | None = None
        try:
            return await self._retrier.run(lambda limit_s: self._ask(question, limit_s))
        except CallFailed as call_failed:
            failure = call_failed
        # Raised outside the handler: LiteLLM's exception holds the key: it is no context.
        raise self._error(failure)

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        await self._client.aclose()

    def redacted(self, text: str) -> str:
        """Return `text` without the key, in any spelling."""
        return self._redact(text)

    async def _ask(self, question: Question, timeout_s: float) -> Answer:
        try:
            answer = await self._client.ask(question, timeout_s)
        finally:
            self._retrier.replied = self._client.replied
        self._succeeded = True
        return answer

    def _error(self, failure: CallFailed) -> ProviderError:
        fault = failure.fault
        detail = clip(self._redact(fault.detail), 200 if fault.summary else DETAIL_LIMIT)
        sentence = self._sentence(fault, detail, efforts(failure.tries, failure.elapsed_s))
        fatal = fault.kind in FATAL_KINDS and not (fault.local and self._succeeded)
        return ProviderError(
            self._redact(sentence),
            kind=fault.kind,
            status=fault.status,
            endpoint=self.endpoint,
            tries=failure.tries,
            elapsed_s=failure.elapsed_s,
            fatal=fatal or fault.reason == UNSUPPORTED,
            detail=detail,
        )

    def _sentence(self, fault: CallFault, detail: str, after: str) -> str:
        """Return the sentence that users read: what happened, where, and the next step."""
        where, status = self.endpoint, fault.status
        quoted = f' ("{detail}")' if detail else ""
        if fault.summary:
            return f"{fault.summary} from {where}{after}{quoted}"
        if fault.reason == UNSUPPORTED:
            return detail
        if fault.reason == "not_connected":
            return f"cannot reach {self._client.host or where}{after} ({detail})"
        if fault.kind in ("unreachable", "protocol", "too_large", "tls"):
            return f"no usable answer from {where}{after} ({detail})"
        if fault.kind == "timeout":
            limit = f"{self._retrier.request_timeout_s:g} s"
            return f"no whole answer from {where} within {limit}{after} ({detail})"
        if fault.kind == "redirect":
            return f"{where} redirects ({status}) to {detail}: set the base URL to that"
        if fault.kind == "auth":
            return f"{status} from {where}: {self._key_problem()}{quoted}"
        if fault.kind == "quota":
            return f"{status} from {where}: the account has no quota left{quoted}"
        if fault.kind == "model_not_found":
            return f"model {self._name.model!r} is not known at {where} ({status}){quoted}"
        if fault.retry_after_s is not None and fault.retry_after_s > RETRY_AFTER_LIMIT_S:
            after += f": asked to wait {in_words(fault.retry_after_s)}"
        return f"{status or 'an error'} from {where}{after}{quoted}"

    def _key_problem(self) -> str:
        if self._api_key is None:
            return "it wants an API key and none is set"
        source = f" in {self._api_key.name}" if self._api_key.name else ""
        return f"the key{source} was refused"


def _printable_base(api_base: str | None) -> str | None:
    """Host and port of a base URL, without user names, passwords, path and query."""
    if api_base is None:
        return None
    host = api_base.partition("://")[2] or api_base
    return host.partition("/")[0].partition("?")[0].rpartition("@")[2] or None
