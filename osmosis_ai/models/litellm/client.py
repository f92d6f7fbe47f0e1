"""One call through LiteLLM: within its time, and abandoned without a trace.

LiteLLM guesses what went wrong, so its exceptions count only where nothing was sent. Knows neither
retries nor deadlines over several tries, neither judges nor agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ...providers import ModelName, missing_address
from ...secret import Secret
from ..errors import UNSUPPORTED, CallFault
from ..retry import RetryPolicy
from ..transport import cassettes
from .library import complete, has_api, loaded
from .reading import ProviderAnswer, read_answer, read_other

if TYPE_CHECKING:
    from ..other_apis import OtherRequest
    from ..transport.model_client import ModelClient
    from .transport import Exchange

_PREPARATION_S = 30.0
"""Time that LiteLLM may take before its first request, mostly for imports."""

_MOST_CONNECTIONS = 1 << 16
_CHAT_ROUTES = {"ollama": "ollama_chat"}
"""Providers whose chat API LiteLLM reaches by another name: the plain one pastes a prompt."""


class LiteLLMClient:
    """Asks one model through LiteLLM, within one running event loop."""

    def __init__(
        self, name: ModelName, api_key: Secret | None, api_base: str | None, policy: RetryPolicy
    ) -> None:
        self._name = name
        self._api_key = api_key
        self._api_base = api_base
        self._policy = policy
        self._client: ModelClient | None = None
        self._abandoned: set[asyncio.Task[Any]] = set()
        self.host = ""
        """Where the last request went, printable; empty before the first."""
        self.replied = False

    async def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        params: Mapping[str, Any],
        timeout_s: float,
        other: OtherRequest | None = None,
    ) -> ProviderAnswer:
        """Return the answer within `timeout_s` of the request's start; raise CallFault.

        `params` are other fields of the request: `tools`, `temperature`, `response_format`, ...;
        with `other` all of them.
        """
        litellm = await loaded()
        _check_provider(litellm, self._name)
        _check_fallbacks(litellm)
        self._check_address()
        model, path = self._name.model, ""
        if other is not None:
            model, path = other.own_model or model, other.path
            _check_api(other, self._name.provider, model)
        arguments = {**params, **self._settings(model)}
        if other is None:
            arguments["messages"] = [dict(message) for message in messages]
        if params.get("tools"):
            # LiteLLM looks for MCP tools among them with a package that it does not install.
            arguments["_skip_mcp_handler"] = True
        exchange = self._exchange()
        error: Exception | None = None
        response: Any = None
        asking = asyncio.ensure_future(complete(exchange, arguments, path))
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
        if other is not None:
            return read_other(exchange, response, error, other, f"{self._name.provider}/{model}")
        return read_answer(exchange, response, error)

    def _check_address(self) -> None:
        provider = self._name.provider
        variable = None if self._api_base is not None else missing_address(provider)
        if variable is not None:
            detail = (
                f"{provider} has no address of its own: export {variable}, or give "
                "--osmosis-base-url"
            )
            raise CallFault("bad_request", detail, reason=UNSUPPORTED)

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

    def _exchange(self) -> Exchange:
        from ..transport.model_client import model_client  # imports aiohttp
        from .transport import Exchange  # imports httpx

        if self._client is None:
            self._client = model_client(size=_MOST_CONNECTIONS)
        return Exchange(client=self._client, model=self._name.model, policy=self._policy)

    def _settings(self, model: str) -> dict[str, Any]:
        """Return the arguments of every call."""
        provider = self._name.provider
        arguments: dict[str, Any] = {
            "model": f"{_CHAT_ROUTES.get(provider, provider)}/{model}",
            "max_retries": 0,
            "num_retries": 0,
            # A cache that the user's code gives LiteLLM would answer a row's second run.
            "cache": {"no-cache": True, "no-store": True},
        }
        if self._api_key is not None:
            arguments["api_key"] = self._api_key.reveal()
        elif cassettes.needs_no_key():
            arguments["api_key"] = "replayed"  # LiteLLM wants one before it makes a request
        if self._api_base is not None:
            arguments["api_base"] = self._api_base
        return arguments


def _check_provider(litellm: Any, name: ModelName) -> None:
    known = [str(getattr(provider, "value", provider)) for provider in litellm.provider_list]
    if name.provider in known:
        return
    close = get_close_matches(name.provider, [*known, "embedded"], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    detail = f"LiteLLM knows no provider {name.provider!r}{hint}"
    raise CallFault("bad_request", detail, reason=UNSUPPORTED)


def _check_api(other: OtherRequest, provider: str, model: str) -> None:
    if not has_api(other.path, provider, model):
        detail = (
            f"{provider} has no {other.api}, which the agent's client asks for: {other.instead}"
        )
        raise CallFault("bad_request", detail, reason=UNSUPPORTED)


def _check_fallbacks(litellm: Any) -> None:
    """Refuse models that LiteLLM would ask in this one's place, with its key, without an end.

    It takes `model_fallbacks` for each of the fallbacks again.
    """
    if getattr(litellm, "model_fallbacks", None) is not None:
        detail = (
            "litellm.model_fallbacks is set, so that other models would answer in the place of "
            "this one: set it to None"
        )
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
