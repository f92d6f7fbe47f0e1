"""Where a metric's two bounds can still end, and what every tracker of one shares.

Knows no metrics: those are in `tracking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .interval_bounds import Box

Span = tuple[float, float]
"""Lowest and highest."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended."""

    scores: Mapping[str, float | None]
    """Score per eval function; None or absent is unknown."""
    error: bool
    """Whether it ended in an error."""
    measures: Mapping[str, float | None]
    """duration_s, tokens and cost_usd."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Between what the two bounds of a metric can end."""

    worst: Span
    """The bound with unknown runs at their worst."""
    best: Span
    """The bound with unknown runs at their best."""

    def shifted(self, worst: float, best: float) -> Reach:
        """Both moved: what subtracting a baseline does."""
        return Reach(
            (self.worst[0] + worst, self.worst[1] + worst),
            (self.best[0] + best, self.best[1] + best),
        )


class Tracker:
    """What all trackers share: how many runs there are, and how many ended."""

    def __init__(self, runs: int) -> None:
        """`runs` is how many the tracker will see in all."""
        self.runs = runs
        self.ended = 0

    @property
    def left(self) -> int:
        """Runs that have not ended yet."""
        return self.runs - self.ended

    def add(self, row: int, run: Run) -> None:
        """Notes a run that ended."""
        self.ended += 1
        self._note(row, run)

    def _note(self, row: int, run: Run) -> None:
        raise NotImplementedError

    def reach(self) -> Reach:
        """Between what the bounds can end."""
        raise NotImplementedError

    def boxes(self) -> tuple[Box, Box] | None:
        """Between what each row's value can end, for the worst and best bound; None: unknown."""
        return None
