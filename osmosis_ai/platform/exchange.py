"""One request and its answer, within limits of time and size, over httpx.

Knows no retries and no API. Redirects are not followed; the proxies of the environment are used,
but not for this machine.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..models.retry import parse_retry_after
from . import platform_errors as errors
from .address import is_loopback
from .platform_errors import Answer, Call, PlatformError

if TYPE_CHECKING:
    import httpx

Trace = Callable[[str, Mapping[str, Any]], None]
_CONNECTED = ("connect_tcp.complete", "start_tls.complete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how large a request and its answer may be, and how often it is tried."""

    connect_s: float = 10.0
    read_s: float = 30.0
    """Longest silence within an answer."""
    answer_s: float = 60.0
    """An answer of one try, to its end."""
    answer_bytes: int = 8 << 20
    file_s: float = 1800.0
    """A file, to its end."""
    file_bytes: int = 512 << 20
    tries: int = 4
    tries_s: float = 45.0
    """After so long no other try begins."""
    longest_pause_s: float = 30.0
    """A platform that asks for a longer one is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | Iterator[bytes] | None = None
    is_file: bool = False
    """Whether it or its answer is a file, which has limits of its own."""


class Deadline:
    """Whether the time of a request is up, and the connection to shut down then.

    The limits of httpx are for each read: a server that sends a byte now and then keeps them for
    hours. Which connection to shut down comes from the `trace` extension of httpx; one that is used
    again was noted before.
    """

    def __init__(self, connection: socket.socket | None) -> None:
        self.connection = connection
        self.is_over = False
        self._lock = threading.Lock()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Take note of a new connection; httpx calls this with all that happens."""
        if not event.endswith(_CONNECTED):
            return
        found = info["return_value"].get_extra_info("socket")
        with self._lock:
            self.connection = found if isinstance(found, socket.socket) else None
            if self.is_over:
                self._shut_down()

    def expire(self) -> None:
        """End the request."""
        with self._lock:
            self.is_over = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self.connection is not None:
            with contextlib.suppress(OSError):  # it is closed already
                self.connection.shutdown(socket.SHUT_RDWR)


class Deadlines:
    """Time limits of requests that follow one another; keeps the connection of each origin."""

    def __init__(self) -> None:
        self._connections: dict[str, socket.socket | None] = {}

    @contextlib.contextmanager
    def within(self, seconds: float, origin: str) -> Iterator[Deadline]:
        """Shut the connection down when what is inside takes longer."""
        deadline = Deadline(self._connections.get(origin))
        timer = threading.Timer(seconds, deadline.expire)
        timer.daemon = True
        timer.start()
        try:
            yield deadline
        finally:
            timer.cancel()
            self._connections[origin] = deadline.connection


class Exchanges:
    """Sends requests, and keeps their connections."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._deadlines = Deadlines()
        self._opened: dict[tuple[bool, bool], httpx.Client] = {}

    def close(self) -> None:
        """Close every connection; harmless when repeated."""
        while self._opened:
            self._opened.popitem()[1].close()

    def send(self, call: Call, outgoing: Outgoing, sink: IO[bytes] | None = None) -> Answer:
        """Return the answer, its body in `sink` when it is a success; raise PlatformError."""
        if outgoing.is_file:  # limited by silence and, as it arrives, by the clock
            answer = self._answered(call, outgoing, sink)
        else:
            answer = self._in_time(call, outgoing)
        if not 200 <= answer.status < 300:
            raise errors.refusal(answer, call, parse_retry_after(answer.headers))
        return answer

    def _in_time(self, call: Call, outgoing: Outgoing) -> Answer:
        with self._deadlines.within(self._limits.answer_s, call.origin) as deadline:
            try:
                answer = self._answered(call, outgoing, None, trace=deadline.trace)
            except PlatformError as error:
                if deadline.is_over and error.code == "unreachable":
                    raise errors.too_slow(call) from None
                raise
        if deadline.is_over:  # what was cut off may look like an end
            raise errors.too_slow(call)
        return answer

    def _answered(
        self,
        call: Call,
        outgoing: Outgoing,
        sink: IO[bytes] | None,
        trace: Trace | None = None,
    ) -> Answer:
        import httpx

        try:
            return self._sent(call, outgoing, sink, trace)
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            raise errors.timed_out(call, self._limits.connect_s, was_sent=False) from None
        except httpx.TimeoutException:
            raise errors.timed_out(call, self._limits.read_s) from None
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise errors.unreachable(call, error, was_sent=False) from None
        except httpx.HTTPError as error:
            raise errors.unreachable(call, error, was_sent=True) from None
        except httpx.InvalidURL:
            raise errors.unusable_address(call) from None

    def _sent(
        self, call: Call, outgoing: Outgoing, sink: IO[bytes] | None, trace: Trace | None
    ) -> Answer:
        import httpx

        timeout = httpx.Timeout(self._limits.read_s, connect=self._limits.connect_s)
        request = httpx.Request(
            outgoing.method,
            outgoing.url,
            headers=outgoing.headers,
            content=outgoing.content,
            extensions={"timeout": timeout.as_dict(), **({"trace": trace} if trace else {})},
        )
        limit_s = self._limits.file_s if outgoing.is_file else self._limits.answer_s
        deadline = self._clock() + limit_s
        response = self._http(outgoing.url).send(request, stream=True)
        try:
            return self._read(response, call, deadline, sink)
        finally:
            response.close()

    def _read(
        self, response: httpx.Response, call: Call, deadline: float, sink: IO[bytes] | None
    ) -> Answer:
        answer = Answer(status=response.status_code, headers=dict(response.headers), body=b"")
        to_file = sink is not None and response.is_success
        limit = self._limits.file_bytes if to_file else self._limits.answer_bytes
        size, chunks = 0, []
        for chunk in response.iter_bytes():  # as they arrive: a size would have it wait
            size += len(chunk)
            if size > limit:
                raise errors.too_large(answer, call, limit)
            if self._clock() > deadline:
                raise errors.too_slow(call)
            if to_file and sink is not None:
                sink.write(chunk)
            else:
                chunks.append(chunk)
        return Answer(status=answer.status, headers=answer.headers, body=b"".join(chunks))

    def _http(self, url: str) -> httpx.Client:
        import httpx

        parts = urlsplit(url)
        uses_proxy = not is_loopback(parts.hostname or "")
        # Certificates take 0.1 s to load; plain http on this machine needs none.
        uses_tls = uses_proxy or parts.scheme == "https"
        kind = (uses_proxy, uses_tls)
        if kind not in self._opened:
            try:
                # SSL_CERT_FILE counts for this machine too, where proxies do not.
                verify = httpx.create_ssl_context() if uses_tls else False
                self._opened[kind] = httpx.Client(
                    trust_env=uses_proxy, verify=verify, follow_redirects=False
                )
            except (ValueError, ImportError, httpx.InvalidURL, OSError):
                raise PlatformError(
                    "the proxy or the certificates in the environment cannot be used: look at "
                    "HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
                    code="unreachable",
                    was_sent=False,
                ) from None
        return self._opened[kind]
