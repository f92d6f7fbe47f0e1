"""The files that a session was asked for, and what writes each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..results import EvalResult
from ..spec import SessionSpec

Sections = Mapping[tuple[str, int, int], str]
"""What the items of runs printed, by the runs' keys."""
Writer = Callable[[EvalResult, Path, Sections], None]
"""Writes one file; OSError when it cannot be written."""


def wanted(spec: SessionSpec) -> Iterator[tuple[Path, Writer]]:
    """The reports that were asked for; each writer is imported when it writes."""
    paths = spec.reports
    asked = (
        (spec.output, _json),
        (paths.markdown, _markdown),
        (paths.html, _html),
        (paths.runs_table, _runs_table),
    )
    return ((path, write) for path, write in asked if path is not None)


def in_actions() -> bool:
    """Whether the session runs in GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def step_summary() -> Path | None:
    """Where GitHub Actions collects what a step has to say."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(path) if path and in_actions() else None


def wants_sections(spec: SessionSpec) -> bool:
    """Whether any report shows what the items of runs printed."""
    return bool(spec.reports.markdown or spec.reports.html or step_summary())


def _json(result: EvalResult, path: Path, sections: Sections) -> None:
    from . import json_report

    json_report.write(result, path)


def _markdown(result: EvalResult, path: Path, sections: Sections) -> None:
    from . import markdown

    markdown.write(result, path, sections)


def _html(result: EvalResult, path: Path, sections: Sections) -> None:
    from . import html

    html.write(result, path, sections)


def _runs_table(result: EvalResult, path: Path, sections: Sections) -> None:
    from . import runs_table

    runs_table.write(result, path)
