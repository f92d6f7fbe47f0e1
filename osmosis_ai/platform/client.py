"""A client of a platform's HTTP API: requests, tries, answers and pages.

What may safely be sent twice is tried again, with jitter, after transport errors and the statuses
429 and 502 to 504: GET, PUT, DELETE, and a POST with an idempotency key. Redirects are not
followed, so that a token is sent to its own platform only. The proxies of the environment are used,
but not for this machine. An answer has a time limit and a size limit. Every failure is a
`PlatformError`. Knows the shape of no answer but that of a list.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from ..models.retry import RetryPolicy, parse_retry_after
from ..secret import Redactor, Secret
from . import platform_errors as errors
from .address import is_loopback, is_private, platform_origin
from .platform_errors import PASSING_STATUSES, CallSubject, PlatformAnswer, PlatformError
from .server_text import origin_of

if TYPE_CHECKING:
    import httpx

__all__ = ["Limits", "Listing", "PlatformClient", "PlatformError", "cli_path", "new_key"]

PAGE_SIZE = 100
MAX_PAGES = 1000
_SAFE = frozenset({"GET", "PUT", "DELETE"})
Params = Mapping[str, str | int]


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
class Listing:
    """The records of a list, as far as they were asked for."""

    items: tuple[Mapping[str, Any], ...]
    total_count: int | None
    """None where the platform does not say."""
    has_more: bool


def cli_path(*segments: str) -> str:
    """Return the path of the API with each segment percent-encoded.

    Raise ValueError for an empty segment, `.` and `..`, which name something else in a URL.
    """
    for segment in segments:
        if segment in ("", ".", ".."):
            raise ValueError(f"{segment!r} is no name")
    encoded = (quote(segment.encode("utf-8", "replace"), safe="") for segment in segments)
    return "/api/cli/" + "/".join(encoded)


def new_key() -> str:
    """Return a new idempotency key, for all tries of one request."""
    return uuid.uuid4().hex


class PlatformClient:
    """Sends requests to one platform; to be closed, or used as a context manager."""

    def __init__(
        self,
        platform_url: str,
        *,
        token: Secret | None,
        version: str,
        git_identity: str | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raise ValueError for an address to which a token must not be sent.

        `git_identity` is `owner/repo`.
        """
        self.origin = platform_origin(platform_url)
        self.limits = limits or Limits()
        self._token = token
        self._version = version
        self._git_identity = git_identity
        self._clock = clock
        self._sleep = sleep
        self._mask = Redactor([token])
        self._policy = RetryPolicy(
            max_tries=self.limits.tries, statuses=PASSING_STATUSES, tries_for={}
        )
        self._opened: dict[tuple[bool, bool], httpx.Client] = {}

    def __enter__(self) -> PlatformClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; harmless when repeated."""
        while self._opened:
            self._opened.popitem()[1].close()

    # ---- the API

    def get(
        self, path: str, params: Params | None = None, *, subject: str = "such thing"
    ) -> dict[str, Any]:
        """Return the answer to a GET; `subject` is what a 404 says there is none of."""
        return self._document("GET", path, params=params, subject=subject)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        subject: str = "such thing",
    ) -> dict[str, Any]:
        """Return the answer to a POST, which is tried again only with a key."""
        return self._document("POST", path, body=body, key=idempotency_key, subject=subject)

    def delete(
        self, path: str, body: Mapping[str, Any] | None = None, *, subject: str = "such thing"
    ) -> dict[str, Any]:
        """Return the answer to a DELETE, empty when there is none."""
        return self._document("DELETE", path, body=body, subject=subject)

    def collect(
        self,
        path: str,
        name: str,
        *,
        limit: int | None = None,
        params: Params | None = None,
    ) -> Listing:
        """Return up to `limit` records of the list `name`, all of them for None, page by page."""
        items: list[Mapping[str, Any]] = []
        offset = 0
        for _ in range(MAX_PAGES):
            size = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(items))
            asked = {**(params or {}), "limit": size, "offset": offset}
            page = self.get(path, asked, subject="such list")
            records = page.get(name)
            if not isinstance(records, list):
                raise self.bad_answer(f"has no list {name!r}")
            items += [item for item in records if isinstance(item, dict)]
            more, following = page.get("has_more") is True, page.get("next_offset")
            is_full = limit is not None and len(items) >= limit
            if is_full or not more:
                return _listing(items, limit, page, more)
            if type(following) is not int or following <= offset:
                raise self.bad_answer("says that there is more, but not where")
            offset = following
        raise self.bad_answer(f"has more than {MAX_PAGES} pages")

    def download(self, path: str, file: IO[bytes], *, subject: str) -> int:
        """Write the answer to a GET into a file, and return its size in bytes."""
        call, start = self._call(subject), file.tell()
        url, headers = self._url(path), self._headers()

        def once() -> PlatformAnswer:
            file.seek(start)
            file.truncate()
            return self._send(call, "GET", url, headers=headers, is_file=True, sink=file)

        answer = self._tried(once, is_safe=True)
        if errors.is_web_page(answer):
            raise errors.not_json(answer, call)
        return file.tell() - start

    def put_presigned(
        self, url: str, content: Callable[[], Iterator[bytes]], size: int
    ) -> Mapping[str, str]:
        """Send a file to an address that the platform gave, without credentials.

        `content` is called afresh for each try. Returns the headers of the answer, names in lower
        case.
        """
        origin = origin_of(url)
        if not origin or not is_private(origin):
            raise self.bad_answer("names an address for an upload that cannot be used")
        call = CallSubject(origin=origin, subject="place for this upload", version=self._version)
        headers = {"content-length": str(size), "content-type": "application/octet-stream"}

        def once() -> PlatformAnswer:
            return self._send(call, "PUT", url, headers=headers, content=content(), is_file=True)

        return self._tried(once, is_safe=True).headers

    def bad_answer(self, what: str) -> PlatformError:
        """Return the error for an answer that is none of the API's."""
        return PlatformError(f"the answer of {self.origin} {what}", code="bad_answer")

    # ---- one request

    def _document(
        self,
        method: str,
        path: str,
        *,
        subject: str,
        body: Mapping[str, Any] | None = None,
        params: Params | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        call = self._call(subject)
        headers = self._headers()
        content = None
        if body is not None:
            content = json.dumps(body, allow_nan=False).encode("ascii")
            headers["content-type"] = "application/json"
        if key:
            headers["idempotency-key"] = key

        url = self._url(path, params)
        answer = self._tried(
            lambda: self._send(call, method, url, headers=headers, content=content),
            is_safe=method in _SAFE or bool(key),
        )
        return _parsed(answer, call)

    def _tried(self, once: Callable[[], PlatformAnswer], *, is_safe: bool) -> PlatformAnswer:
        started, tries, was_sent = self._clock(), 0, False
        while True:
            tries += 1
            try:
                return once()
            except PlatformError as error:
                error.tries, error.elapsed_s = tries, self._clock() - started
                was_sent = error.was_sent = error.was_sent or was_sent
                pause_s = self._pause_s(error, tries, is_safe=is_safe)
                if pause_s is None:
                    raise
            self._sleep(pause_s)

    def _pause_s(self, error: PlatformError, tries: int, *, is_safe: bool) -> float | None:
        asked_s = error.retry_after_s
        if not error.is_passing or tries >= self.limits.tries:
            return None
        if error.elapsed_s >= self.limits.tries_s:
            return None
        if error.was_sent and not is_safe:
            return None
        if asked_s is not None and asked_s > self.limits.longest_pause_s:
            return None
        return self._policy.pause_s(tries, asked_s)

    def _send(
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

        limits = self.limits
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
        limit = self.limits.file_bytes if to_file else self.limits.answer_bytes
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

    def _url(self, path: str, params: Params | None = None) -> str:
        return self.origin + path + (f"?{urlencode(params)}" if params else "")

    def _headers(self) -> dict[str, str]:
        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"osmosis-cli/{self._version}",
            "x-osmosis-cli-version": self._version,
        }
        if self._token:
            headers["authorization"] = f"Bearer {self._token.reveal()}"
        if self._git_identity:
            headers["x-osmosis-git"] = quote(self._git_identity, safe="/")
        return headers

    def _call(self, subject: str) -> CallSubject:
        variable = self._token.name if self._token else ""
        login = "run `osmosis login`"
        if variable.isidentifier():  # it beats every login
            login = f"set {variable} to a valid token, or unset it and {login}"
        return CallSubject(
            origin=self.origin,
            subject=subject,
            version=self._version,
            login=login,
            mask=self._mask,
        )


def _listing(
    items: list[Mapping[str, Any]], limit: int | None, page: Mapping[str, Any], more: bool
) -> Listing:
    total = page.get("total_count")
    return Listing(
        items=tuple(items[:limit]),
        total_count=total if type(total) is int else None,
        has_more=more or (limit is not None and len(items) > limit),
    )


def _parsed(answer: PlatformAnswer, call: CallSubject) -> dict[str, Any]:
    if not answer.body.strip():
        return {}
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise errors.not_json(answer, call) from None
    if not isinstance(document, dict):
        raise errors.not_json(answer, call, "is no JSON object")
    return document
