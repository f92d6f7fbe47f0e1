"""The client of a model, or of a judge: of the network, of a cassette, or of both.

Imports aiohttp only where something may be sent.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from yarl import URL

from . import cassettes
from .exchange import MAX_BODY_BYTES, Reply
from .proxy import Proxy

if TYPE_CHECKING:
    from ..passing import Passing


class ModelClient(Protocol):
    """What asks a model; see `client.HTTPClient`."""

    async def request(
        self,
        url: URL,
        body: bytes,
        *,
        method: str = "POST",
        headers: Mapping[str, str],
        timeout_s: float | None = None,
        proxy: Proxy | None = None,
        passing: Passing | None = None,
    ) -> Reply:
        """Return the whole reply within `timeout_s`; raise CallFault or ClientClosed."""

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""


class _CassetteClient:
    """Gives the replies of a cassette, and keeps those of the network, if there is one."""

    def __init__(self, cassette: cassettes.Cassette, network: ModelClient | None) -> None:
        self._cassette = cassette
        self._network = network

    async def request(
        self,
        url: URL,
        body: bytes,
        *,
        method: str = "POST",
        **options: Any,
    ) -> Reply:
        """Return the recorded reply, else that of the network; raise CallFault without either."""
        reply = self._cassette.answer(method, url.path, body)
        if reply is None:
            assert self._network is not None
            reply = await self._network.request(url, body, method=method, **options)
            self._cassette.keep(method, url.path, body, reply)
        return reply

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        if self._network is not None:
            await self._network.aclose()


def model_client(*, size: int, secure: bool = False, max_body: int = MAX_BODY_BYTES) -> ModelClient:
    """Return the client of a model; ValueError: `secure`, and `SSL_CERT_FILE` is unusable."""
    cassette = cassettes.inserted
    if cassette is not None and cassette.is_complete:
        return _CassetteClient(cassette, None)
    from .client import HTTPClient, tls_context

    tls: ssl.SSLContext | None = tls_context() if secure else None
    network = HTTPClient(size=size, max_body=max_body, tls=tls)
    return network if cassette is None else _CassetteClient(cassette, network)
