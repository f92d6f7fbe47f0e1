"""The import path of older projects: deprecated, `osmosis_ai` has the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import decorators
from .deprecation import warn_deprecated

if TYPE_CHECKING:
    from .decorators import osmosis_reward, osmosis_rubric

__all__ = ["osmosis_reward", "osmosis_rubric"]


def __getattr__(name: str) -> Any:
    """Return a name of `__all__`; the first use of each warns."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_deprecated(f"osmosis_ai.utils.{name}", f"from osmosis_ai import {name}")
    value = globals()[name] = getattr(decorators, name)
    return value
