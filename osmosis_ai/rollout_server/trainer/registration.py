"""Registration of the server at the platform, once the server answers its health check.

A registration that fails is a warning with the next step: the server goes on. The token is sent
only to the platform that issued it; redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import socket
import time
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from ...models.base import clip
from ...models.transport.base_url import is_loopback
from ...secret import Redactor
from ..events import event

if TYPE_CHECKING:
    from ..settings import AppOptions, PlatformLogin, ServerSettings

PATH = "/api/cli/rollout-server/register"
TIMEOUT_S = 20.0
TRIES = 3
PAUSE_S = 1.0
_LIMIT = 64 * 1024


class RegistrationFailed(Exception):
    """The platform refused the registration, or could not be reached."""


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


async def register(options: AppOptions) -> None:
    """Register the server, if it has a login and an address; never raises."""
    login, host, port = options.login, options.host, options.port
    if login is None or host is None or port is None:
        return
    secrets = [login.token, *([options.api_key] if options.api_key else [])]
    try:
        await _until_healthy(host, port, options.settings)
        answer = await _register(options, login, host, port)
    except (RegistrationFailed, OSError) as error:
        event(
            "registration_failed",
            logging.WARNING,
            platform=login.platform_url,
            error=clip(Redactor(secrets)(str(error)), 300),
            next="the server goes on; use --skip-register to do without the platform",
        )
        return
    check = answer.get("health_check_result")
    event("registered", platform=login.platform_url, id=answer.get("id"), health_check=check)


async def _until_healthy(host: str, port: int, settings: ServerSettings) -> None:
    url = f"http://{_netloc(_reachable(host), port)}/health"
    opener = build_opener(ProxyHandler({}), _NoRedirect())
    until = time.monotonic() + settings.ready_s
    while time.monotonic() < until:
        try:
            with await asyncio.to_thread(opener.open, url, timeout=5.0):
                return
        except OSError:
            await asyncio.sleep(settings.ready_pause_s)
    raise RegistrationFailed(f"the server does not answer its own health check at {url}")


async def _register(
    options: AppOptions, login: PlatformLogin, host: str, port: int
) -> Mapping[str, Any]:
    document = {
        "host": _advertised(host, login.platform_url),
        "port": port,
        "agent_loop_name": options.agent.name,
        "api_key": options.api_key.reveal() if options.api_key else None,
    }
    for attempt in range(1, TRIES + 1):
        try:
            return await asyncio.to_thread(_send, login, document)
        except _Passing as error:
            if attempt == TRIES:
                raise RegistrationFailed(str(error)) from None
            await asyncio.sleep(PAUSE_S * attempt)
    raise AssertionError("unreachable")


class _Passing(Exception):
    """Worth another try."""


def _send(login: PlatformLogin, document: Mapping[str, Any]) -> Mapping[str, Any]:
    request = Request(
        login.platform_url.rstrip("/") + PATH,
        data=json.dumps(document).encode("ascii"),
        headers={
            "Authorization": f"Bearer {login.token.reveal()}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            **_client_headers(),
        },
    )
    handlers: list[Any] = [_NoRedirect()]
    if is_loopback(urlsplit(login.platform_url).hostname or ""):
        handlers.append(ProxyHandler({}))
    try:
        with build_opener(*handlers).open(request, timeout=TIMEOUT_S) as reply:
            return _object(reply.read(_LIMIT))
    except HTTPError as error:
        with error:
            answer = f"the platform answered {error.code}: {_message(error.read(_LIMIT))}"
        if error.code >= 500:
            raise _Passing(answer) from None
        cure = "; set OSMOSIS_TOKEN to a valid token" if error.code == 401 else ""
        raise RegistrationFailed(answer + cure) from None
    except URLError as error:
        raise _Passing(f"the platform cannot be reached: {error.reason}") from None
    except OSError as error:
        raise _Passing(f"the platform cannot be reached: {error}") from None


def _client_headers() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("pytest-osmosis")
    except PackageNotFoundError:  # run from a source tree
        own = "unknown"
    return {"User-Agent": f"osmosis-cli/{own}", "X-Osmosis-CLI-Version": own}


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise RegistrationFailed("the platform's answer is not JSON") from None
    if not isinstance(found, dict):
        raise RegistrationFailed("the platform's answer is not a JSON object")
    return found


def _message(body: bytes) -> str:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
    message = (found.get("error") or found.get("message")) if isinstance(found, dict) else None
    return message if isinstance(message, str) else json.dumps(found)


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
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(where)
            return str(probe.getsockname()[0])
    except OSError:
        return host


def _netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
