"""The evaluation of a pytest session, found by the session's config. Imports none of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..spec import SessionSpec
    from .evaluation import Evaluation

EVALUATION = pytest.StashKey["Evaluation"]()
BEGIN = pytest.StashKey[Callable[[pytest.Config], None]]()
"""Begins an evaluation that no option has asked for."""
PLAN = pytest.StashKey[Callable[[pytest.Config], "SessionSpec"]]()
"""Returns the session that options and ini file ask for, as features plan it."""


def evaluation_of(config: pytest.Config) -> Evaluation | None:
    """Return the session's evaluation, if there is one."""
    return config.stash.get(EVALUATION, None)
