"""Who may ask: the bearer key, and what stands in for it where there is none.

Looks at a request's head alone, so it decides before a body is read. Every wrong key gets the same
answer in the same time.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from ...secret import Secret
from ..api_key import validate_api_key
from .messages import Refused

_BEARER = b"bearer "


class Access:
    """Lets requests with the key through; without a key, those of programs on this machine."""

    def __init__(self, key: Secret | None) -> None:
        self._key = key
        self.has_key = key is not None

    def check(self, scope: Mapping[str, Any]) -> None:
        """Raise Refused unless the request may be served."""
        if self._key is None:
            _check_local(scope)
            return
        given = list(_values(scope, b"authorization"))
        only = given[0] if len(given) == 1 else b""
        token = only[len(_BEARER) :] if only[: len(_BEARER)].lower() == _BEARER else b""
        if not validate_api_key(token.decode("latin-1"), self._key.reveal()):
            raise Refused(
                401,
                "unauthorized",
                "send the server's API key as `Authorization: Bearer <key>`",
                headers={"www-authenticate": "Bearer"},
                hang_up=True,
            )


def _check_local(scope: Mapping[str, Any]) -> None:
    server = scope.get("server")
    here = _address(str(server[0])) if server else None
    if here is None:
        return  # no address: a socket file, or a test that calls the application itself
    if not here.is_loopback:
        message = (
            "this server has no API key, so it only answers on loopback: set "
            "OSMOSIS_SERVER_API_KEY, or give create_app an api_key"
        )
        raise Refused(403, "no_api_key", message, hang_up=True)
    # A page in a browser can reach loopback too, under a name that its owner points there.
    if any(True for _ in _values(scope, b"origin")):
        raise Refused(403, "browser", "requests from web pages are not served", hang_up=True)
    for host in _values(scope, b"host"):
        if not _is_local_name(host.decode("latin-1")):
            message = "without an API key the Host header must name this machine"
            raise Refused(403, "foreign_host", message, hang_up=True)


def _values(scope: Mapping[str, Any], wanted: bytes) -> Iterator[bytes]:
    return (value for name, value in scope["headers"] if name == wanted)


def _is_local_name(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name.lower() == "localhost" or _address(name.strip("[]")) is not None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
