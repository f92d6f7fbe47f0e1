"""Explanations of judges, collected for the caller of an eval function.

An eval function returns only a number; the explanation of the judge that it asked is passed beside
it in a context variable. Knows neither judges nor callers.
"""

from __future__ import annotations

from contextvars import ContextVar

LIMIT = 20
"""Reasons that one listener keeps."""

_listener: ContextVar[list[str] | None] = ContextVar("osmosis_reasons", default=None)


class collect_reasons:
    """`with collect_reasons() as reasons:` collects what `add_reason` gets, in this context and its
    copies.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> list[str]:
        reasons: list[str] = []
        self._token = _listener.set(reasons)
        return reasons

    def __exit__(self, *_: object) -> None:
        _listener.reset(self._token)


def add_reason(reason: str) -> None:
    """Add a reason to the current listener; without one, do nothing."""
    reasons = _listener.get()
    if reasons is not None and len(reasons) < LIMIT:
        reasons.append(reason)
