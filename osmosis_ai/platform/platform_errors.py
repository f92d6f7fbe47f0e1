"""What goes wrong between a client and a platform, each as one sentence with the next step.

    Exception
    └── PlatformError      `code` is for programs; `str()` is the sentence

Text from the server is escaped and cut before it gets into a sentence. No sentence has a token, a
body of a request, or more of a URL than its origin.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..models.retry import in_words
from ..secret import Redactor
from .server_text import one_line, origin_of

PASSING_STATUSES = frozenset({429, 502, 503, 504})
_WORD = re.compile(r"[\w.-]{1,64}")
_BY_STATUS = {
    400: ("invalid", "bad request", "{origin} does not accept this: {said}"),
    401: ("unauthorized", "not authorized", "your session at {origin} has ended ({said}): {login}"),
    403: (
        "forbidden",
        "forbidden",
        "{origin} does not allow this: {said}; ask an owner of the workspace, or see "
        "`osmosis whoami` for who you are",
    ),
    404: ("not_found", "not found", "{origin} has no {subject}: {said}"),
    409: ("conflict", "conflict", "{origin} refused: {said}"),
    422: ("invalid", "not valid", "{origin} does not accept this: {said}"),
    426: (
        "too_old",
        "upgrade required",
        "osmosis {version} is too old for {origin} ({said}): run "
        "`python -m pip install --upgrade pytest-osmosis`",
    ),
    429: (
        "rate_limited",
        "too many requests",
        "{origin} takes no more requests right now: {said}; try again {later}",
    ),
}
"""The error's code, what stands for the server's own words where it has none, and the sentence.

Further codes: platform_error, redirect, too_large, timeout, unreachable, tls, bad_answer."""
_OTHER_REFUSAL = ("invalid", "", "{origin} does not accept this: {said}")
_FAILED = ("platform_error", "", "{origin} failed: {said}; try again later")
_BY_CODE = {
    "wrong_repository": "{origin} does not allow this: {said}: run `osmosis workspace switch NAME`,"
    " or `osmosis login --force` for one more workspace",
}
"""By the platform's own code, where another step helps than for its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSubject:
    """What a request is about, for the sentence when it fails."""

    origin: str
    subject: str
    """What is asked for, as `evaluation 'x'`."""
    version: str
    """Of this client."""
    login: str = "run `osmosis login`"
    """What helps where the token is none that is valid."""
    mask: Redactor = field(default_factory=Redactor)
    """Removes the token from what the server says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAnswer:
    """A response, read to its end; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class PlatformError(Exception):
    """A request that a platform refused, failed at or never got."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        answer: PlatformAnswer | None = None,
        status: int | None = None,
        request_id: str | None = None,
        is_passing: bool = False,
        was_sent: bool = True,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = answer.status if answer else status
        self.request_id = _word(answer.headers.get("x-request-id")) if answer else request_id
        self.is_passing = is_passing
        """Whether another try may do better."""
        self.was_sent = was_sent
        """Whether the server may have acted on the request."""
        self.retry_after_s = retry_after_s
        self.said = ""
        """The server's own text, escaped and cut."""
        self.server_code: str | None = None
        self.field: str | None = None
        """What the server says is wrong."""
        self.details: Any = None
        self.tries = 1
        self.elapsed_s = 0.0

    def __str__(self) -> str:
        notes = [f"request {self.request_id}"] if self.request_id else []
        if self.tries > 1:
            notes.append(f"{self.tries} tries in {self.elapsed_s:.1f} s")
        return self.message + (f" ({', '.join(notes)})" if notes else "")

    @property
    def is_ambiguous(self) -> bool:
        """Whether it is not known if the platform did what it was asked for."""
        is_refusal = self.status is not None and 300 <= self.status < 500
        return self.was_sent and not is_refusal

    def document(self) -> dict[str, Any]:
        """Return what programs may want to know besides the sentence."""
        known = {
            "status": self.status,
            "platform_code": self.server_code,
            "field": self.field,
            "request_id": self.request_id,
        }
        return {name: value for name, value in known.items() if value is not None}


def refusal(
    answer: PlatformAnswer, call: CallSubject, retry_after_s: float | None = None
) -> PlatformError:
    """Return the error for an answer whose status is none of success."""
    status = answer.status
    if 300 <= status < 400:
        return _redirect(answer, call)
    document = _document(answer.body)
    said = _server_text(document, call)
    field_name = _word(document.get("field"))
    other = _OTHER_REFUSAL if status < 500 else _FAILED
    code, words, pattern = _BY_STATUS.get(status, other)
    shown = said or words or f"it answered {status}{_kind(answer)}"
    if field_name and field_name not in shown:
        shown = f"{field_name}: {shown}"
    later = "later" if not retry_after_s else f"in {in_words(retry_after_s)}"
    own = _BY_CODE.get(_word(document.get("code")) or "")
    if status == 401 or own or "; try again " in shown:
        shown = shown.partition(";")[0]  # what helps is known better here
    parts = {name: getattr(call, name) for name in ("origin", "subject", "version", "login")}
    error = PlatformError(
        (own or pattern).format(**parts, said=shown, later=later),
        code=code,
        answer=answer,
        is_passing=status in PASSING_STATUSES,
        retry_after_s=retry_after_s,
    )
    error.said, error.field = said, field_name
    error.request_id = error.request_id or _word(document.get("request_id"))
    error.server_code, error.details = _word(document.get("code")), document.get("details")
    return error


def not_json(answer: PlatformAnswer, call: CallSubject, what: str = "is not JSON") -> PlatformError:
    """Return the error for a success whose body is none of the API's."""
    return PlatformError(
        f"the answer of {call.origin} {what}{_kind(answer)}: is OSMOSIS_PLATFORM_URL the address "
        "of a platform?",
        code="bad_answer",
        answer=answer,
    )


def too_large(answer: PlatformAnswer, call: CallSubject, limit: int) -> PlatformError:
    """Return the error for an answer that was cut off."""
    size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit} bytes"
    return PlatformError(
        f"the answer of {call.origin} is larger than {size}, and was not read to its end",
        code="too_large",
        answer=answer,
    )


def timed_out(call: CallSubject, seconds: float, *, was_sent: bool = True) -> PlatformError:
    """Return the error for an answer that did not come, or not to its end."""
    return PlatformError(
        f"{call.origin} did not answer within {seconds:g} s; try again later",
        code="timeout",
        is_passing=True,
        was_sent=was_sent,
    )


def unreachable(call: CallSubject, error: Exception, *, was_sent: bool) -> PlatformError:
    """Return the error for a connection that could not be made, or broke."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return _tls(call, cause)
    what = "the connection to {} broke" if was_sent else "cannot reach {}"
    return PlatformError(
        f"{what.format(call.origin)}: {_reason(error)}; is it running, and is "
        "OSMOSIS_PLATFORM_URL right?",
        code="unreachable",
        is_passing=True,
        was_sent=was_sent,
    )


def _tls(call: CallSubject, error: ssl.SSLError) -> PlatformError:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"its certificate cannot be trusted ({one_line(error.verify_message, 100)})"
        cure = "where it has a certificate authority of your own, set SSL_CERT_FILE to its file"
    else:
        why = f"no TLS connection ({one_line(error.reason or 'failed', 100).lower()})"
        cure = "is OSMOSIS_PLATFORM_URL right?"
    return PlatformError(f"{call.origin}: {why}; {cure}", code="tls", was_sent=False)


def _redirect(answer: PlatformAnswer, call: CallSubject) -> PlatformError:
    there = origin_of(answer.headers.get("location", ""))
    where = f"to {there}" if there and there != call.origin else "to another address"
    return PlatformError(
        f"{call.origin} redirects {where}, which is not followed: if that is your platform, set "
        "OSMOSIS_PLATFORM_URL to it and log in there",
        code="redirect",
        answer=answer,
    )


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _server_text(document: Mapping[str, Any], call: CallSubject) -> str:
    text = document.get("error") or document.get("message") or document.get("detail")
    if isinstance(text, dict):
        text = text.get("message") or text.get("error")
    # Masked before it is cut: what is left of a token at the cut would not be found.
    return one_line(call.mask(text)).rstrip(".") if isinstance(text, str) else ""


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def is_web_page(answer: PlatformAnswer) -> bool:
    """Return whether the answer is HTML, which a proxy or a login page sends."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "text/html" or answer.body.lstrip()[:1] == b"<"


def _kind(answer: PlatformAnswer) -> str:
    return " (a web page)" if is_web_page(answer) else ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _reason(error: Exception) -> str:
    import socket  # with httpx, it is there already

    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "its name is unknown"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
    return one_line(str(error), 100).rstrip(".") or type(error).__name__
