"""One request and its answer, within limits of time and size, over httpx.

Knows no retries and no API. Redirects are not followed; the proxies of the environment are used,
but not for this machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from ..models.retry import parse_retry_after
from . import platform_errors as errors
from .address import is_loopback
from .platform_errors import CallSubject, PlatformAnswer, PlatformError

if TYPE_CHECKING:
    import httpx


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


class Exchanges:
    """Sends requests, and keeps their connections."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._opened: dict[tuple[bool, bool], httpx.Client] = {}

    def close(self) -> None:
        """Close every connection; harmless when repeated."""
        while self._opened:
            self._opened.popitem()[1].close()

    def send(
        self,
        call: CallSubject,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | Iterator[bytes] | None = None,
        is_file: bool = False,
        sink: IO[bytes] | None = None,
    ) -> PlatformAnswer:
        """Return the answer, its body in `sink` when it is a success; raise PlatformError.

        `is_file`: the request or its answer is a file, which has limits of its own.
        """
        import httpx

        limits = self._limits
        timeout = httpx.Timeout(limits.read_s, connect=limits.connect_s).as_dict()
        extensions = {"timeout": timeout}
        limit_s = limits.file_s if is_file else limits.answer_s
        started = self._clock()
        try:
            request = httpx.Request(
                method, url, headers=headers, content=content, extensions=extensions
            )
            with closing(self._http(url).send(request, stream=True)) as response:
                answer = self._read(response, call, started, limit_s, sink)
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            raise errors.timed_out(call, limits.connect_s, was_sent=False) from None
        except httpx.TimeoutException:
            raise errors.timed_out(call, limits.read_s) from None
        except (httpx.ConnectError, httpx.ProxyError, httpx.InvalidURL) as error:
            raise errors.unreachable(call, error, was_sent=False) from None
        except httpx.HTTPError as error:
            raise errors.unreachable(call, error, was_sent=True) from None
        if not 200 <= answer.status < 300:
            raise errors.refusal(answer, call, parse_retry_after(answer.headers))
        return answer

    def _read(
        self,
        response: httpx.Response,
        call: CallSubject,
        started: float,
        limit_s: float,
        sink: IO[bytes] | None,
    ) -> PlatformAnswer:
        answer = PlatformAnswer(
            status=response.status_code, headers=dict(response.headers), body=b""
        )
        to_file = sink is not None and response.is_success
        limit = self._limits.file_bytes if to_file else self._limits.answer_bytes
        size, chunks = 0, []
        for chunk in response.iter_bytes():  # as they arrive: a size would have it wait
            size += len(chunk)
            if size > limit:
                raise errors.too_large(answer, call, limit)
            if self._clock() - started > limit_s:
                raise errors.timed_out(call, limit_s)
            if to_file and sink is not None:
                sink.write(chunk)
            else:
                chunks.append(chunk)
        return PlatformAnswer(status=answer.status, headers=answer.headers, body=b"".join(chunks))

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
