"""The protocol of chat models: messages in, one completion or a `ProviderError` out.

Knows neither HTTP nor any provider. The exceptions:

    Exception
    ├── ProviderError      the endpoint gave no answer; `kind` says why, `fatal` whether any row can
    └── CallFault          one try without an answer, inside this package

Kinds: auth, model_not_found and quota are fatal (no other row can succeed); unreachable (there was
no connection), connection (it broke), rate_limited, overloaded and timeout were retried;
bad_request, protocol, redirect, tls and too_large concern the call itself; not_recorded is a call
that a cassette has no answer to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ErrorKind = Literal[
    "auth",
    "model_not_found",
    "quota",
    "unreachable",
    "connection",
    "rate_limited",
    "overloaded",
    "timeout",
    "bad_request",
    "protocol",
    "redirect",
    "tls",
    "too_large",
    "not_recorded",
]
CallOutcome = Literal["ok", "rate_limited", "overloaded", "failed"]

DOUBTED_KEY = "doubted_key"
"""Reason of a fault that passes, or comes of a key: whether any other request succeeds tells."""
FATAL_KINDS: frozenset[str] = frozenset({"auth", "model_not_found", "quota"})
DETAIL_LIMIT = 500
"""Characters of a provider's own message that are kept."""

NO_PARAMS: Mapping[str, Any] = {}
"""The sampling options of a call that names none."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them; None is unknown, never zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """`prompt_tokens_details` and `completion_tokens_details` as they came: cached, reasoning, …"""


@dataclass(slots=True, kw_only=True)
class ChatCompletion:
    """One answer of a model."""

    message: dict[str, Any]
    """The assistant message; its `content` is a string or None, text parts are already joined."""
    finish_reason: str | None = None
    usage: Usage = Usage()
    token_ids: list[int] | None = None
    """Sampled token ids, from endpoints that return them."""
    logprobs: Any | None = None
    model: str | None = None
    """The model's name as the endpoint reports it."""
    cost_usd: float | None = None
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
    ) -> ChatCompletion:
        """Return the answer after as many tries as the policy allows; raise `ProviderError`."""

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


class ProviderError(Exception):
    """The endpoint gave no usable answer; `str()` is the one sentence that users see."""

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = "protocol",
        status: int | None = None,
        endpoint: str = "",
        tries: int = 1,
        elapsed_s: float = 0.0,
        fatal: bool | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        """HTTP status of the last reply, None when there was none."""
        self.endpoint = endpoint
        self.tries = tries
        self.elapsed_s = elapsed_s
        self.fatal = kind in FATAL_KINDS if fatal is None else fatal
        """No other row can succeed either: stop instead of failing every row."""
        self.detail = detail
        """The endpoint's own words, redacted and cut."""


class CallFault(Exception):
    """One try that brought no completion; never leaves this package: users see `ProviderError`."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str = "",
        *,
        summary: str = "",
        status: int | None = None,
        reason: str = "",
        retried: bool = False,
        retry_after_s: float | None = None,
        local: bool = False,
    ) -> None:
        super().__init__(summary or detail)
        self.kind = kind
        self.detail = detail
        """The endpoint's words, or the operating system's; not yet redacted."""
        self.summary = summary
        """Ours, where the kind alone does not say what is wrong."""
        self.status = status
        self.reason = reason or kind
        """Key of `RetryPolicy.tries_for`."""
        self.retried = retried
        self.retry_after_s = retry_after_s
        self.local = local
        """May concern this call alone, if others have succeeded before."""
        self.stale = False
        """A kept connection, which the server had dropped: worth one further try at once."""


def efforts(tries: int, elapsed_s: float) -> str:
    """Return ` after 4 tries in 21.3 s`, or nothing after a single try."""
    return f" after {tries} tries in {elapsed_s:.1f} s" if tries > 1 else ""


def clip(text: str, limit: int = DETAIL_LIMIT) -> str:
    """Return `text` on one line, without control characters, at most `limit` characters long."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: 8 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def price(answer: ChatCompletion, per_mtok: tuple[float, float]) -> None:
    """Say what an answer cost, where the endpoint did not and its tokens are known."""
    prompt, completion = answer.usage.prompt_tokens, answer.usage.completion_tokens
    if answer.cost_usd is None and prompt is not None and completion is not None:
        answer.cost_usd = (prompt * per_mtok[0] + completion * per_mtok[1]) / 1e6


class PricedModel(WrappedModel):
    """A `ChatModel` with a cost of each answer, where the endpoint reports none."""

    def __init__(self, model: ChatModel, per_mtok: tuple[float, float]) -> None:
        """`per_mtok`: dollars per million tokens of prompts and of completions."""
        super().__init__(model)
        self._per_mtok = per_mtok

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
    ) -> ChatCompletion:
        """Return the model's answer; its cost stays unknown where its tokens are."""
        answer = await self._model.complete(messages, tools=tools, params=params)
        price(answer, self._per_mtok)
        return answer
