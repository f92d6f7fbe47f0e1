"""What is found before something is submitted: refusals, warnings and what could not be checked.

Each is a sentence with the step that helps. Sorted, the first to look at comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial


class Severity(IntEnum):
    """How much a finding matters; the lowest first."""

    REFUSED = 0
    """Nothing is sent."""
    WARNING = 1
    """Said above the question."""
    NOT_CHECKED = 2
    """What only the platform can tell."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    severity: Severity
    code: str
    """For programs, as `dirty_tree`."""
    message: str
    """A sentence, printable."""
    cure: str = ""
    """What to do about it, where there is something."""

    def __str__(self) -> str:
        return self.message + (f": {self.cure}" if self.cure else "")

    def document(self) -> dict[str, str]:
        """Return the finding as JSON."""
        return {
            "severity": self.severity.name.lower(),
            "code": self.code,
            "message": self.message,
            "cure": self.cure,
        }


refusal = partial(Finding, Severity.REFUSED)
warning = partial(Finding, Severity.WARNING)
not_checked = partial(Finding, Severity.NOT_CHECKED)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return them with the most important first, else as they were found."""
    return sorted(findings, key=lambda finding: finding.severity)


def strictly(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield them with each warning as a refusal, as `--strict` has it."""
    for finding in findings:
        is_warning = finding.severity is Severity.WARNING
        yield replace(finding, severity=Severity.REFUSED) if is_warning else finding
