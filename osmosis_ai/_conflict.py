"""Tells whether another distribution claims the package `osmosis_ai` that this one provides.

Two distributions over one package overwrite each other's files; pip does not notice.
"""

from __future__ import annotations

RIVAL = "osmosis-ai"


def conflicting_distribution() -> str | None:
    """One sentence when the distribution `osmosis-ai` is installed beside this one, else None."""
    from importlib.metadata import PackageNotFoundError, version  # 15 ms, needed by few

    try:
        found = version(RIVAL)
    except PackageNotFoundError:
        return None
    return (
        f"{RIVAL} {found} and pytest-osmosis both install the package osmosis_ai and one of the "
        f"two must go: pip uninstall {RIVAL}, then pip install --force-reinstall pytest-osmosis"
    )
