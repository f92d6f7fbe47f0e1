"""What a run may come to, in one word, and how each word is shown.

Pages have the words, with a meaning each, in `features/html/page/data.js`, and their colours in
`theme.css` beside it; what a workspace calls them is in `features/workspace_results/report.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Outcome = Literal["passed", "below", "raised", "timeout", "error", "not run"]

SKIPPED = "skipped"
"""The kind of error of a run whose test was skipped: nothing has judged it."""


class OutcomeStyle(NamedTuple):
    """How an outcome is shown, in every place."""

    sign: str
    color: str
    """In a terminal, as pytest's writer names it."""
    is_error: bool = False
    """Whether nothing was scored for the fault of somebody."""


OUTCOMES: Mapping[Outcome, OutcomeStyle] = {
    "passed": OutcomeStyle("✓", "green"),
    "below": OutcomeStyle("-", "yellow"),
    "raised": OutcomeStyle("✕", "purple", is_error=True),
    "timeout": OutcomeStyle("~", "cyan", is_error=True),
    "error": OutcomeStyle("!", "red", is_error=True),
    "not run": OutcomeStyle("·", "light"),
}
"""The best first."""


def outcome_of(error_type: str | None, error_kind: str | None, *, passed: bool) -> Outcome:
    """Return what a run came to, whatever gates there are."""
    if error_type is None:
        return "passed" if passed else "below"
    if error_type == "agent":
        return "raised"
    if error_kind == SKIPPED:
        return "not run"
    return "timeout" if error_type == "timeout" else "error"
