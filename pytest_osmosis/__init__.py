"""The pytest plugin: evaluation of LLM agents as a test suite.

PYTEST_DONT_REWRITE: no assert of ours is rewritten, installed or editable.
"""

from __future__ import annotations

from importlib import import_module

from .features import table as _table  # noqa: F401  (options and reports are whole)

TYPE_CHECKING = False  # type checkers know the name; `typing` itself costs 8 ms

if TYPE_CHECKING:
    from typing import Any

    from .features.tables.report_tables import read_report
    from .items.decorator import osmosis
    from .items.rollout import Rollout

__all__ = ["Rollout", "osmosis", "read_report"]

_HOME = {
    "Rollout": ".items.rollout",
    "osmosis": ".items.decorator",
    "read_report": ".features.tables.report_tables",
}


def __getattr__(name: str) -> Any:
    """Import what users import from here; the plugin does without it."""
    if name not in _HOME:
        raise AttributeError(f"module 'pytest_osmosis' has no attribute {name!r}")
    return getattr(import_module(_HOME[name], __name__), name)
