"""When to try an HTTP request again, and how long to wait before it.

Pure decisions over a status, headers and a count of tries: knows no client, sends and sleeps
nothing. Retry-After is understood as seconds, as an HTTP date and as `retry-after-ms`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

RETRIED_STATUSES: frozenset[int] = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
RETRY_AFTER_LIMIT_S = 120.0
"""Nobody waits longer than this: a longer wish is an error at once."""

_TRIES_FOR: Mapping[str, int] = {"timeout": 2, "protocol": 2, "not_connected": 3}
_jitter = Random()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently a request is repeated; `RetryPolicy(max_tries=1)` never does."""

    max_tries: int = 8
    """Tries in all, the first included; 8 let a 30 % failure rate through in 1 of 15,000 calls."""
    base_s: float = 0.5
    """Longest pause before the second try; doubles with every further one."""
    cap_s: float = 8.0
    """Longest pause that is not asked for by the endpoint."""
    statuses: frozenset[int] = RETRIED_STATUSES
    tries_for: Mapping[str, int] = field(default_factory=lambda: _TRIES_FOR)
    """Fewer tries for failures that seldom pass: by reason, at most `max_tries`."""

    def retries_status(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether a reply with this status is worth another try; `x-should-retry` decides first."""
        advice = headers.get("x-should-retry", "").strip().lower()
        if advice in ("true", "false"):
            return advice == "true"
        return status in self.statuses

    def tries_left(self, reason: str, tries: int) -> bool:
        """Whether after `tries` tries, the last failing for `reason`, one more is allowed."""
        return tries < min(self.max_tries, self.tries_for.get(reason, self.max_tries))

    def pause_s(self, tries: int, retry_after_s: float | None, random: Random = _jitter) -> float:
        """Seconds to wait after `tries` tries; never less than the endpoint asked for."""
        backoff = min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 30))
        if retry_after_s is None or retry_after_s <= 0.0:
            return backoff * random.uniform(0.5, 1.0)
        return retry_after_s + random.uniform(0.0, min(self.base_s, 0.1 * retry_after_s))


def parse_retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that the reply asks to wait, None when it does not say or says nonsense.

    `headers` has lower-case names. A date counts from the reply's own `Date` when it has one, so
    that neither clock needs to be right; else from `now` (Unix time), and then at most
    `RETRY_AFTER_LIMIT_S`, since a jumped clock must not stop an evaluation.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000.0
    text = headers.get("retry-after")
    if text is None:
        return None
    seconds = _number(text)
    if seconds is not None:
        return seconds
    until = _http_date(text)
    if until is None:
        return None
    since = _http_date(headers.get("date", ""))
    if since is not None:
        return max(0.0, until - since)
    return min(max(0.0, until - (time.time() if now is None else now)), RETRY_AFTER_LIMIT_S)


def in_words(seconds: float) -> str:
    """`45 s`, `3 min` or `27 h`: the largest unit in which it is more than one."""
    for unit_s, unit in ((86400 * 3, "days"), (5400, "h"), (120, "min")):
        if seconds >= unit_s:
            size = {"days": 86400, "h": 3600, "min": 60}[unit]
            return f"{int(seconds // size)} {unit}"
    return f"{seconds:.0f} s"


def _number(text: str | None) -> float | None:
    """A finite number >= 0 in plain ASCII digits; None for anything else."""
    if text is None:
        return None
    digits = text.strip()
    if not digits.isascii() or not digits.replace(".", "", 1).isdigit() or len(digits) > 20:
        return None
    return float(digits)


def _http_date(text: str) -> float | None:
    """Unix time of an HTTP date in any of its three forms."""
    if not text or text.strip().lstrip("+-").replace(".", "").isdigit():
        return None
    from email.utils import mktime_tz, parsedate_tz  # 10 ms: only for the rare dated reply

    try:
        parsed = parsedate_tz(text)
        return None if parsed is None else float(mktime_tz(parsed))
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
