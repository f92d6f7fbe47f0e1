"""Asking until there is an answer or no point in asking: tries, pauses and the total deadline.

Knows neither what is asked nor how. It decides by `CallFault`, and tells a gate, which other models
may share, how each try ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .base import CallGate, CallOutcome
from .errors import CallFault
from .retry import RETRY_AFTER_LIMIT_S, RetryPolicy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Success(Generic[T]):
    """An answer, and what it took."""

    value: T
    retries: int
    latency_ms: float


class GaveUp(Exception):
    """The last try's fault, and what was tried."""

    def __init__(self, fault: CallFault, tries: int, elapsed_s: float) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.tries = tries
        self.elapsed_s = elapsed_s


class Tries:
    """Repeats calls to one endpoint as its policy says."""

    def __init__(
        self,
        policy: RetryPolicy,
        gate: CallGate,
        *,
        request_timeout_s: float,
        total_timeout_s: float | None = None,
    ) -> None:
        self.replied = False
        """The endpoint is there: it has answered something. The asking side says so."""
        self.request_timeout_s = request_timeout_s
        self._policy = policy
        self._gate = gate
        self._total_timeout_s = total_timeout_s

    async def until_answered(self, ask: Callable[[float], Awaitable[T]]) -> Success[T]:
        """`await ask(timeout_s)`, again while its faults are worth it; raises GaveUp."""
        started = time.perf_counter()
        tries = 0
        while True:
            tries += 1
            try:
                value = await self._once(ask, started)
            except CallFault as fault:
                elapsed_s = time.perf_counter() - started
                pause_s = self._pause_s(fault, tries, elapsed_s)
                if pause_s is None:
                    raise GaveUp(fault, tries, elapsed_s) from None
            else:
                return Success(value, tries - 1, (time.perf_counter() - started) * 1000.0)
            await asyncio.sleep(pause_s)

    async def _once(self, ask: Callable[[float], Awaitable[T]], started: float) -> T:
        await self._gate.acquire()
        outcome: CallOutcome = "failed"
        not_before_s = 0.0
        try:
            value = await ask(self._timeout_s(time.perf_counter() - started))
            outcome = "ok"
        except CallFault as fault:
            outcome = _outcome(fault)
            if fault.retry_after_s is not None and fault.retry_after_s <= RETRY_AFTER_LIMIT_S:
                not_before_s = fault.retry_after_s
            raise
        finally:
            self._gate.note(outcome, not_before_s)
        return value

    def _timeout_s(self, elapsed_s: float) -> float:
        if self._total_timeout_s is None:
            return self.request_timeout_s
        return max(0.001, min(self.request_timeout_s, self._total_timeout_s - elapsed_s))

    def _pause_s(self, fault: CallFault, tries: int, elapsed_s: float) -> float | None:
        """Seconds until the next try, None when this fault is final."""
        asked_s = fault.retry_after_s
        if not fault.retried or (asked_s is not None and asked_s > RETRY_AFTER_LIMIT_S):
            return None
        reason = fault.reason
        if reason == "not_connected" and self.replied:
            reason = fault.kind  # it was there before: a restart takes longer than a wrong address
        if not self._policy.tries_left(reason, tries):
            return None
        pause_s = self._policy.pause_s(tries, asked_s)
        left_s = None if self._total_timeout_s is None else self._total_timeout_s - elapsed_s
        return None if left_s is not None and pause_s >= left_s else pause_s


def _outcome(fault: CallFault) -> CallOutcome:
    if fault.kind == "rate_limited":
        return "rate_limited"
    return "overloaded" if fault.kind == "overloaded" else "failed"
