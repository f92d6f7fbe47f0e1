"""Running the application under uvicorn, with deadlines for slow clients.

uvicorn has no limit on the time and size of a request's head; the protocol here has. Knows the
application only as ASGI.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_TIMEOUT_S = 10.0
MAX_HEAD_BYTES = 64 * 1024
MAX_REST_BYTES = 64 * 1024 * 1024
"""Of a body that is answered before it has come, and that its client may send to its end."""
CONNECTION_LIMIT = 8192
"""Connections beyond are answered with 503."""
BACKLOG = 2048
"""Connections that the system keeps until they are accepted."""
ACCEPTED_AT_ONCE = 8
"""A flood of new clients is taken in portions: those that are connected are answered between."""
KEEP_ALIVE_S = 75
"""Longer than any Retry-After: who waits for that finds its connection still there."""
SWITCH_INTERVAL_S = 0.00005
"""How long the agent's thread may keep the interpreter while the server has requests waiting. Each
read and write of the server releases it, so a request waits for this several times."""
RESERVED_FILES = 256
"""Open files that are left to everything but clients."""
GRACE_S = 5
"""How long a shutdown waits for requests that are being answered."""
_LOG = logging.getLogger(__name__)


class _LastWordTransport:
    """A transport that is closed only once its client has had time to read the last answer.

    A connection that is closed while a body comes is reset, and a reset takes the answer with it.
    """

    def __init__(self, transport: asyncio.Transport, end: Callable[[], bool]) -> None:
        """`end` returns whether what comes is passed over first."""
        self._transport = transport
        self._end = end
        self._is_ended = False

    def close(self) -> None:
        """Say that nothing more follows, and close where nothing more comes; else the next time."""
        if self._is_ended or not self._end():
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()
        self._is_ended = True

    def is_closing(self) -> bool:
        """Return whether nothing more can be sent."""
        return self._is_ended or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with a deadline and a size for the head of each request.

    The deadline is also that of what is left of a body once its request is answered: it is passed
    over, up to a size.
    """

    head_timeout_s = HEAD_TIMEOUT_S
    max_head_bytes = MAX_HEAD_BYTES
    max_rest_bytes = MAX_REST_BYTES

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first head."""
        super().connection_made(
            _LastWordTransport(transport, self._pass_over)  # type: ignore[arg-type]
        )
        self._head_bytes = 0
        self._in_head = True
        self._rest_bytes: int | None = None
        self._due: asyncio.TimerHandle | None = None
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._rest_bytes = 0  # nothing more comes
        self._head_came()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End without waiting for what is left of a body that is answered."""
        if getattr(self.cycle, "response_complete", False):
            self._rest_bytes = 0
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head, or to a body that is passed over; hang up at too much."""
        if self._rest_bytes is not None:
            self._rest_bytes += len(data)
            if self._rest_bytes > self.max_rest_bytes:
                self.transport.abort()
            return
        if self._in_head:
            self._expect_head()
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self.max_head_bytes:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End the deadline of the head."""
        self._head_came()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the next head follows."""
        self._head_came()
        super().on_message_complete()
        self._in_head = True
        self._head_bytes = 0

    def on_response_complete(self) -> None:
        """Start a deadline for the rest of a body that was answered before it came."""
        super().on_response_complete()
        if not self._in_head and self.cycle.response_complete and not self.transport.is_closing():
            self._expect_head()

    def _pass_over(self) -> bool:
        """Pass over what comes, if a body is under way; return whether it is."""
        if self._in_head or self._rest_bytes is not None:
            return False
        self._rest_bytes = 0
        self.flow.resume_reading()
        self._expect_head()
        return True

    def _expect_head(self) -> None:
        if self._due is None:
            self._due = self.loop.call_later(self.head_timeout_s, self.transport.abort)

    def _head_came(self) -> None:
        self._in_head = False
        if self._due is not None:
            self._due.cancel()
            self._due = None


class Server(uvicorn.Server):
    """uvicorn's server with a long queue of connections, of which few are accepted at once.

    asyncio accepts as many connections in one go as the queue is long, so it gets a short one
    first. With `owns_process` the interpreter also switches threads more often.
    """

    def __init__(self, config: uvicorn.Config, *, owns_process: bool = False) -> None:
        super().__init__(config)
        self._owns_process = owns_process

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then let the system keep more."""
        self.config.backlog = ACCEPTED_AT_ONCE
        await super().startup(sockets=sockets)
        for bound in sockets or ():
            bound.listen(BACKLOG)
        if self._owns_process:
            sys.setswitchinterval(SWITCH_INTERVAL_S)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that clients can connect to from now on, though they are answered only later.

    Raises OSError when the address is taken or not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    addresses = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)
    bound = socket.socket(*addresses[0][:3])
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(addresses[0][4])
        bound.listen(BACKLOG)
    except BaseException:
        bound.close()
        raise
    bound.set_inheritable(True)
    return bound


def configure(app: Callable[..., Any] | str, **options: Any) -> uvicorn.Config:
    """uvicorn's configuration for an application, or for the name of a function that makes one."""
    return uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=_connection_limit(),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        **options,
    )


def _connection_limit() -> int:
    """As many connections as there can be open files, after asking for more of those."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTION_LIMIT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTION_LIMIT
    wanted = CONNECTION_LIMIT + RESERVED_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError) as error:
            _LOG.debug("open files stay limited: %s", error)
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(16, min(CONNECTION_LIMIT, soft - RESERVED_FILES))
