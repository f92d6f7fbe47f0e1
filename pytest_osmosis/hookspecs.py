"""The hooks that `pytest-osmosis` calls: what a conftest.py or another plugin may change.

Both are called in the process that they concern: results before they are reported there, the
summary in the one process that has a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pluggy import HookspecMarker

if TYPE_CHECKING:
    import pytest

    from .run_result import RunResult
    from .suite_results import EvalResult

hookspec = HookspecMarker("pytest")


@hookspec(firstresult=True)
def pytest_osmosis_run_result(
    result: RunResult, messages: list[dict[str, Any]], config: pytest.Config
) -> RunResult | None:
    """Change a run's result before it is reported: return `dataclasses.replace(result, ...)`.

    None keeps it. Suite, row and run must stay as they are.
    """


@hookspec
def pytest_osmosis_summary(result: EvalResult, config: pytest.Config) -> str | list[str] | None:
    """Lines to add to the terminal summary."""
