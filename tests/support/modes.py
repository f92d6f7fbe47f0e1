"""The modes of a session under test: one process, or two xdist workers.

What must be the same in both is held by one session a mode (`acceptance/test_both_modes.py`). A
test takes a mode itself where the way through the workers differs; with workers it is slow.
"""

from __future__ import annotations

import pytest

N2 = pytest.param(2, id="n2", marks=pytest.mark.slow)
each_mode = pytest.mark.parametrize("workers", [pytest.param(0, id="one_process"), N2])
"""The number of workers of each mode."""
