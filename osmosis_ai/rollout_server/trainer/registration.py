"""Registration of the server at the platform, once the server answers its health check.

A registration that fails is a warning with the next step: the server continues.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import socket
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from ...blocking import in_daemon_thread
from ...models.errors import clip
from ...platform.client import Limits, PlatformClient, PlatformError, cli_path
from ...secret import Redactor
from ..events import event

if TYPE_CHECKING:
    from ..settings import AppOptions, PlatformLogin, ServerSettings

TIMEOUT_S = 20.0
TRIES = 3
_LIMIT = 64 * 1024


class NotReady(Exception):
    """The server does not answer its own health check."""


async def register(options: AppOptions) -> None:
    """Register the server, if it has a login and an address; never raises."""
    login, host, port = options.login, options.host, options.port
    if login is None or host is None or port is None:
        return
    try:
        await _until_healthy(host, port, options.settings)
        answer = await _register(options, login, host, port)
    except (NotReady, PlatformError, ValueError) as error:
        event(
            "registration_failed",
            logging.WARNING,
            platform=login.platform_url,
            error=clip(Redactor([login.token, options.api_key])(str(error)), 300),
            next="the server runs all the same; use --skip-register to do without the platform",
        )
        return
    check = answer.get("health_check_result")
    event("registered", platform=login.platform_url, id=answer.get("id"), health_check=check)


async def _until_healthy(host: str, port: int, settings: ServerSettings) -> None:
    name = _reachable(host)
    url = f"http://[{name}]:{port}/health" if ":" in name else f"http://{name}:{port}/health"
    opener = build_opener(ProxyHandler({}))
    until = time.monotonic() + settings.ready_s
    while time.monotonic() < until:
        try:
            with await in_daemon_thread(opener.open, url, timeout=5.0):
                return
        except OSError:
            await asyncio.sleep(settings.ready_pause_s)
    raise NotReady(f"the server does not answer its own health check at {url}")


async def _register(
    options: AppOptions, login: PlatformLogin, host: str, port: int
) -> Mapping[str, Any]:
    document = {
        "host": await in_daemon_thread(_advertised, host, login.platform_url),
        "port": port,
        "agent_loop_name": options.agent.name,
        "api_key": options.api_key.reveal() if options.api_key else None,
    }
    return await in_daemon_thread(_send, login, document)


def _send(login: PlatformLogin, document: Mapping[str, Any]) -> Mapping[str, Any]:
    limits = Limits(answer_s=TIMEOUT_S, answer_bytes=_LIMIT, tries=TRIES)
    own = version("pytest-osmosis")
    with PlatformClient(
        login.platform_url, token=login.token, version=own, limits=limits
    ) as client:
        path = cli_path("rollout-server", "register")
        return client.post(path, document, idempotency_key=secrets.token_urlsafe(16))


def _reachable(host: str) -> str:
    """Return where this machine reaches a server that is bound to `host`."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def _advertised(host: str, platform_url: str) -> str:
    """Return `host`, or for every address the one from which this machine reaches the platform.

    Connecting a datagram socket sends nothing: it only asks the routing table.
    """
    if _reachable(host) == host:
        return host
    parts = urlsplit(platform_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, where = addresses[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(where)
            return str(probe.getsockname()[0])
    except OSError:
        return host
