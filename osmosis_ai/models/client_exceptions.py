"""The endpoint's failures behind exceptions of client libraries, told by names and attributes.

    OpenAI, Anthropic and the clients made like theirs, google.genai, LiteLLM, botocore (Bedrock),
    pydantic-ai, and what LangChain wraps around these

Status and words decide as for our own calls. No library is imported. An exception of a general HTTP
client (httpx, aiohttp, requests) is none of these: it may be a tool's.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from ..secret import redact
from .errors import CallFault, ErrorKind, ProviderError
from .failed_replies import fault_of_error_object, fault_of_status
from .faults import Wording
from .retry import CallFailed, RetryPolicy

_PLAIN_CLIENTS = frozenset(
    {
        *("anthropic", "cerebras", "cohere", "groq", "litellm", "mistralai", "ollama", "openai"),
        "together",
    }
)
"""Packages that run no tools."""
_CLIENTS = _PLAIN_CLIENTS | {"langchain_core", "langchain_openai", "pydantic_ai"}
"""Packages whose exceptions are read, beside those of google.genai."""
_BEDROCK = re.compile(r"^(?:InvokeModel|Converse)|bedrock|/model/[^/\s]+/(?:invoke|converse)")
"""Operations and addresses of models: botocore is the client of tools as well."""
_NO_KEY = re.compile(
    r"api_key client option must be set|could not resolve authentication method"
    r"|missing credentials",
    re.IGNORECASE,
)
_REACHED_NOTHING = re.compile(
    r"^(?:Connect(?:Error|Timeout)|Client(?:Connector|ProxyConnection)\w*Error|gaierror"
    r"|ConnectionRefusedError|EndpointConnectionError|ConnectTimeoutError|NewConnectionError)$"
)
_OWN_REQUEST = frozenset({"InvalidURL", "LocalProtocolError", "UnsupportedProtocol"})
"""A client that was given no usable address or header: nothing was sent."""
_NETWORK = frozenset(
    {
        *("aiohttp", "anyio", "asyncio", "concurrent", "h11", "h2", "httpcore"),
        *("httpcore2", "httpx", "httpx2", "requests", "socket", "ssl", "urllib3"),
    }
)
_DEPTH = 50
"""Exceptions of one chain that are looked at."""


def provider_error_of(
    exception: BaseException, *, with_context: bool = True
) -> ProviderError | None:
    """Return the failure of an endpoint that an exception tells of, None where it tells of none.

    Searched are the exception, its causes, the members of groups, and, `with_context`, what was
    being handled when one of them was raised.
    """
    for cause in chain(exception, with_context=with_context):
        if isinstance(cause, ProviderError):
            return cause
        failure = _failure(cause)
        if failure is not None:
            return failure
    return None


def chain(exception: BaseException, *, with_context: bool = True) -> Iterator[BaseException]:
    """Yield an exception, the members of a group, its cause or context, and so on; each once."""
    seen: set[int] = set()
    waiting = [exception]
    while waiting and len(seen) < _DEPTH:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        with suppress(Exception):  # odd attributes of a class of the user's
            before = current.__cause__
            if before is None and with_context and not current.__suppress_context__:
                before = current.__context__
            members = getattr(current, "exceptions", ())
            waiting += [before] if before is not None else []
            waiting += reversed([one for one in members if isinstance(one, BaseException)])


def refusal(
    url: object,
    status: int,
    content: bytes = b"",
    *,
    headers: Mapping[str, str] | None = None,
    model: str = "",
    succeeded: bool = False,
) -> ProviderError:
    """Return the failure that a reply's status tells; `succeeded`: an earlier call did not fail."""
    policy = RetryPolicy(max_tries=1)
    fault = fault_of_status(status, headers or {}, content, model=model, policy=policy)
    return provider_error(fault, url, model=model, succeeded=succeeded)


def no_reply(url: object, error: BaseException, *, model: str = "") -> ProviderError | None:
    """Return the failure of a call without a whole reply; None: the caller's own doing."""
    kind = _kind_of_silence(error)
    if kind is None:
        return None
    root = [*chain(error)][-1]
    words = f"{type(root).__name__}: {root}" if str(root) else type(root).__name__
    summary = "no answer in time" if kind == "timeout" else ""
    return provider_error(CallFault(kind, words, summary=summary), url, model=model)


def provider_error(
    fault: CallFault, url: object, *, model: str = "", succeeded: bool = False
) -> ProviderError:
    """Return what users see of one call of a client of their own to `url`."""
    if fault.kind == "model_not_found" and not model and not fault.summary:
        fault.summary = str(fault.status)
    parts = urlsplit(str(url))
    where = parts.netloc.rpartition("@")[2] or str(url)
    origin = f"{parts.scheme}://{where}" if parts.netloc else where
    wording = Wording(
        where=where, origin=origin, model=model, key_name="", timeout_s=0.0, key_variable=None
    )
    return wording.error(CallFailed(fault, 1, 0.0), redact, succeeded=succeeded)


# ---- one exception


def _failure(error: BaseException) -> ProviderError | None:
    modules = {kind.__module__ for kind in type(error).__mro__}
    packages = {module.partition(".")[0] for module in modules}
    url, model = _asked(error)
    if "botocore" in packages:
        return _of_botocore(error, model)
    if packages & _CLIENTS or "google.genai.errors" in modules:
        return _of_client(error, url or _package(error), model)
    if isinstance(error, TypeError) and _NO_KEY.search(str(error)):  # Anthropic's
        return provider_error(CallFault("auth", str(error)), url or "the endpoint", model=model)
    client = _client_within(error)
    return no_reply(url or client, error, model=model) if client else None


def _of_client(error: BaseException, url: str, model: str) -> ProviderError | None:
    names = {kind.__name__ for kind in type(error).__mro__}
    if any(name.endswith(("ConnectionError", "TimeoutError", "Timeout")) for name in names):
        return no_reply(url, error, model=model)
    status, body = _status(error), _get(error, "body") or _get(error, "details")
    if status >= 400:
        failure = no_reply(url, error, model=model) if status == 500 and _is_lost(error) else None
        words = _text(error, body)
        return failure or refusal(url, status, words, headers=_headers(error), model=model)
    if "APIResponseValidationError" in names and "JSONSchemaValidationError" not in names:
        return provider_error(CallFault("protocol", str(error)), url, model=model)
    if type(error).__name__ in ("APIError", "APIStatusError"):  # within a stream
        document = body if isinstance(body, Mapping) else {"message": str(body or error)}
        error_object = document.get("error") or dict(document)
        fault = fault_of_error_object(error_object, model=model, policy=RetryPolicy())
        return provider_error(fault, url, model=model)
    if "OpenAIError" in names and _NO_KEY.search(str(error)):
        return provider_error(CallFault("auth", str(error)), url, model=model)
    return None


def _of_botocore(error: BaseException, model: str) -> ProviderError | None:
    reply = getattr(error, "response", None)
    if isinstance(reply, Mapping):
        operation = str(getattr(error, "operation_name", ""))
        if not _BEDROCK.search(operation):
            return None
        error_object = reply.get("Error") or {}
        metadata = reply.get("ResponseMetadata") or {}
        code, status = error_object.get("Code"), metadata.get("HTTPStatusCode")
        body = json.dumps({"error": {"message": error_object.get("Message"), "code": code}})
        if not isinstance(status, int) or status < 400:
            status = _AWS.get(str(code), 500)
        return refusal(f"Bedrock ({operation})", status, body.encode(), model=model)
    address = str((getattr(error, "kwargs", None) or {}).get("endpoint_url", ""))
    return no_reply(address, error, model=model) if _BEDROCK.search(address) else None


_AWS = {"throttlingException": 429, "validationException": 400}
"""Statuses of errors within Bedrock's streams, which have none."""


def _kind_of_silence(error: BaseException) -> ErrorKind | None:
    """Return what kept a client from a reply; None where it was no endpoint and no network."""
    causes = [*chain(error)]
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    is_moved = any(
        "event loop" in str(cause).lower() for cause in causes if type(cause) is RuntimeError
    )
    if is_moved or names & _OWN_REQUEST:
        return None
    root = type(causes[-1])
    known = _NETWORK | _CLIENTS | {"botocore"}
    if not (issubclass(root, OSError | TimeoutError) or _top(root.__module__) in known):
        return None  # a hook of the client's, its transport, its authentication
    if "SSLCertVerificationError" in names:
        return "tls"
    if any(map(_REACHED_NOTHING.search, names)):
        return "unreachable"
    return "timeout" if any("Timeout" in name for name in names) else "connection"


def _is_lost(error: BaseException) -> bool:
    """Return whether a client made a status of an exchange that brought none: LiteLLM does."""
    below = [cause for cause in chain(error) if cause is not error]
    names = {type(cause).__name__ for cause in below}
    replied = {"HTTPStatusError", "ClientResponseError", "HTTPError"}
    if names & replied:
        return False
    return "APIConnectionError" in names or any(map(is_of_network, below))


def is_of_network(error: BaseException) -> bool:
    """Return whether an exception is a general HTTP client's, or the network's."""
    return _top(type(error).__module__) in _NETWORK or isinstance(error, OSError | TimeoutError)


def _client_within(error: BaseException) -> str:
    """Return which client let a network's exception pass, with no code of others below it."""
    if not is_of_network(error) or isinstance(error, asyncio.CancelledError):
        return ""  # one that is cancelled: by a deadline that the agent has set
    client = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        top = _top(module)
        if top in _PLAIN_CLIENTS or module.startswith("google.genai"):
            client = top
        elif top not in _NETWORK and top not in sys.stdlib_module_names:
            client = ""
    return client


def _top(module: str) -> str:
    return module.partition(".")[0]


def _status(error: BaseException) -> int:
    """Return the HTTP status that an exception tells, 0 without any."""
    places = (("status_code",), ("code",), ("response", "status_code"))
    statuses = (_get(error, *names) for names in places)
    known = (int(one) for one in statuses if isinstance(one, int) and 100 <= one < 600)
    return next(known, 0)


def _text(error: BaseException, body: Any) -> bytes:
    """Return an endpoint's words, without those that LiteLLM puts before and behind them."""
    if isinstance(body, Mapping | list):
        return json.dumps(body, default=str).encode()
    text = str(body or _get(error, "message") or error)
    if (prefix := _OF_LITELLM.match(text)) is not None:
        text = text[prefix.end() :]
        with suppress(ValueError):
            text = json.dumps(json.JSONDecoder().raw_decode(text)[0])
    return text.encode("utf-8", "replace")


_OF_LITELLM = re.compile(r"litellm\.\w+: (?:.{0,200}?\w+(?:Exception|Error) - )?", re.DOTALL)


def _headers(error: BaseException) -> Mapping[str, str]:
    headers = _get(error, "response", "headers")
    return {str(name).lower(): str(headers[name]) for name in headers or ()}


def _asked(error: BaseException) -> tuple[str, str]:
    """Return where the request went and which model it named, each empty where unknown."""
    url = model = ""
    for cause in chain(error):
        named = _get(cause, "model") or _get(cause, "model_name")
        if isinstance(named, str):
            model = model or named
        if _top(type(cause).__module__) == "litellm":  # its requests are made up
            continue
        url = url or str(_get(cause, "request", "url") or _get(cause, "response", "url") or "")
        model = model or _named(_get(cause, "request", "content"))
    return url, model


def _named(content: Any) -> str:
    try:
        return str(json.loads(content)["model"])
    except (KeyError, TypeError, ValueError):
        return ""


def _get(value: Any, *names: str) -> Any:
    """Return an attribute of an attribute; None where there is none, or it cannot be had."""
    for name in names:
        try:
            value = getattr(value, name, None)
        except RuntimeError:  # httpx, of a request that was not set, or not read
            return None
    return value


def _package(error: BaseException) -> str:
    provider = _get(error, "llm_provider")
    return provider if isinstance(provider, str) and provider else _top(type(error).__module__)
