"""The report that a run has written, as a program: what the platform keeps of it.

`python -m osmosis_platform.execution.report_taking FILE TARGET` writes the fields that are known,
and the figures. Its exit status is that of `TAKEN`, or another one where limits are in the way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_osmosis.reports.json_figures import CoreFunction
from pytest_osmosis.reports.json_models import Report, Suite

from .run_figures import metrics_of
from .tail import open_written

TAKEN, NO_REPORT, ABSENT = 0, 3, 4
REPORT_BYTES = 32 * 1024 * 1024
"""Of what is kept: of some 50,000 runs."""
MOST_VALUES = 3_000_000
"""In it: many small ones take much more memory than they have bytes."""
_SETTINGS_BYTES = 64 * 1024
_CHARACTERS = 2000
"""Of why an evaluation has halted."""


def main(source: str, target: str) -> int:
    """Take a report; return the exit status."""
    try:
        with open_written(Path(source)) as file:
            report = read_report(file.read())
        metrics = metrics_of(report)
    except FileNotFoundError:
        return ABSENT
    except (ValueError, RecursionError):  # no UTF-8, no JSON, not the models', contradictory
        return NO_REPORT
    halted = (report.summary.halted or "")[:_CHARACTERS]
    kept: dict[str, Any] = {"metrics": metrics, "halted": halted}
    text = known_fields(report)
    if len(text) <= REPORT_BYTES and text.count(",") <= MOST_VALUES:
        kept["report"] = json.loads(text)
    Path(target).write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
    return TAKEN


def read_report(text: bytes) -> Report:
    """Return the report with `?` for each half of a character, which no database or answer holds.

    A model's text may have them, and our reports keep them as escapes.
    """
    try:
        return Report.model_validate_json(text)
    except ValueError:
        whole = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")
        return Report.model_validate_json(whole)


def known_fields(report: Report) -> str:
    """Return the report without what its models do not say."""
    every: list[Report | Suite] = [report, *report.suites, *report.companions]
    for suite in every:
        if len(json.dumps(suite.config.settings)) > _SETTINGS_BYTES:
            suite.config.settings = {}
        _keep_figures(suite.summary.eval_fns.values())
        for column in getattr(suite, "by", ()):
            for value in column.values:
                _keep_figures(value.eval_fns.values())
    return report.model_dump_json(exclude_unset=True, by_alias=True)


def _keep_figures(functions: Iterable[CoreFunction]) -> None:
    """Of further fields keep numbers, as `pass_at_2` is one."""
    for function in functions:
        more = function.model_extra or {}
        for name in [*more]:
            if not isinstance(more[name], int | float | None):
                del more[name]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
