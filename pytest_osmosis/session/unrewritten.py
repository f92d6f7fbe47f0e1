"""Imports our own modules past pytest's rewriter of asserts, which has no business in them.

pytest marks the packages of every plugin for rewriting, and loads their bytecode in a way of its
own that takes several times as long as Python's. We have no assert that a user is to read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

import pytest

_PACKAGES = ("osmosis_ai", "pytest_osmosis")


class OwnModules(MetaPathFinder):
    """Finds them as Python itself would."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec, if it is ours."""
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        return PathFinder.find_spec(fullname, path, target)


def import_own_modules(config: pytest.Config) -> None:
    """From here on, until the session's end, load our modules as Python does."""
    finder = OwnModules()
    sys.meta_path.insert(0, finder)
    config.add_cleanup(lambda: _remove(finder))


def _remove(finder: OwnModules) -> None:
    if finder in sys.meta_path:  # whoever runs pytest within pytest restores the path himself
        sys.meta_path.remove(finder)
