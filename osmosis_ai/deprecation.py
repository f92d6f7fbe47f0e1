"""Warnings about names that have a newer one: each is given once a process."""

from __future__ import annotations

import warnings

_warned: set[str] = set()


def warn_deprecated(old: str, instead: str, *, stacklevel: int = 2) -> None:
    """Say once that `old` is deprecated, and what to use; `stacklevel` counts from the caller."""
    if old in _warned:
        return
    _warned.add(old)
    warnings.warn(f"{old} is deprecated: {instead}", DeprecationWarning, stacklevel=stacklevel + 1)
