"""What an evaluation has left: its JSON report, or why it has none."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .figures import metrics_of
from .untrusted import open_written

REPORT_BYTES = 512 * 1024 * 1024
_END_BYTES = 64 * 1024
"""Of the output, in which the mistake is looked for."""
_USAGE_ERROR = re.compile(r"ERROR: (.+)")


class ReportProblem(Exception):
    """A report that is not taken; a sentence."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A report, and what it says."""

    report: dict[str, Any]
    metrics: dict[str, Any]
    halted: str
    """What ended the evaluation before its end; empty for nothing."""


def read_outcome(path: Path, clean: Callable[[str], str]) -> Outcome | None:
    """Return what the file of a report holds; None where there is none.

    Raises:
        ReportProblem: for one that is too large, or no report of this version.
    """
    from pytest_osmosis.reports.json_models import Report

    try:
        with open_written(path) as file:
            if os.fstat(file.fileno()).st_size > REPORT_BYTES:
                raise ReportProblem("the report is larger than the platform takes")
            found = _without_surrogates(clean(file.read(REPORT_BYTES).decode("utf-8")))
        report = Report.model_validate_json(found)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):  # no UTF-8, no JSON, not the models'
        raise ReportProblem("the report is not one of this version") from None
    return Outcome(json.loads(found), metrics_of(report), report.summary.halted or "")


def _without_surrogates(text: str) -> bytes:
    """Return the JSON with `?` for each half of a character, which no database or answer holds.

    A model's text may have them, and our reports keep them as escapes.
    """
    return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")


def last_mistake(output: Path) -> str | None:
    """Return what pytest said last of a mistake."""
    with output.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
        found = _USAGE_ERROR.findall(file.read().decode("utf-8", "replace"))
    return found[-1] if found else None
