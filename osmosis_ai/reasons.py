"""Why judges scored as they did, for whoever called the code that asked them.

An eval function returns a number alone; what its judge had to say takes this way beside it. Knows
neither judges nor listeners.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LIMIT = 20
"""Reasons that one listener takes."""

_listener: ContextVar[list[str] | None] = ContextVar("osmosis_reasons", default=None)


@contextmanager
def heard() -> Iterator[list[str]]:
    """The reasons that are told from here on, in this context and in those copied from it."""
    reasons: list[str] = []
    token = _listener.set(reasons)
    try:
        yield reasons
    finally:
        _listener.reset(token)


def tell(reason: str) -> None:
    """Tell a reason to whoever listens; nobody need."""
    reasons = _listener.get()
    if reasons is not None and len(reasons) < LIMIT:
        reasons.append(reason)
