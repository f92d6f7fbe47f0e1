"""The errors of model calls, and which kinds there are. Knows neither HTTP nor any provider.

    Exception
    ├── ProviderError      the endpoint gave no answer; `kind` says why, `fatal` whether any row can
    └── CallFault          one try without an answer, inside this package

Kinds: auth, model_not_found and quota are fatal (no other row can succeed); unreachable (there was
no connection), connection (it broke), rate_limited, overloaded and timeout were retried;
bad_request is a request that the endpoint refuses as such, whatever the status (too long a context,
a part that the model does not take, moderation); protocol, redirect, tls and too_large concern the
call itself; not_recorded is a call that a cassette has no answer to.
"""

from __future__ import annotations

from typing import Literal

ErrorKind = Literal[
    "auth",
    "model_not_found",
    "quota",
    "unreachable",
    "connection",
    "rate_limited",
    "overloaded",
    "timeout",
    "bad_request",
    "protocol",
    "redirect",
    "tls",
    "too_large",
    "not_recorded",
]

DOUBTED_KEY = "doubted_key"
"""Reason of a fault that passes, or comes of a key: whether any other request succeeds tells."""
UNSUPPORTED = "unsupported"
"""Reason of a fault that concerns every row: LiteLLM itself refuses the request."""
FATAL_KINDS: frozenset[ErrorKind] = frozenset({"auth", "model_not_found", "quota"})
FINAL_KINDS: frozenset[ErrorKind] = frozenset({"bad_request", "too_large", "not_recorded"})
"""What an endpoint answers to the same request every time."""
DETAIL_LIMIT = 500
"""Characters of a provider's own message that are kept."""


class ProviderError(Exception):
    """The endpoint gave no usable answer; `str()` is the one sentence that users see."""

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = "protocol",
        status: int | None = None,
        endpoint: str = "",
        tries: int = 1,
        elapsed_s: float = 0.0,
        fatal: bool | None = None,
        detail: str = "",
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        """HTTP status of the last reply, None when there was none."""
        self.endpoint = endpoint
        self.tries = tries
        self.elapsed_s = elapsed_s
        self.fatal = kind in FATAL_KINDS if fatal is None else fatal
        """No other row can succeed either: stop instead of failing every row."""
        self.detail = detail
        """The endpoint's own words, redacted and cut."""
        self.param = param
        """The request's field that the endpoint refuses, such as `temperature`, if it names one."""
        self.is_silent = False
        """It stood in a reply that the agent's client has taken for an answer."""


class CallFault(Exception):
    """One try that brought no completion; never leaves this package: users see `ProviderError`."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str = "",
        *,
        summary: str = "",
        status: int | None = None,
        reason: str = "",
        retried: bool = False,
        retry_after_s: float | None = None,
        local: bool = False,
    ) -> None:
        super().__init__(summary or detail)
        self.kind = kind
        self.detail = detail
        """The endpoint's words, or the operating system's; not yet redacted."""
        self.summary = summary
        """Ours, where the kind alone does not say what is wrong."""
        self.status = status
        self.reason = reason or kind
        """Key of `RetryPolicy.tries_for`."""
        self.retried = retried
        self.retry_after_s = retry_after_s
        self.local = local
        """May concern this call alone, if others have succeeded before."""
        self.named: Literal["key", "model", ""] = ""
        """What the endpoint's words are about, beside the request."""
        self.param: str | None = None
        """The request's field that is refused."""
        self.instead: tuple[str, str] | None = None
        """That field and the one that the endpoint wants; `("", "stream")`: it only streams."""
        self.stale = False
        """A kept connection, which the server had dropped: worth one further try at once."""


def efforts(tries: int, elapsed_s: float) -> str:
    """Return ` after 4 tries in 21.3 s`, or nothing after a single try."""
    return f" after {tries} tries in {elapsed_s:.1f} s" if tries > 1 else ""


def clip(text: str, limit: int = DETAIL_LIMIT) -> str:
    """Return `text` on one line, without control characters, at most `limit` characters long."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: 8 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
