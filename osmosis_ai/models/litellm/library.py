"""LiteLLM itself: the only module that imports it.

It takes seconds to import, so the first request imports it. Its banner, log records, telemetry,
`.env` and price download are disabled, and its HTTP goes through our transport. Other uses of
LiteLLM in the same process are left as they were.

Knows neither what is asked nor how to read the answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from ...providers import parse_model_name
from ..errors import UNSUPPORTED, CallFault
from . import filter_renewals

if TYPE_CHECKING:
    from ..base import Usage
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


async def import_ahead() -> None:
    """Import LiteLLM now, off the event loop; the first request reports why it cannot be."""
    with suppress(CallFault):
        await loaded()


async def loaded() -> Any:
    """Return LiteLLM, imported off the event loop; raise CallFault where it cannot be."""
    if _imported.cache_info().currsize:
        return load()
    try:
        return await asyncio.to_thread(load)
    except UnsupportedLiteLLM as error:
        detail = str(error)
    except ImportError as error:
        detail = f"LiteLLM cannot be imported ({error}): pip install -U litellm"
    except OSError as error:  # it loads certificates
        detail = f"LiteLLM cannot be imported ({error}): look at SSL_CERT_FILE"
    raise CallFault("bad_request", detail, reason=UNSUPPORTED)


async def complete(exchange: Exchange, arguments: Mapping[str, Any], path: str = "") -> Any:
    """Return LiteLLM's answer to one call, in silence and over the exchange.

    `path` names another API than chat completions.
    """
    from .transport import current

    ignore_its_warnings()
    with _set(_inside, True), _set(current, exchange), _set(_internal_call(), True):
        litellm = load()
        if path == "/responses":
            return await litellm.aresponses(**arguments)
        if path == "/messages":
            return await litellm.anthropic.messages.acreate(**arguments)
        if path == "/embeddings":
            return await litellm.aembedding(**arguments)
        return await litellm.acompletion(**arguments)


def has_api(path: str, provider: str, model: str) -> bool:
    """Return whether a provider itself has the API at a path, as far as LiteLLM knows."""
    if path == "/embeddings":
        return True  # LiteLLM says so itself where it knows none
    with _set(_inside, True):
        from litellm.types.utils import LlmProviders
        from litellm.utils import ProviderConfigManager as Known

        found = (
            Known.get_provider_responses_api_config
            if path == "/responses"
            else Known.get_provider_anthropic_messages_config
        )
        return found(provider=LlmProviders(provider), model=model) is not None


def is_ours() -> bool:
    """Return whether the running code is within a call of ours."""
    return _inside.get()


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
    with _set(_inside, True), _without_dotenv(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    _replace_transport(AsyncHTTPHandler)
    filter_renewals.append(ignore_its_warnings)
    return litellm


class _LogFilter(logging.Filter):
    """Drops the records of our own calls, and nothing else."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _inside.get()


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


def ignore_its_warnings() -> None:
    """Add the warning filters again: pytest resets them before each test, for example."""
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
    mark: ContextVar[Any] = is_internal_call
    return mark


def price_of(model: str, usage: Usage) -> float | None:
    """Return the dollars of a call of `provider/model`; None where its price is not known."""
    try:
        litellm = load()
        details = {"cached_tokens": usage.cached_tokens or 0}
        counted = litellm.Usage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
            prompt_tokens_details=details,
        )
        costs = litellm.cost_per_token(model=model, usage_object=counted)
    except Exception:  # noqa: BLE001 - LiteLLM raises plain exceptions for what it does not know
        return None
    return float(sum(costs))


def has_price(model: str) -> bool:
    """Return whether the price of `provider/model` is known; LiteLLM is imported for it."""
    name = parse_model_name(model)
    try:
        info = load().get_model_info(name.model, custom_llm_provider=name.provider)
    except Exception:  # noqa: BLE001 - LiteLLM raises plain exceptions for what it does not know
        return False
    return bool(info.get("input_cost_per_token") or info.get("output_cost_per_token"))
