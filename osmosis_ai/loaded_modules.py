"""Modules that have been imported, never half of one.

`sys.modules` has a module from the moment its import begins: what another thread reads there may
lack most of its names. Python's own import waits for that thread.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


def loaded_module(name: str) -> ModuleType | None:
    """Return a module that has been imported, whole; None where none has this name."""
    return None if sys.modules.get(name) is None else import_module(name)
