"""SciPy, the truth that figures are held against, imported only by the process that needs it."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def stats() -> ModuleType:
    """`scipy.stats`, whose import takes a second."""
    from scipy import stats

    return stats
