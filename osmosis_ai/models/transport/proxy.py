"""The proxy that the environment names for an endpoint.

Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` in upper and lower case, as curl does.
Loopback endpoints are never reached through a proxy. Knows no connections.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from ...secret import Secret
from .base_url import BaseURL
from .exchange import TransportError


@dataclass(frozen=True, slots=True)
class Proxy:
    """An http proxy; printable."""

    host: str
    port: int
    variable: str
    """The environment variable that named it."""
    authorization: Secret | None = None
    """Value of `Proxy-Authorization`."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port} ({self.variable})"


def find_proxy(address: BaseURL, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy, None to go direct; ValueError names the variable, not its value."""
    if address.is_loopback:
        return None
    for variable in _variables(address.scheme, environ):
        value = environ.get(variable, "").strip()
        if value:
            return None if _is_exempt(address, environ) else _parsed(value, variable)
    return None


def _variables(scheme: str, environ: Mapping[str, str]) -> Iterator[str]:
    yield f"{scheme}_proxy"
    # A CGI server sets HTTP_PROXY from a request's `Proxy:` header: the sender is a stranger.
    if not (scheme == "http" and "REQUEST_METHOD" in environ):
        yield f"{scheme.upper()}_PROXY"
    yield "all_proxy"
    yield "ALL_PROXY"


def _parsed(value: str, variable: str) -> Proxy:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host:
        raise ValueError(f"{variable} is not a proxy's address: write http://host:port")
    if parts.scheme != "http":
        raise ValueError(
            f"{variable} names a proxy of the kind {parts.scheme}://, which is not supported: "
            f"use an http:// proxy, or add the endpoint's host to NO_PROXY"
        )
    return Proxy(
        host=host,
        port=port or 80,
        variable=variable,
        authorization=_authorization(parts.username, parts.password, variable),
    )


def _authorization(user: str | None, password: str | None, variable: str) -> Secret | None:
    if user is None:
        return None
    pair = f"{unquote(user)}:{unquote(password or '')}".encode()
    return Secret("Basic " + base64.b64encode(pair).decode("ascii"), name=variable)


def _is_exempt(address: BaseURL, environ: Mapping[str, str]) -> bool:
    listed = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    entries = (entry.strip().lower() for entry in listed.replace(" ", ",").split(","))
    return any(_matches(entry, address) for entry in entries if entry)


def _matches(entry: str, address: BaseURL) -> bool:
    if entry == "*":
        return True
    entry = entry.partition("://")[2] or entry
    if "/" in entry:
        return _in_network(address.host, entry)
    host, _, port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    if port and port != str(address.port):
        return False
    name = (host or entry).strip("[]").removeprefix("*").strip(".")
    return bool(name) and (address.host == name or address.host.endswith("." + name))


def _in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def unreachable(detail: str, proxy: Proxy | None) -> TransportError:
    """Return the fault of an endpoint that cannot be connected to."""
    if proxy is not None:
        detail += f", through the proxy {proxy}; add the host to NO_PROXY to go direct"
    return TransportError("unreachable", detail)
