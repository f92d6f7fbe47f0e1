"""A session in GitHub Actions: annotations at its end, and the Markdown report as step summary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...session.seams import Feature

if TYPE_CHECKING:
    import pytest

    from ...reports.formats import Sections
    from ...suite_results import EvalResult


class GitHubFeature(Feature):
    """Tells GitHub what came of a session."""

    def __init__(self, config: pytest.Config, part: bool) -> None:
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        self._summary = Path(path) if path else None
        self.shows_environment = self._summary is not None
        self._problem: str | None = None

    def write(self, result: EvalResult, sections: Sections) -> Iterable[str]:
        """Append the report to the step summary; that this fails is no problem of the session."""
        from .github import append_summary

        if self._summary is not None:
            try:
                append_summary(result, self._summary, sections)
            except OSError as error:
                self._problem = error.strerror or str(error)
        return ()

    def lines(self, result: EvalResult) -> Iterator[str]:
        """Yield the annotations, and why the step summary could not be written."""
        from .github import annotated

        yield from annotated(result)
        if self._problem is not None:
            yield f"warning: cannot write the step's summary: {self._problem}"
