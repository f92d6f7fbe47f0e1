"""The protocol of chat models: messages in, one completion or a `ProviderError` out.

Knows neither HTTP nor any provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from .other_apis import OtherRequest

CallOutcome = Literal["ok", "rate_limited", "overloaded", "failed"]

NO_PARAMS: Mapping[str, Any] = {}
"""The sampling options of a call that names none."""
NO_HEADERS: Mapping[str, str] = {}
"""The further headers of a call that names none."""


INVALID_TEXT = "text that is not valid Unicode, written with U+FFFD"
"""The note of what held half a character, which no file can."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them; None is unknown, never zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of the prompt tokens that the endpoint had already read."""
    reasoning_tokens: int | None = None
    """Part of the completion tokens that went into thoughts."""
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """`prompt_tokens_details` and `completion_tokens_details` as they came: cached, reasoning, …"""


@dataclass(slots=True, kw_only=True)
class ChatCompletion:
    """One answer of a model."""

    message: dict[str, Any]
    """The assistant message; its `content` is a string or None, text parts are already joined.

    Empty where nothing is said: embeddings.
    """
    finish_reason: str | None = None
    usage: Usage = Usage()
    token_ids: list[int] | None = None
    """Sampled token ids, from endpoints that return them."""
    logprobs: Any | None = None
    further: Sequence[Mapping[str, Any]] = ()
    """The choices beyond the first, as the endpoint sent them, where `n` asked for several."""
    document: Mapping[str, Any] | None = None
    """The whole reply to an `OtherRequest`."""
    model: str | None = None
    """The model's name as the endpoint reports it."""
    cost_usd: float | None = None
    notes: tuple[str, ...] = ()
    """How the request was sent otherwise than asked, since the endpoint wants it so."""
    retries: int = 0
    """Tries that failed before this answer."""
    latency_ms: float = 0.0
    """From the first try to the answer, waits included."""


class ChatModel(Protocol):
    """Something that answers chat messages."""

    @property
    def name(self) -> str:
        """The model as it is evaluated."""

    @property
    def endpoint(self) -> str:
        """Printable `host:port` or provider; never credentials."""

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
        headers: Mapping[str, str] = NO_HEADERS,
        other: OtherRequest | None = None,
    ) -> ChatCompletion:
        """Return the answer after as many tries as the policy allows; raise `ProviderError`.

        With `other`, that is what is sent, and `messages` is what it says.
        """

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""


class WrappedModel:
    """The base of a `ChatModel` that asks another one: its name, its endpoint and its end."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.name = model.name
        self.endpoint = model.endpoint

    async def aclose(self) -> None:
        """Close the other model."""
        await self._model.aclose()


class RateLimit(Protocol):
    """A pause between requests that several models, or several processes, share.

    Every `acquire` that returned is followed by exactly one `record_response`.
    """

    async def acquire(self) -> None:
        """Wait until one more request may be sent."""

    def record_response(self, outcome: CallOutcome, retry_after_s: float) -> None:
        """Record how a request ended; `retry_after_s` > 0: send nothing for so many seconds."""


Prices = Sequence[float]
"""Dollars per million tokens of prompts and of completions, and maybe of cached prompts."""


def price(answer: ChatCompletion, per_mtok: Prices) -> None:
    """Set what an answer cost, where the endpoint did not and its tokens are known."""
    usage, (prompt_price, completion_price, *further) = answer.usage, per_mtok
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if answer.cost_usd is None and prompt is not None and completion is not None:
        cached = min(prompt, usage.cached_tokens or 0)
        cached_price = further[0] if further else prompt_price
        dollars = (prompt - cached) * prompt_price + cached * cached_price
        answer.cost_usd = (dollars + completion * completion_price) / 1e6


class PricedModel(WrappedModel):
    """A `ChatModel` with a cost of each answer, where the endpoint reports none."""

    def __init__(self, model: ChatModel, per_mtok: Prices) -> None:
        super().__init__(model)
        self._per_mtok = per_mtok

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], **options: Any
    ) -> ChatCompletion:
        """Return the model's answer; its cost stays unknown where its tokens are."""
        answer = await self._model.complete(messages, **options)
        other: OtherRequest | None = options.get("other")
        if other is None or other.own_model in (None, self.name):
            price(answer, self._per_mtok)
        return answer
