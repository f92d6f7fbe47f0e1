"""Models by their LiteLLM name, `provider/model`: what `--osmosis-model` without a base URL means.

Knows neither LiteLLM, which is behind `client`, nor rows, agents and options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...providers import (
    ModelName,
    host_of,
    key_from_environment,
    key_variables,
    parse_model_name,
)
from ...secret import Redactor, Secret
from ...secret_variables import secret_variables
from ..adaptation import MOST, Adaptation
from ..base import NO_HEADERS, NO_PARAMS, ChatCompletion, RateLimit
from ..faults import Wording
from ..headers import NO_SECRETS, merged_headers
from ..rate_limiter import RateLimiter
from ..retry import CallFailed, Retrier, RetryPolicy
from .client import LiteLLMClient
from .library import has_api, loaded
from .reading import ProviderAnswer

if TYPE_CHECKING:
    from ..other_apis import OtherRequest

_TRANSLATED = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "service_tier",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
"""Fields of a request that LiteLLM translates for each provider.

LiteLLM takes a request's fields and its own settings (`base_url`, `fallbacks`, `mock_response`,
credentials of clouds, ...) as arguments alike. Agents send fields: one that named another address
would send the provider's key there.
"""


class LiteLLMModel:
    """`ChatModel` over LiteLLM; also gives the provider's reply as it came.

    To be used within one event loop; opens and imports nothing yet. Without `api_key` the
    provider's usual variable is read now. `headers` go with each call. `request_timeout_s` bounds
    each try as a whole, from its request on, `total_timeout_s` all tries and pauses of one call.
    ValueError: no model name.
    """

    def __init__(
        self,
        *,
        model: str | ModelName,
        api_key: Secret | None = None,
        api_base: str | None = None,
        headers: Mapping[str, Secret] = NO_SECRETS,
        request_timeout_s: float = 300.0,
        total_timeout_s: float | None = None,
        retry: RetryPolicy | None = None,
        rate_limit: RateLimit | None = None,
    ) -> None:
        name = parse_model_name(model) if isinstance(model, str) else model
        policy = retry or RetryPolicy()
        self.name = str(name)
        self.endpoint = host_of(name.provider, api_base)
        self._provider, self._model = name.provider, name.model
        self._api_key = api_key or key_from_environment(name.provider)
        self._client = LiteLLMClient(name, self._api_key, api_base, policy)
        self._retrier = Retrier(
            policy,
            rate_limit or RateLimiter(),
            request_timeout_s=request_timeout_s,
            total_timeout_s=total_timeout_s,
        )
        # Without a key LiteLLM finds credentials in the environment by itself.
        keys = [self._api_key] if self._api_key else secret_variables()
        self._redact = Redactor([*keys, *headers.values()])
        self._headers = {name: value.reveal() for name, value in headers.items()}
        self._adaptation = Adaptation()
        self._succeeded = False

    def __repr__(self) -> str:
        return f"<{self.name} through LiteLLM>"

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
        headers: Mapping[str, str] = NO_HEADERS,
        other: OtherRequest | None = None,
    ) -> ChatCompletion:
        """One answer, after as many tries as the policy allows; raises ProviderError."""
        if params.get("stream"):
            raise ValueError("stream=True is not supported: answers come whole")
        if other is not None and not await self._translates(other):
            fields = _for_api(other)
            answer = await self.answer(messages, params=fields, headers=headers, other=other)
            return answer.completion
        asked = {**params, "tools": [dict(tool) for tool in tools]} if tools else params
        answer = await self.answer(messages, params=_for_the_model(asked), headers=headers)
        return answer.completion

    async def answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        params: Mapping[str, Any] = NO_PARAMS,
        headers: Mapping[str, str] = NO_HEADERS,
        other: OtherRequest | None = None,
    ) -> ProviderAnswer:
        """As `complete`, with the raw reply, and `params` as LiteLLM takes them."""
        tries, before_s = 0, 0.0
        while True:
            sent = self._adaptation.apply(params)
            try:
                answered, retries, ms = await self._retrier.run(
                    partial(self._ask, messages, sent, headers, other),
                    lambda answer: answer,
                    lambda fault: self._wording().of_fault(fault, self._redact),
                )
            except CallFailed as failed:
                if tries < MOST and self._adaptation.learn(failed.fault, sent):
                    tries, before_s = tries + failed.tries, before_s + failed.elapsed_s
                    continue
                error = self._wording().error(failed, self._redact, succeeded=self._succeeded)
                break
            answer = answered.completion
            answer.retries, answer.latency_ms = tries + retries, before_s * 1000.0 + ms
            answer.notes += self._adaptation.notes(params)
            return answered
        # Raised outside the handler: LiteLLM's exception holds the key: it is no context.
        raise error

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        await self._client.aclose()

    def redacted(self, text: str) -> str:
        """Return `text` without the key, in any spelling."""
        return self._redact(text)

    async def _translates(self, other: OtherRequest) -> bool:
        """Return whether a chat completion is asked for in the place of a request."""
        if not other.may_translate:
            return False
        await loaded()
        return not has_api(other.path, self._provider, self._model) and other.is_translated()

    async def _ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        other: OtherRequest | None,
        timeout_s: float,
    ) -> ProviderAnswer:
        if further := merged_headers(self._headers, headers):
            params = {**params, "extra_headers": further}
        try:
            answer = await self._client.ask(messages, params, timeout_s, other)
        finally:
            self._retrier.replied = self._client.replied
        self._succeeded = True
        return answer

    def _wording(self) -> Wording:
        return Wording(
            where=self.endpoint,
            origin=self._client.host or self.endpoint,
            model=self._model,
            key_name=None if self._api_key is None else self._api_key.name,
            timeout_s=self._retrier.request_timeout_s,
            key_variable=next(iter(key_variables(self._provider)), None),
        )


def _for_the_model(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for LiteLLM: known fields as they are, others in `extra_body`."""
    known = {name: value for name, value in params.items() if name in _TRANSLATED}
    others = {name: value for name, value in params.items() if name not in _TRANSLATED}
    return {**known, "extra_body": others} if others else known


_FIELDS: Mapping[str, frozenset[str]] = {
    "/responses": frozenset(
        {
            *("include", "input", "instructions", "max_output_tokens", "metadata"),
            *("parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key"),
            *("reasoning", "safety_identifier", "service_tier", "store", "temperature", "text"),
            *("tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
        }
    ),
    "/messages": frozenset(
        {
            *("max_tokens", "messages", "metadata", "stop_sequences", "system", "temperature"),
            *("thinking", "tool_choice", "tools", "top_k", "top_p"),
        }
    ),
    "/embeddings": frozenset({"dimensions", "input", "user"}),
}
"""Fields of other APIs that LiteLLM takes by name."""
_LEFT_OUT = {"encoding_format"}
"""LiteLLM decodes embeddings for some providers alone: all come as numbers, which clients read."""


def _for_api(other: OtherRequest) -> dict[str, Any]:
    """Return arguments for LiteLLM: known fields as they are, others in `extra_body`."""
    known = {name: value for name, value in other.body.items() if name in _FIELDS[other.path]}
    others = {
        name: value
        for name, value in other.body.items()
        if name not in known and name not in _LEFT_OUT and name != "model"
    }
    return {**known, "extra_body": others} if others else known
