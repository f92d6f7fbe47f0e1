"""The evaluation of a pytest session, found by the session's config. Imports none of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .evaluation import Evaluation

EVALUATION = pytest.StashKey["Evaluation"]()
BEGIN = pytest.StashKey[Callable[[pytest.Config], None]]()
"""Begins an evaluation that no option has asked for."""


def evaluation_of(config: pytest.Config) -> Evaluation | None:
    """Return the session's evaluation, if there is one."""
    return config.stash.get(EVALUATION, None)
