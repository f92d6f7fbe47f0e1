"""A gate, and the names that gates use beside metrics and eval functions: features bring these.

`features/table.py` fills the tables. Reading what a gate says imports none of what stands behind
a name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...run_result import SuiteInfo
    from ...verdicts import GateResult
    from ..metrics import Definition, Metric
    from ..score_table import ScoreTable


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate, parsed."""

    text: str
    """As given, blanks made single: its name in every report."""
    metric: Metric
    """Its eval function as given; `resolved` makes that a whole name."""
    operator: str
    """One of >= > <= < ==."""
    threshold: float
    """The number; a percentage is divided by 100."""
    minus: str | None = None
    """What the metric's difference from is meant: a name of `DIFFERENCES`."""
    is_relative: bool = False
    """The difference of a number is over the mean of what is subtracted: `<= 10%`."""
    only: tuple[tuple[str, str], ...] = ()
    """The suites that it is about, by names of `CONDITIONS`; none: every suite."""
    prefix: str = ""
    """What stands before it, a name of `PREFIXES` with a column: "each topic"."""
    together: int = 1
    """So many gates are judged together: the interval of each is wider for it (Bonferroni)."""

    @property
    def label(self) -> str:
        """The metric as people write it: "pass@5", with its prefix and what is subtracted."""
        label = " - ".join(filter(None, [self.metric.label, self.minus]))
        return f"{self.prefix}: {label}" if self.prefix else label

    def level(self, confidence: float) -> float:
        """Return the confidence of its own interval."""
        return 1.0 - (1.0 - confidence) / self.together

    @property
    def eval_fn(self) -> str | None:
        """The eval function that the gate names."""
        return self.metric.eval_fn

    def with_function(self, eval_fn: str | None) -> Gate:
        """Return the gate about another eval function."""
        return replace(self, metric=replace(self.metric, eval_fn=eval_fn))


FAMILIES: list[Callable[[], Iterable[Definition]]] = []
"""Metrics that features bring, `SUMMARY(NUMBER)` among them: made when the first gate is read."""

CONDITIONS: dict[str, Callable[[SuiteInfo], Collection[str]]] = {}
"""What a gate may say of the suites that it is about, `[NAME=VALUE]`: the values of a suite."""

DIFFERENCES: dict[str, Callable[[Gate, ScoreTable, ScoreTable, float | None], GateResult]] = {}
"""What a gate may subtract, `METRIC - NAME`: the verdict by both tables and a confidence."""

EACH = "each"
"""What stands before a column and a gate that holds for each of its values."""

OWN_VERDICTS: dict[str, str] = {}
"""Metrics whose gates a feature decides: the module whose `verdict` does, imported for it."""

PREFIXES: dict[str, str] = {}
"""What may stand before a gate, `NAME COLUMN: GATE`: the module whose `verdict` decides it then."""

CHECKS: list[Callable[[Gate, Collection[SuiteInfo], Collection[SuiteInfo]], None]] = []
"""Raise GateError for a gate, by the suites that have gates and those that it is about."""
