"""The answer to a request through LiteLLM, or the fault behind its exception.

The HTTP exchange decides: a fault seen there counts, and a reply of OpenAI's shape is parsed here.
LiteLLM's own reading serves for other shapes, its exceptions for requests that were never sent.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..base import ChatCompletion, Usage
from ..errors import UNSUPPORTED, CallFault
from ..failed_replies import fault_of_status
from ..parsing import read_usage
from .library import price_of

if TYPE_CHECKING:
    from ..other_apis import OtherRequest
    from .transport import Exchange

_UNGUARDED = (
    "LiteLLM answered without the HTTP transport that guards the key: use another provider or "
    "version of litellm, or give the endpoint's address (--osmosis-base-url)"
)
_NETWORK_LIBRARIES = frozenset({"aiohttp", "botocore", "google", "httpx", "requests", "urllib3"})
_NO_KEY = re.compile(
    r"missing credentials|missing [\w ]*\bkey\b|key is required|locate credentials", re.IGNORECASE
)
"""What LiteLLM says where it has nothing to send a request with."""
_NO_CONNECTION = (ConnectionError, TimeoutError, socket.gaierror)
_PACKAGES = {"google": "google-auth"}
"""What is installed under another name than it is imported by."""


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """A provider's answer, read and as it came."""

    completion: ChatCompletion
    raw: Mapping[str, Any]


def read_answer(exchange: Exchange, response: Any, error: Exception | None) -> ProviderAnswer:
    """Return the answer that LiteLLM gave over the exchange; raise a CallFault without one."""
    if response is not None and not exchange.begun.is_set():
        raise CallFault("bad_request", _UNGUARDED, reason=UNSUPPORTED)
    if exchange.fault is not None and response is None:
        raise exchange.fault
    if exchange.completion is not None:
        return ProviderAnswer(_priced(exchange.completion, response), exchange.reply or {})
    if error is not None or response is None:
        raise _fault_of_exception(error, exchange)
    try:
        completion = _completion(response)
    except (AttributeError, IndexError, TypeError) as unreadable:
        raise _unreadable(unreadable) from None
    return ProviderAnswer(_priced(completion, response), exchange.reply or response.model_dump())


def read_other(
    exchange: Exchange,
    response: Any,
    error: Exception | None,
    other: OtherRequest,
    model: str,
) -> ProviderAnswer:
    """Return the answer to a request of another API; raise a CallFault without one.

    Of embeddings, LiteLLM's reading counts: providers have shapes of their own.
    """
    if exchange.fault is not None and response is None:
        raise exchange.fault
    if error is not None or response is None:
        raise _fault_of_exception(error, exchange)
    document = exchange.reply
    if document is None or (other.path == "/embeddings" and "data" not in document):
        document = response.model_dump(mode="json", exclude_none=True)
    try:
        completion = other.read(document)
    except (AttributeError, LookupError, TypeError, ValueError) as unreadable:
        raise _unreadable(unreadable) from None
    if completion.cost_usd is None and completion.usage.prompt_tokens is not None:
        completion.cost_usd = price_of(model, completion.usage) or None
    completion.document = document
    return ProviderAnswer(completion, document)


def _completion(response: Any) -> ChatCompletion:
    """Return LiteLLM's reading of a reply in another shape than OpenAI's."""
    choice, *further = response.choices
    return ChatCompletion(
        message=_message(choice),
        further=[
            {"index": each.index, "message": _message(each), "finish_reason": each.finish_reason}
            for each in further
        ],
        finish_reason=choice.finish_reason,
        usage=_usage(getattr(response, "usage", None)),
        model=response.model,
    )


def _message(choice: Any) -> dict[str, Any]:
    message: dict[str, Any] = choice.message.model_dump(exclude_none=True)
    message.pop("provider_specific_fields", None)
    message.setdefault("content", None)
    return message


def _usage(usage: Any) -> Usage:
    counts, _ = read_usage(None if usage is None else usage.model_dump(exclude_none=True))
    # LiteLLM writes 0 where the provider says nothing.
    return counts if counts.prompt_tokens or counts.completion_tokens else Usage()


def _priced(completion: ChatCompletion, response: Any) -> ChatCompletion:
    if completion.cost_usd is not None or completion.usage.prompt_tokens is None:
        return completion
    hidden = getattr(response, "_hidden_params", None) or {}
    cost = hidden.get("response_cost")
    counted = getattr(getattr(response, "usage", None), "completion_tokens", None)
    if cost and counted is not None and counted < (completion.usage.completion_tokens or 0):
        # Thoughts that the provider counts in its total alone.
        provider = hidden.get("custom_llm_provider") or "openai"
        cost = price_of(f"{provider}/{response.model}", completion.usage) or cost
    # 0 is what LiteLLM has for models without a price, local ones for example.
    return replace(completion, cost_usd=float(cost)) if cost else completion


def _fault_of_exception(error: Exception | None, exchange: Exchange) -> CallFault:
    """Return the fault behind an exception of LiteLLM that no reply explains."""
    if error is None or exchange.replied:
        return _unreadable(error)
    causes = [*_causes(error)]
    root = causes[-1]
    if isinstance(root, ImportError):
        package = _PACKAGES.get(str(root.name).partition(".")[0], root.name)
        detail = f"LiteLLM needs a package for this provider: pip install {package}"
        return CallFault("bad_request", detail, reason=UNSUPPORTED)
    status = getattr(error, "status_code", None)
    message = _words(error)
    if type(error).__name__ == "UnsupportedParamsError":
        return CallFault("bad_request", message, reason=UNSUPPORTED)
    if _NO_KEY.search(message) or any(map(_is_refusal, causes)):
        return CallFault("auth", message)
    if isinstance(status, int) and 400 < status < 500:
        body = message.encode("utf-8", "replace")
        return fault_of_status(status, {}, body, model=exchange.model, policy=exchange.policy)
    summary = "LiteLLM sent no request: no answer"
    if _library(root) in _NETWORK_LIBRARIES or isinstance(root, _NO_CONNECTION):
        return CallFault("unreachable", message, summary=summary, retried=True)
    return CallFault("bad_request", message, summary=summary)


def _is_refusal(cause: BaseException) -> bool:
    """Return whether a server that gives out tokens has refused the credentials."""
    library = _library(cause)
    if library == "google":
        return not (getattr(cause, "retryable", False) or type(cause).__name__ == "TransportError")
    reply = getattr(cause, "response", None) if library == "httpx" else None
    return getattr(reply, "status_code", None) == 400


def _library(cause: BaseException) -> str:
    return type(cause).__module__.partition(".")[0]


def _unreadable(error: Exception | None) -> CallFault:
    detail = _words(error) if error is not None else ""
    return CallFault("protocol", detail, summary="an answer that LiteLLM cannot read", retried=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception, what caused it, and so on to the root."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _words(error: Exception) -> str:
    """Return the message without LiteLLM's class names and its advice about itself."""
    text = str(getattr(error, "message", "") or error)
    text = text.partition("To drop ")[0].partition("\n")[0]
    while text.startswith("litellm.") and ": " in text:
        text = text.partition(": ")[2]
    return text.strip()
