"""What differs between two sessions: metrics, rows, and how sure that is. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.metrics import is_repeated
from ...escaping import counted, number_text, p_value, percent
from ...reports.highlights import figure_text
from ...reports.tables import Table, interval_title, span
from ...verdicts import ROW_VERDICTS, Paired, RowVerdict

RATE = 0.1
"""The share of rows called regressed or improved, of all that are, which chance may explain."""
FEWEST_RUNS = 3
"""With fewer runs on a side, no row is."""


@dataclass(frozen=True, slots=True)
class Count:
    """The runs of one row, sorted by what is known of them."""

    passes: int
    """Runs with a score at or above the threshold."""
    known: int
    """Runs that count."""
    unknown: int
    """Runs that ended and are left out."""

    @property
    def is_pass(self) -> bool:
        """Whether the row passes: most of its runs that count do, half being enough."""
        return 2 * self.passes >= self.known

    @property
    def runs(self) -> int:
        """All of the row's runs that ended."""
        return self.known + self.unknown

    def __str__(self) -> str:
        return f"{self.passes}/{self.known}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric in both sessions, over the matched rows."""

    metric: str
    """"mean", "pass@1", "pass^3", …"""
    current: float
    """This session's figure."""
    baseline: float
    """The baseline's figure."""
    paired: Paired
    """current - baseline with interval and p."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row whose mean score differs between the sessions."""

    name: str
    """The row's name."""
    row_index: int
    """Its index in the data."""
    baseline_row_index: int
    """Its index in the baseline's data."""
    current: Count
    """Its runs here."""
    baseline: Count
    """Its runs there."""
    mean: float
    """The mean of its scores here."""
    baseline_mean: float
    """Likewise there."""
    p: float | None
    """Of the exact permutation test of its runs; None with too few of them."""
    verdict: RowVerdict = "changed"
    """"changed" where chance may explain it."""
    answer: str | None = None
    """What a run that fits the change answered here; None when answers are not kept."""
    baseline_answer: str | None = None
    """Likewise there."""

    @property
    def difference(self) -> float:
        """By how much its mean rose."""
        return self.mean - self.baseline_mean

    @property
    def is_flip(self) -> bool:
        """Whether it passes on one side only, most of its runs that count deciding."""
        return self.current.is_pass != self.baseline.is_pass

    @property
    def figures(self) -> str:
        """The runs that pass, there and here, and p: "5/5 → 1/5, p of its runs 0.048".

        The means instead, where these say more.
        """
        p = "" if self.p is None else f", p of its runs {p_value(self.p)}"
        sides = (self.baseline, self.baseline_mean), (self.current, self.mean)
        if all(count.passes == round(mean * count.known, 9) for count, mean in sides):
            return f"{self.baseline} → {self.current}{p}"
        return " → ".join(number_text(mean) for _, mean in sides) + p


@dataclass(frozen=True, slots=True)
class Comparison:
    """One eval function in both sessions."""

    eval_fn: str
    """Its name."""
    rows: int
    """Rows compared."""
    differences: tuple[Difference, ...]
    """The mean's, then those of pass@k, then those of pass^k."""
    changes: tuple[Change, ...]
    """The rows that differ: by p, then by size."""
    tested: int
    """Rows whose runs could show a change."""
    short: int
    """Rows that could not, for having too few runs on a side."""
    clusters: tuple[Change, ...] | None = None
    """The clusters of rows that differ, likewise; each with the row of it that moved most.

    None where rows are independent; else what is tested is clusters.
    """

    @property
    def unit(self) -> str:
        """What has changed or not: a row, or a cluster of rows."""
        return "row" if self.clusters is None else "cluster"

    @property
    def moved(self) -> tuple[Change, ...]:
        """The rows that differ, or the clusters."""
        return self.changes if self.clusters is None else self.clusters

    @property
    def shown(self) -> list[Change]:
        """What chance does not explain, the worse first: the others are counted alone."""
        return [*self.of("regressed"), *self.of("improved")]

    def of(self, verdict: RowVerdict) -> list[Change]:
        """Return the rows with a verdict, or the clusters."""
        return [change for change in self.moved if change.verdict == verdict]

    @property
    def counts(self) -> str:
        """How many rows have which verdict: "1 regressed, 3 others changed; chance explains them".

        Nothing where no row differs; nothing of chance where no row's runs could show more.
        """
        words = ROW_VERDICTS if not self.shown else ("regressed", "improved")
        found = [f"{len(self.of(word))} {word}" for word in words if self.of(word)]
        others = len(self.of("changed"))
        if others and self.shown:
            found.append(f"{counted(others, 'other')} changed")
        if others and self.tested:
            return f"{', '.join(found)}; chance explains {'it' if others == 1 else 'them'}"
        return ", ".join(found)

    @property
    def rule(self) -> str:
        """By what rows are called regressed or improved, in a sentence."""
        few = f"fewer than {FEWEST_RUNS} runs on a side"
        parts = []
        if self.tested:
            parts.append(
                f"regressed, improved: by an exact permutation test of the {self.unit}'s runs, "
                f"Benjamini-Hochberg at {RATE:.0%} over {counted(self.tested, self.unit)} "
                "that could show a change"
            )
        elif not self.short:
            parts.append(f"no {self.unit}'s runs could show more than chance")
        if self.short:
            rows = counted(self.short, "row")
            parts.append(
                f"{rows} with {few} can show nothing, with {FEWEST_RUNS} or more they could"
            )
        mean = self.differences[0].paired.interval if self.differences else None
        if self.of("regressed") and mean is not None and mean.high >= 0.0:
            parts.append(
                f"the fall of these {self.unit}s is more than chance, that of the mean need not be"
            )
        return "; ".join(parts)

    @property
    def is_unchanged(self) -> bool:
        """Whether no metric differs, and no row."""
        return not self.changes and all(not each.paired.difference for each in self.differences)

    @property
    def verdict(self) -> str:
        """What it comes to in a few words, by the interval of the mean's difference."""
        if not self.differences:
            return "no row is in both"
        if self.is_unchanged:
            return "no difference"
        interval = self.differences[0].paired.interval
        if interval is None or interval.low <= 0.0 <= interval.high:
            rows = len(self.of("regressed"))
            fell = f"{counted(rows, self.unit)} regressed, " if rows else ""
            return f"{fell}no significant difference" + (" of the mean" if rows else "")
        return "better" if interval.low > 0.0 else "worse"

    @property
    def in_short(self) -> str:
        """What it comes to, by the mean."""
        if not self.differences:
            return self.verdict
        mean, interval = self.differences[0], self.differences[0].paired.interval
        known = ""
        if interval is not None:
            known = f" ({percent(interval.confidence)} {span(interval, signed=True)})"
        figures = f"{figure_text(mean.baseline)} → {figure_text(mean.current)}"
        return f"{self.verdict}: mean {figures}, {figure_text(mean.paired.difference, '+')}{known}"

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
