"""Calls through LiteLLM: the only module that imports it.

LiteLLM takes seconds to import, so the first request imports it. Its banner, log records,
telemetry, `.env` and price download are disabled. It guesses what went wrong, so
its HTTP goes through our transport and its exceptions count only where nothing was sent. Other uses
of LiteLLM in the same process are left as they were.

Knows neither retries nor deadlines over several tries, neither judges nor agents.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

from ...providers import ModelName
from ...secret import Secret
from ..base import CallFault
from ..errors import UNSUPPORTED
from ..retry import RetryPolicy
from .reading import Answer, read_answer

if TYPE_CHECKING:
    from ..transport.client import HTTPClient
    from .transport import Exchange

_OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
}
_LOGGERS = (
    "LiteLLM",
    "LiteLLM Proxy",
    "LiteLLM Router",
    "httpx",
    "openai._base_client",
    "openai._legacy_response",
    "openai._response",
)
_PREPARATION_S = 30.0
"""Time that LiteLLM may take before its first request, mostly for imports."""

_CHAT_ROUTES = {"ollama": "ollama_chat"}
"""Providers whose chat API LiteLLM reaches by another name: the plain one pastes a prompt."""

_WARNINGS = (
    (".*`ReadOnly` qualifier", ""),
    ("Pydantic serializer warnings", ""),
    (".*conflict with protected namespace", ""),
    (".*attribute on the instance is deprecated", ""),
    ("", r"(litellm|openai)(\.|$)"),
)
"""Warnings that LiteLLM causes, by message and by module: it imports most of itself during a call,
where `-W error` would raise them."""

_TRANSPORT_FACTORIES = ("create_async_transport", "_create_async_transport")

_inside: ContextVar[bool] = ContextVar("osmosis_inside_litellm", default=False)
_loading = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request to a provider."""

    name: ModelName
    messages: Sequence[Mapping[str, Any]]
    api_key: Secret | None
    api_base: str | None
    params: Mapping[str, Any]
    """Other fields of the request: `tools`, `temperature`, `response_format`, ..."""


class LiteLLMClient:
    """Asks through LiteLLM, within one running event loop."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._client: HTTPClient | None = None
        self._abandoned: set[asyncio.Task[Any]] = set()
        self.host = ""
        """Where the last request went, printable; empty before the first."""
        self.replied = False

    async def ask(self, question: Question, timeout_s: float) -> Answer:
        """Return the answer within `timeout_s` of the request's start; raise CallFault."""
        litellm = await _library()
        _check_provider(litellm, question.name)
        exchange = self._exchange(question)
        error: Exception | None = None
        response: Any = None
        asking = asyncio.ensure_future(_ask(litellm, question, exchange))
        try:
            await _ended(asking, exchange, timeout_s)
            if asking.done():
                response = asking.result()
        except Exception as caught:  # noqa: BLE001  # whatever LiteLLM raises becomes a CallFault
            error = caught
        finally:
            if not asking.done():
                self._abandon(asking, exchange)
            self.host = exchange.host or self.host
            self.replied = self.replied or exchange.replied
        if not asking.done():
            raise CallFault("timeout", "deadline reached without an answer", retried=True)
        return read_answer(exchange, response, error)

    def _abandon(self, asking: asyncio.Task[Any], exchange: Exchange) -> None:
        """End a call without a caller: at once, or as soon as it would send its request.

        Cancelled before its request, LiteLLM leaves a coroutine that was never awaited, of which
        Python warns on standard error.
        """
        exchange.abandoned = True
        self._abandoned.add(asking)
        asking.add_done_callback(self._forget)
        if exchange.begun.is_set():
            asking.cancel()

    def _forget(self, asking: asyncio.Task[Any]) -> None:
        self._abandoned.discard(asking)
        if not asking.cancelled():
            asking.exception()  # retrieved, or else asyncio prints it

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        if self._abandoned:
            await asyncio.wait(self._abandoned, timeout=_PREPARATION_S)
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _exchange(self, question: Question) -> Exchange:
        from .transport import Exchange, open_client  # imports aiohttp and httpx

        if self._client is None:
            self._client = open_client()
        return Exchange(
            client=self._client,
            model=question.name.model,
            turn=len(question.messages),
            policy=self._policy,
        )


async def import_ahead() -> None:
    """Import LiteLLM now, off the event loop; the first request reports why it cannot be."""
    with suppress(CallFault):
        await _library()


async def _library() -> Any:
    if _imported.cache_info().currsize:
        return load()
    try:
        return await asyncio.to_thread(load)
    except UnsupportedLiteLLM as error:
        detail = str(error)
    except ImportError as error:
        detail = f"LiteLLM cannot be imported ({error}): pip install -U litellm"
    raise CallFault("bad_request", detail, reason=UNSUPPORTED)


def load() -> Any:
    """Return LiteLLM, imported without output and network; safe to call from any thread."""
    with _loading:
        return _imported()


@cache
def _imported() -> Any:
    for variable, value in _OFFLINE.items():
        os.environ.setdefault(variable, value)
    log_filter = _LogFilter()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(log_filter)
    with _silenced(), _without_dotenv(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    _replace_transport(AsyncHTTPHandler)
    return litellm


class _LogFilter(logging.Filter):
    """Drops the records of our own calls, and nothing else."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _inside.get()


@contextmanager
def _silenced() -> Iterator[None]:
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


@contextmanager
def _without_dotenv() -> Iterator[None]:
    """Prevent LiteLLM from loading a `.env` of the working directory into the environment."""
    before = os.environ.get("LITELLM_MODE")
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LITELLM_MODE"]
        else:
            os.environ["LITELLM_MODE"] = before


def _ignore_its_warnings() -> None:
    """Add the warning filters again: pytest resets them after each test, for example."""
    known = {(_pattern(entry[1]), _pattern(entry[3])) for entry in warnings.filters}
    for message, module in _WARNINGS:
        if (message, module) not in known:
            warnings.filterwarnings("ignore", message=message, module=module)


def _pattern(compiled: Any) -> str:
    return getattr(compiled, "pattern", compiled) or ""


class UnsupportedLiteLLM(ImportError):
    """A version of LiteLLM whose HTTP cannot be sent through our transport."""


def _replace_transport(handler: Any) -> None:
    """Put our transport where LiteLLM makes its own, for OpenAI's client and all others alike.

    LiteLLM's own transport takes the key along to where a redirect points: without a place for ours
    nothing may be sent.
    """
    from .transport import Transport

    def replaced(original: Callable[..., Any]) -> Callable[..., Transport]:
        return lambda *args, **kwargs: Transport(original(*args, **kwargs))

    names = [name for name in _TRANSPORT_FACTORIES if hasattr(handler, name)]
    if not names:
        raise UnsupportedLiteLLM(
            "this version of LiteLLM has none of the functions that make its HTTP transport "
            f"({', '.join(_TRANSPORT_FACTORIES)}), so its requests cannot be guarded: install "
            "another version of litellm, or give the endpoint's address (--osmosis-base-url)"
        )
    for name in names:
        setattr(handler, name, staticmethod(replaced(getattr(handler, name))))


def _check_provider(litellm: Any, name: ModelName) -> None:
    known = [str(getattr(provider, "value", provider)) for provider in litellm.provider_list]
    if name.provider in known:
        return
    close = get_close_matches(name.provider, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    detail = f"LiteLLM knows no provider {name.provider!r}{hint}"
    raise CallFault("bad_request", detail, reason=UNSUPPORTED)


async def _ended(asking: asyncio.Task[Any], exchange: Exchange, timeout_s: float) -> None:
    """Wait for the call: for its preparation first, then for `timeout_s`."""
    begun = asyncio.ensure_future(exchange.begun.wait())
    try:
        limit_s = max(timeout_s, _PREPARATION_S)
        await asyncio.wait({asking, begun}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        begun.cancel()
    if exchange.begun.is_set() and not asking.done():
        await asyncio.wait({asking}, timeout=timeout_s)


async def _ask(litellm: Any, question: Question, exchange: Exchange) -> Any:
    from .transport import current

    _ignore_its_warnings()
    with _silenced(), _set(current, exchange), _set(_internal_call(), True):
        return await litellm.acompletion(**_arguments(question))


@contextmanager
def _set(variable: ContextVar[Any], value: object) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _internal_call() -> ContextVar[Any]:
    """Return LiteLLM's mark for calls that it does not log: its log worker outlives event loops."""
    try:
        from litellm._internal_context import is_internal_call
    except ImportError:  # a version without the mark
        return _inside
    return is_internal_call


def _arguments(question: Question) -> dict[str, Any]:
    route = _CHAT_ROUTES.get(question.name.provider, question.name.provider)
    arguments = {
        **question.params,
        "model": f"{route}/{question.name.model}",
        "messages": [dict(message) for message in question.messages],
        "max_retries": 0,
        "num_retries": 0,
    }
    if question.api_key is not None:
        arguments["api_key"] = question.api_key.reveal()
    if question.api_base is not None:
        arguments["api_base"] = question.api_base
    if question.params.get("tools"):
        # LiteLLM looks for MCP tools among them with a package that it does not install.
        arguments["_skip_mcp_handler"] = True
    return arguments
