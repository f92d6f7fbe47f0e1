"""What an unsuccessful HTTP reply means.

Reads statuses and bodies as OpenAI, vLLM, SGLang, Ollama, Azure, Gemini, OpenRouter and others
write them. Decides nothing about further tries and knows no connection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from .errors import DOUBTED_KEY, CallFault, clip
from .refusals import (
    ErrorWords,
    is_about_key,
    kind_of,
    leaves_key_in_doubt,
    names_no_model,
    other_name,
    refused_param,
    status_named,
    wants_stream,
    words_of,
)
from .retry import RetryPolicy, parse_retry_after

_BODY_CHARS = 64 * 1024
"""Beginning of an error's body that is read."""


def fault_of_status(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    model: str,
    policy: RetryPolicy,
    keyless: bool = False,
) -> CallFault:
    """Return the fault of a reply, to a request without a key or not, whose status is not 2xx."""
    text = body.decode("utf-8", "replace")
    if len(text) > _BODY_CHARS:  # what is quoted of it is redacted long before this end
        text = " ".join(text.split())[:_BODY_CHARS]
    words = words_of(text)
    if 300 <= status < 400:
        return CallFault("redirect", _printable_location(headers), status=status)
    kind, local = kind_of(status, words, model)
    passing = kind in ("rate_limited", "overloaded") or (kind == "bad_request" and status < 500)
    in_doubt = (
        kind == "overloaded" and status == 500 and leaves_key_in_doubt(words, keyless=keyless)
    )
    fault = CallFault(
        kind,
        words.message,
        status=status,
        retried=passing and policy.retries_status(status, headers),
        retry_after_s=parse_retry_after(headers) if passing else None,
        local=local,
        reason=DOUBTED_KEY if in_doubt else "",
    )
    return _explained(fault, words, model)


def fault_of_error_object(error: object, *, model: str, policy: RetryPolicy) -> CallFault:
    """Return the fault of an `error` object inside a reply whose status says success."""
    code = error.get("code") if isinstance(error, dict) else None
    status = int(code) if isinstance(code, (int, str)) and _is_status(code) else 0
    words = words_of(json.dumps({"error": error}))
    status = status or status_named(words.codes)
    kind, local = kind_of(status, words, model)
    fault = CallFault(
        kind,
        words.message,
        summary="an error inside a 200",
        status=200,
        retried=kind in ("rate_limited", "overloaded") and policy.retries_status(status, {}),
        local=local,
    )
    return _explained(fault, words, model)


def _explained(fault: CallFault, words: ErrorWords, model: str) -> CallFault:
    """Return the fault with what its words say of key, model and fields of the request."""
    if is_about_key(words):
        fault.named = "key"
    elif names_no_model(words, model):
        fault.named = "model"
    if fault.kind == "bad_request":
        fault.param = refused_param(words)
        fault.instead = ("", "stream") if wants_stream(words) else other_name(words)
    return fault


def _is_status(code: int | str) -> bool:
    text = str(code)
    return len(text) == 3 and text.isascii() and text.isdigit() and text >= "400"


def _printable_location(headers: Mapping[str, str]) -> str:
    """Where a redirect points, without user names, passwords or query."""
    try:
        parts = urlsplit(headers.get("location", ""))
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that cannot be read"
    where = f"{parts.scheme}://{host}{parts.path}" if host else parts.path
    return clip(where, 200) or "nowhere"
