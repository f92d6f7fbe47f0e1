"""Why judges scored as they did, for whoever called the code that asked them.

An eval function returns a number alone; what its judge had to say takes this way beside it. Knows
neither judges nor listeners.
"""

from __future__ import annotations

from contextvars import ContextVar

LIMIT = 20
"""Reasons that one listener takes."""

_listener: ContextVar[list[str] | None] = ContextVar("osmosis_reasons", default=None)


class heard:
    """`with heard() as reasons:` those told in the block, in its context and in copies of it."""

    __slots__ = ("_token",)

    def __enter__(self) -> list[str]:
        reasons: list[str] = []
        self._token = _listener.set(reasons)
        return reasons

    def __exit__(self, *_: object) -> None:
        _listener.reset(self._token)


def tell(reason: str) -> None:
    """Tell a reason to whoever listens; nobody need."""
    reasons = _listener.get()
    if reasons is not None and len(reasons) < LIMIT:
        reasons.append(reason)
