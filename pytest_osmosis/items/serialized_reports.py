"""Results of runs in reports that cross to another process, or go into a log of reports, as JSON.

Within a process a report carries the `RunResult` itself. Texts that a model wrote may hold what
execnet refuses (half a character), so what crosses is ASCII.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from ..run_result import REPORT_FIELD, RunResult


class SerializedReports:
    """A plugin of every process of an evaluation."""

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        """Put the JSON of a result in its place."""
        data = yield
        result = data.get(REPORT_FIELD) if isinstance(data, dict) else None
        if isinstance(result, RunResult):
            data[REPORT_FIELD] = result.to_json()
        return data

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self) -> Generator[None, Any, Any]:
        """Put the result in the place of its JSON."""
        report = yield
        text = getattr(report, REPORT_FIELD, None)
        if isinstance(text, str):
            setattr(report, REPORT_FIELD, RunResult.from_json(text))
        return report
