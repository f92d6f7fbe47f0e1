"""Requests to trainers, over connections to the addresses that were checked.

Never resolves a name, follows a redirect or asks a proxy. Belongs to one event loop. Knows neither
what is sent nor when to try again.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextvars import ContextVar

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from ...models.transport.client import HTTPClient
from ...models.transport.exchange import JSON_HEADERS, ClientClosed, Reply, TransportError
from .address_policy import Trainer

_addresses: ContextVar[tuple[str, ...]] = ContextVar("osmosis_trainer_addresses")


class _PinnedResolver(AbstractResolver):
    """Answers with the addresses of the trainer that is being called."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the checked addresses; nothing is looked up."""
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in _addresses.get()
        ]

    async def close(self) -> None:
        """Nothing to close."""


class TrainerClient:
    """An HTTP client for all trainers of one event loop; made where it is first used."""

    def __init__(self, size: int) -> None:
        self._client = HTTPClient(size=size, resolver=_PinnedResolver())

    async def post(
        self,
        trainer: Trainer,
        path: str,
        body: bytes,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> Reply:
        """Return the whole reply; raise TransportError, at the deadline at the latest."""
        token = _addresses.set(trainer.addresses)
        try:
            return await self._client.request(
                URL(f"{trainer}{path}", encoded=True),
                body,
                headers={**JSON_HEADERS, **headers},
                timeout_s=timeout_s,
            )
        except ClientClosed:
            raise TransportError("connection", "the server is shutting down") from None
        finally:
            _addresses.reset(token)

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        await self._client.aclose()
