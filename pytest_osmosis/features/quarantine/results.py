"""What became of the rows that decide nothing, as every report shows it; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...escaping import counted, escape_control_chars
from ...run_result import row_label
from ...suite_results import Section, SuiteResult

SHOWN = 5
"""Rows that a sentence lists."""


@dataclass(frozen=True)
class Quarantine(Section):
    """The rows that were set aside, by their names."""

    rows: tuple[str, ...]
    passing: tuple[str, ...]
    """Those of which every run has passed: they may come back."""

    def document(self) -> dict[str, Any]:
        """Return its value in the JSON report."""
        return {"rows": list(self.rows), "passing": list(self.passing)}

    def joined(self, others: Iterable[Section], whole: SuiteResult) -> Section | None:
        """Return the section of a whole suite, computed again."""
        return quarantined(whole).sections.get("quarantine")

    def lines(
        self, suite: SuiteResult, *, is_titled: bool, width: int, verbose: bool
    ) -> Iterable[str]:
        """Return its lines in the summary."""
        return self.in_short()

    def markdown(self) -> Iterable[str]:
        """Return its lines in the Markdown report."""
        from ..markdown.report import escaped

        return (f"- {escaped(line)}" for line in self.in_short())

    def in_short(self) -> Iterable[str]:
        """Return how many rows decide nothing, and which of them pass."""
        if self.rows:
            yield (
                f"quarantine: {counted(len(self.rows), 'row')} left out of figures and gates: "
                f"{_listed(self.rows)}"
            )
        if self.passing:
            one = len(self.passing) == 1
            verb, it = ("passes", "it") if one else ("pass", "them")
            yield f"quarantine: {_listed(self.passing)} {verb} every run now: take {it} out of it"


def _listed(names: tuple[str, ...]) -> str:
    more = ", …" if len(names) > SHOWN else ""
    return ", ".join(map(escape_control_chars, names[:SHOWN])) + more


def quarantined(suite: SuiteResult) -> SuiteResult:
    """Return the suite with the section, where it has such rows."""
    aside = [row for row in suite.rows if suite.info.is_quarantined(row.row_index, row.row_id)]
    if not aside:
        return suite
    n = suite.info.n
    passing = [row for row in aside if len(row.runs) == n and all(run.passed for run in row.runs)]
    section = Quarantine(
        tuple(row_label(row.row_index, row.row_id) for row in aside),
        tuple(row_label(row.row_index, row.row_id) for row in passing),
    )
    return replace(suite, sections={**suite.sections, "quarantine": section})
