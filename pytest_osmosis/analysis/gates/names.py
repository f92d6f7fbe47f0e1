"""The names that gates use beside metrics and eval functions: features bring them.

`features/table.py` fills these tables. Reading what a gate says imports none of what stands behind
a name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...run_result import SuiteInfo
    from ...verdicts import GateResult
    from ..score_table import ScoreTable
    from .parser import Gate

CONDITIONS: dict[str, Callable[[SuiteInfo], Collection[str]]] = {}
"""What a gate may say of the suites that it is about, `[NAME=VALUE]`: the values of a suite."""

DIFFERENCES: dict[str, Callable[[Gate, ScoreTable, ScoreTable, float | None], GateResult]] = {}
"""What a gate may subtract, `METRIC - NAME`: the verdict by both tables and a confidence."""

CHECKS: list[Callable[[Gate, Collection[SuiteInfo], Collection[SuiteInfo]], None]] = []
"""Raise GateError for a gate, by the suites that have gates and those that it is about."""
