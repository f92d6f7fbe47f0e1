"""Two score tables side by side: the rows that both have, in one order. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...analysis.score_table import ScoreTable
    from ...analysis.statistics.estimators import Flags
    from .row_matching import Matching


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows that two sessions have in common, in one order; both judged by one's thresholds."""

    current: ScoreTable
    baseline: ScoreTable

    @classmethod
    def of(cls, current: ScoreTable, baseline: ScoreTable, matching: Matching) -> Matched:
        """Return these rows of two sessions."""
        here, there = np.array(matching.pairs, dtype=np.intp).reshape(-1, 2).T
        return cls(current.take(here), at_thresholds(baseline, current).take(there))

    def __len__(self) -> int:
        """How many there are."""
        return len(self.current.rows)

    def where(self, rows: Flags) -> Matched:
        """Return these rows alone."""
        at = np.flatnonzero(rows)
        return Matched(self.current.take(at), self.baseline.take(at))

    def with_values(self, eval_fn: str) -> Matched:
        """Return the rows that a function has values of on both sides."""
        one, other = (table.row_scores(eval_fn).runs for table in (self.current, self.baseline))
        return self.where(np.minimum(one, other) > 0)

    def has_score(self, eval_fn: str) -> bool:
        """Return whether the function has a score on both sides."""
        return self.current.has_score(eval_fn) and self.baseline.has_score(eval_fn)


def at_thresholds(tally: ScoreTable, other: ScoreTable) -> ScoreTable:
    """The same runs, judged by another table's pass thresholds."""
    return replace(
        tally,
        pass_threshold=other.pass_threshold,
        own=other.own,
        thresholds={name: other.thresholds.get(name) for name in tally.thresholds},
    )
