"""When to send a request again, how long to wait before that, and the loop that does so.

Retry-After is understood as seconds, as an HTTP date and as `retry-after-ms`. Knows neither what is
sent nor how: a `CallFault` says what is worth another try, and a rate limit (`rate_limiter`), which
other models may share, learns how each try ended. `RetryPolicy` has the defaults for models; judges
and the clients of the platform and of trainers pass policies of their own.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from .base import CallOutcome, RateLimit
from .errors import DOUBTED_KEY, CallFault
from .progress import current_call

R = TypeVar("R")
T = TypeVar("T")

RETRIED_STATUSES: frozenset[int] = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
RETRY_AFTER_LIMIT_S = 120.0
"""Longest pause that an endpoint may ask for; a longer one ends the call at once."""

DOUBTED_TRIES = 5
"""After so many of a call that leave a key in doubt it is taken for refused."""
_TRIES_FOR: Mapping[str, int] = {"timeout": 2, "protocol": 2, "unreachable": 3}
_jitter = Random()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and after which pauses a request is repeated; `max_tries=1`: never."""

    max_tries: int = 8
    """Tries in all, the first included; 8 let a 30 % failure rate through in 1 of 15,000 calls."""
    base_s: float = 0.5
    """Longest pause before the second try; doubles with every further one."""
    cap_s: float = 8.0
    """Longest pause that the endpoint did not ask for."""
    statuses: frozenset[int] = RETRIED_STATUSES
    tries_for: Mapping[str, int] = field(default_factory=lambda: _TRIES_FOR)
    """Fewer tries for failures that seldom pass: by reason, at most `max_tries`."""

    def retries_status(self, status: int, headers: Mapping[str, str]) -> bool:
        """Return whether to try again after this status; `x-should-retry` decides first."""
        advice = headers.get("x-should-retry", "").strip().lower()
        if advice in ("true", "false"):
            return advice == "true"
        return status in self.statuses

    def tries_left(self, reason: str, tries: int) -> bool:
        """Return whether one more try is allowed after `tries`, the last failing for `reason`."""
        return tries < min(self.max_tries, self.tries_for.get(reason, self.max_tries))

    def pause_s(self, tries: int, retry_after_s: float | None, random: Random = _jitter) -> float:
        """Return the seconds to wait after `tries` tries: at least what the endpoint asked for."""
        backoff = min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 30))
        if retry_after_s is None or retry_after_s <= 0.0:
            return backoff * random.uniform(0.5, 1.0)
        return retry_after_s + random.uniform(0.0, min(self.base_s, 0.1 * retry_after_s))


class CallFailed(Exception):
    """The last try's fault, and what was tried."""

    def __init__(self, fault: CallFault, tries: int, elapsed_s: float) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.tries = tries
        self.elapsed_s = elapsed_s


class Retrier:
    """Repeats calls to one endpoint as its policy says."""

    def __init__(
        self,
        policy: RetryPolicy,
        rate_limit: RateLimit,
        *,
        request_timeout_s: float,
        total_timeout_s: float | None = None,
    ) -> None:
        self.replied = False
        """The endpoint has answered something; set by the functions that `run` calls."""
        self.request_timeout_s = request_timeout_s
        self._succeeded = False
        self._policy = policy
        self._rate_limit = rate_limit
        self._total_timeout_s = total_timeout_s

    async def run(
        self,
        ask: Callable[[float], Awaitable[R]],
        read: Callable[[R], T],
        describe: Callable[[CallFault], str] = str,
    ) -> tuple[T, int, float]:
        """Await `ask(timeout_s)` until `read` takes the reply; raise CallFailed with no try left.

        Return what `read` made of it, after how many further tries and milliseconds.

        `describe` is for the caller that follows the call's progress.
        """
        started = time.perf_counter()
        progress = current_call()
        tries = doubted = 0
        was_stale = False
        while True:
            tries += 1
            if progress is not None:
                progress.tries = tries
            try:
                value = await self._once(ask, read, started, describe)
            except CallFault as caught:
                doubted = doubted + 1 if caught.reason == DOUBTED_KEY else 0
                fault = caught if doubted < DOUBTED_TRIES else self._without_doubt(caught)
                if progress is not None:
                    progress.failed(fault, describe)
                elapsed_s = time.perf_counter() - started
                if progress is not None and progress.passing and progress.passing.begun:
                    raise CallFailed(fault, tries, elapsed_s) from None
                if fault.stale and not was_stale:
                    was_stale = True  # one further try at once, whatever the policy
                    continue
                pause_s = self._pause_s(fault, tries, elapsed_s)
                if pause_s is None:
                    raise CallFailed(fault, tries, elapsed_s) from None
            else:
                return value, tries - 1, (time.perf_counter() - started) * 1000.0
            await _sleep(pause_s)

    def _without_doubt(self, fault: CallFault) -> CallFault:
        """Return the fault of a refused key, unless any request has succeeded."""
        if self._succeeded:
            return fault
        return CallFault("auth", fault.detail, status=fault.status)

    async def _once(
        self,
        ask: Callable[[float], Awaitable[R]],
        read: Callable[[R], T],
        started: float,
        describe: Callable[[CallFault], str],
    ) -> T:
        if self._total_timeout_s is None:
            await self._rate_limit.acquire()
        else:
            await self._acquired(self._total_timeout_s, started)
        outcome: CallOutcome = "failed"
        retry_after_s = 0.0
        try:
            timeout_s = self.request_timeout_s
            if self._total_timeout_s is not None:
                left_s = self._total_timeout_s - (time.perf_counter() - started)
                timeout_s = max(0.001, min(timeout_s, left_s))
            value = read(await ask(timeout_s))
            outcome = "ok"
            self._succeeded = True
        except CallFault as fault:
            if (progress := current_call()) is not None:
                progress.failed(fault, describe)
            if fault.kind in ("rate_limited", "overloaded"):
                outcome = fault.kind
            if fault.retry_after_s is not None and fault.retry_after_s <= RETRY_AFTER_LIMIT_S:
                retry_after_s = fault.retry_after_s
            raise
        finally:
            self._rate_limit.record_response(outcome, retry_after_s)
        return value

    async def _acquired(self, total_timeout_s: float, started: float) -> None:
        """Wait until a request may be sent; raise CallFault where no time is left for it then."""
        import asyncio

        left_s = total_timeout_s - (time.perf_counter() - started)
        try:
            await asyncio.wait_for(self._rate_limit.acquire(), left_s)
        except asyncio.TimeoutError:
            summary = f"a wait beyond the {total_timeout_s:g} s of a call, asked for in an answer"
            raise CallFault("rate_limited", summary=summary) from None

    def _pause_s(self, fault: CallFault, tries: int, elapsed_s: float) -> float | None:
        """Return the seconds until the next try, None when this fault is final."""
        asked_s = fault.retry_after_s
        if not fault.retried or (asked_s is not None and asked_s > RETRY_AFTER_LIMIT_S):
            return None
        reason = fault.reason
        if reason == "unreachable" and self.replied:
            reason = "connection"  # it was there: a restart takes longer than a wrong address
        if not self._policy.tries_left(reason, tries):
            return None
        pause_s = self._policy.pause_s(tries, asked_s)
        left_s = None if self._total_timeout_s is None else self._total_timeout_s - elapsed_s
        return None if left_s is not None and pause_s >= left_s else pause_s


async def _sleep(seconds: float) -> None:
    import asyncio  # is loaded where this runs; commands that only need the policy do without

    await asyncio.sleep(seconds)


def parse_retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Return the seconds that the reply asks to wait, None without a valid header.

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
    """Return `45 s`, `3 min` or `27 h`: in the largest unit of which it has several."""
    for from_s, unit_s, unit in ((3 * 86400, 86400, "days"), (5400, 3600, "h"), (120, 60, "min")):
        if seconds >= from_s:
            return f"{int(seconds // unit_s)} {unit}"
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
