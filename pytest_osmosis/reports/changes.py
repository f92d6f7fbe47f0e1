"""What changed against a baseline, as every report says it. Pure."""

from __future__ import annotations

from dataclasses import fields

from ..analysis.metrics import is_repeated
from ..escaping import p_value
from ..verdicts import Comparison
from .highlights import figure_text
from .tables import Table, interval_title, span


class Against(Comparison):
    """What changed against a baseline, for one eval function, as people read it."""

    @property
    def is_unchanged(self) -> bool:
        """Whether no metric differs, and no row."""
        return not self.changes and all(not each.paired.difference for each in self.differences)

    @property
    def in_short(self) -> str:
        """What it comes to, by the mean."""
        if not self.differences:
            return "no row is in both"
        mean, interval = self.differences[0], self.differences[0].paired.interval
        known, word = "", "no significant difference"
        if interval is not None:
            known = f" ({100 * interval.confidence:g}% {span(interval, signed=True)})"
            word = "better" if interval.low > 0 else "worse" if interval.high < 0 else word
        figures = f"{figure_text(mean.baseline)} → {figure_text(mean.current)}"
        return f"{word}: mean {figures}, {figure_text(mean.paired.difference, '+')}{known}"

    @property
    def table(self) -> Table:
        """The metrics there and here."""
        title = interval_title([each.paired.interval for each in self.differences])
        return Table(
            ["metric", "baseline", "current", "difference", title, "p"],
            [
                [
                    each.metric,
                    figure_text(each.baseline),
                    figure_text(each.current),
                    figure_text(each.paired.difference, "+"),
                    span(each.paired.interval, signed=True),
                    "" if each.paired.p is None else p_value(each.paired.p),
                ]
                for each in self.differences
                if not is_repeated(each.metric)
            ],
        )


def against(comparison: Comparison) -> Against:
    """One eval function here and in the baseline."""
    return Against(*(getattr(comparison, each.name) for each in fields(comparison)))
