"""The gate that every call of a process passes: what one process learns, all of them heed.

A 429 or 503 with a Retry-After holds back the calls of this process at once and, through `share`,
those of the others; the controller answers with a smaller window. Knows no endpoint and no xdist.
"""

from __future__ import annotations

from collections.abc import Callable

from osmosis_ai.models.base import CallOutcome
from osmosis_ai.models.rate_limit import LocalGate

Share = Callable[[str, float], None]
"""Told `("rate_limited" | "overloaded" | "ok", seconds from now)` of calls in this process."""


class SharedRateLimit(LocalGate):
    """`CallGate` that tells others; nobody is held back before a refusal was seen."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self._share = share
        self._strained = False

    def note(self, kind: CallOutcome, not_before_s: float) -> None:
        """A call has ended: heed it here, and tell the others what concerns them."""
        super().note(kind, not_before_s)
        if kind in ("rate_limited", "overloaded"):
            self._strained = True
            self._share(kind, not_before_s)
        elif kind == "ok" and self._strained:
            self._share(kind, 0.0)

    def hold(self, not_before_s: float) -> None:
        """Another process was told to wait."""
        super().note("rate_limited", not_before_s)
        self._strained = True
