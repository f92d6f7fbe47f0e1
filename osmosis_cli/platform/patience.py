"""Going on with a platform that is away for a while, as when it is started anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_TRIES = 10
"""How often in a row a platform may be unreachable before waiting ends."""


def patiently(ask: Callable[[], T], *, tell: Callable[[str], None], wait: Callable[[], None]) -> T:
    """Return what a platform answers, asked again while its trouble passes."""
    from osmosis_ai.platform.client import PlatformError

    misses = 0
    while True:
        try:
            return ask()
        except PlatformError as error:
            if not error.is_passing or misses >= _TRIES:
                raise
            misses += 1
            tell(f"{error}; trying again")
        wait()
