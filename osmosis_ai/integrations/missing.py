"""The error for an agent library that is not installed."""

from __future__ import annotations


def missing_library(error: ModuleNotFoundError, who: str, requirement: str) -> ModuleNotFoundError:
    """Return the error of an import with what to install in its message."""
    return ModuleNotFoundError(
        f"{who} needs {error.name!r}, which is not installed: pip install '{requirement}'",
        name=error.name,
    )
