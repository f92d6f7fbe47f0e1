"""Which trainers may be called, and at which address.

An origin is `scheme://host[:port]`. With a list of origins only those are called, wherever they
are; without one any public address is; `anywhere` lifts that. A name is resolved only here, and
connections go to the addresses that were checked. Opens no connection.

    Exception
    ├── TrainerRefused     the rules forbid it, or it is no address
    └── TrainerUnknown     its name cannot be resolved at the moment
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ...models.transport.base_url import DEFAULT_PORTS, BaseURL

RESOLVE_TIMEOUT_S = 5.0
CACHE_S = 15.0
"""A thousand rollouts of one trainer ask for its name once."""
_CACHE_SIZE = 256


_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # Azure's platform services
            "192.0.0.0/24",  # protocol assignments; Oracle's metadata
            "192.88.99.0/24",  # 6to4 relays
            "2001::/23",  # protocol assignments, Teredo among them
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
        ),
    )
)
"""What `ipaddress` calls global, in some version of Python at least."""
_IPV6_PUBLIC = ipaddress.ip_network("2000::/3")
"""All that is given out for use on the internet; loopback, link-local, … are outside."""
_IPV4_INSIDE = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::ffff:0:0/96"))
"""NAT64 and mapped addresses: packets reach the IPv4 address in their last four bytes."""


class TrainerRefused(Exception):
    """The rules forbid to call it; `str()` is a sentence for the client."""


class TrainerUnknown(Exception):
    """Its name cannot be resolved now; it may be later."""


@dataclass(frozen=True, slots=True)
class Trainer(BaseURL):
    """The address of a trainer, resolved: all that a connection needs; `path` precedes `/v1`."""

    addresses: tuple[str, ...] = ()
    """What the host was resolved to, allowed and in the resolver's order."""


def check_origin(text: str) -> str:
    """Return `text` as a normalised origin; ValueError with a sentence when it is none."""
    try:
        trainer = parse_url(text)
    except TrainerRefused:
        trainer = None
    if trainer is None or trainer.path:
        example = "for example https://trainer.example.com or http://10.0.0.7:8080"
        raise ValueError(f"{text!r} is not a trainer's origin: write scheme://host:port, {example}")
    return trainer.origin


class TrainerRules:
    """Decides whether a URL may be called, and resolves it."""

    def __init__(self, origins: Iterable[str] = (), *, anywhere: bool = False) -> None:
        self._origins = frozenset(check_origin(origin) for origin in origins)
        self._anywhere = anywhere
        self._cache: dict[tuple[str, int], tuple[float, asyncio.Future[tuple[str, ...]]]] = {}

    async def locate(self, url: str, *, called: str = "server_url") -> Trainer:
        """Return the trainer behind `url`; raise TrainerRefused or TrainerUnknown.

        `called` is what a sentence says of the URL: the field of a request that has it.
        """
        named = parse_url(url, called=called)
        if self._origins and named.origin not in self._origins:
            raise TrainerRefused(f"{called} is not one of the trainers that this server may call")
        literal = _literal(named.host, named.port)
        try:
            addresses = literal or await self._resolve_cached(named.host, named.port)
        except TrainerUnknown as error:
            raise TrainerUnknown(f"{called} {error}") from None
        if not (self._origins or self._anywhere) and not all(map(is_public, addresses)):
            raise TrainerRefused(
                f"{called} does not lead to a public address; name the trainer's origin in "
                "OSMOSIS_ALLOWED_TRAINERS, or with `osmosis serve --allow-trainer`"
            )
        host = literal[0] if literal else named.host  # 127.1 becomes 127.0.0.1
        return Trainer(named.scheme, host, named.port, named.path, addresses=addresses)

    async def _resolve_cached(self, host: str, port: int) -> tuple[str, ...]:
        now = time.monotonic()
        until, addresses = self._cache.get((host, port), (0.0, None))
        if addresses is None or now >= until or (addresses.done() and addresses.exception()):
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            addresses = asyncio.ensure_future(_resolve(host, port))
            self._cache[host, port] = (now + CACHE_S, addresses)
        return await asyncio.shield(addresses)


def is_public(address: str) -> bool:
    """Return whether `address` names one machine on the whole internet."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if any(parsed in network for network in _IPV4_INSIDE):
        parsed = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
    if parsed.version == 6 and parsed not in _IPV6_PUBLIC:
        return False
    special = parsed.is_multicast or any(parsed in network for network in _SPECIAL)
    return parsed.is_global and not special


def parse_url(url: str, *, called: str = "server_url") -> Trainer:
    """Return the trainer that a URL names, its host not resolved; raise TrainerRefused."""
    refused = TrainerRefused(f"{called} must be an http or https URL with a host")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError is one
        raise refused from None
    host = host.rstrip(".")
    extra = "@" in parts.netloc or parts.query or parts.fragment or port == 0
    plain = url.isprintable() and " " not in url and not extra
    if parts.scheme not in DEFAULT_PORTS or not host or not plain:
        raise refused
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    return Trainer(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], path)


def _literal(host: str, port: int) -> tuple[str, ...]:
    """Return the address when `host` is one, in any spelling that the system's resolver takes."""
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except (socket.gaierror, UnicodeError):
        return ()
    return tuple(str(where[0]) for *_, where in addresses)


async def _resolve(host: str, port: int) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    asked = loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    try:
        addresses = await asyncio.wait_for(asked, RESOLVE_TIMEOUT_S)
    except (OSError, UnicodeError, asyncio.TimeoutError):
        raise TrainerUnknown("has a host that cannot be resolved (DNS)") from None
    return tuple(dict.fromkeys(str(where[0]) for *_, where in addresses))
