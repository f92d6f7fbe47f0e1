"""The hooks that `pytest-osmosis` calls: what a conftest.py or another plugin may change.

All are called in the process that they concern: rows and agents where items run, results before
they are reported there, the summary in the one process that has a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluggy import HookspecMarker

if TYPE_CHECKING:
    import pytest

    from .run_result import RunResult
    from .suite_results import EvalResult
    from .user_code.user_hooks import UserHooks

hookspec = HookspecMarker("pytest")


@hookspec(firstresult=True)
def pytest_osmosis_load_rows(
    path: Path, config: pytest.Config
) -> Iterable[Mapping[str, Any]] | None:
    """Rows of a data file in a format of your own; None leaves it to the built-in readers.

    Each row is a mapping with `system_prompt`, `user_prompt` and whatever else. It is called once a
    process and must give the same rows in the same order each time.
    """


@hookspec(firstresult=True)
def pytest_osmosis_row_name(
    row: Mapping[str, Any], row_index: int, config: pytest.Config
) -> str | None:
    """A unique name for a row in node ids; None keeps `row-<index>`, or the `id` column."""


@hookspec(firstresult=True)
def pytest_osmosis_build_agent(agent: object, spec: str, config: pytest.Config) -> object | None:
    """The agent to evaluate, made from what `--osmosis-agent` names; None uses that itself."""


@hookspec(firstresult=True)
def pytest_osmosis_classify_error(error: BaseException, config: pytest.Config) -> str | None:
    """Whose an error is that an agent raised: "agent" (the run failed) or "provider" (an error).

    None keeps the default: an error of the endpoint is the provider's, any other the agent's.
    It is called in the thread that runs rollouts.
    """


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


def hooks_of(config: pytest.Config) -> UserHooks:
    """Return the hooks that are implemented in this session, as plain callables."""
    from .user_code.user_hooks import UserHooks

    caller = config.hook

    def build_agent(agent: object, spec: str) -> Any:
        return caller.pytest_osmosis_build_agent(agent=agent, spec=spec, config=config)

    def classify_error(error: BaseException) -> Any:
        return caller.pytest_osmosis_classify_error(error=error, config=config)

    def row_name(row: Mapping[str, Any], row_index: int) -> Any:
        return caller.pytest_osmosis_row_name(row=row, row_index=row_index, config=config)

    def load_rows(path: Path) -> Any:
        return caller.pytest_osmosis_load_rows(path=path, config=config)

    def wanted(name: str, call: Callable[..., Any]) -> Any:
        return call if getattr(caller, f"pytest_osmosis_{name}").get_hookimpls() else None

    return UserHooks(
        load_rows=wanted("load_rows", load_rows),
        row_name=wanted("row_name", row_name),
        build_agent=wanted("build_agent", build_agent),
        classify_error=wanted("classify_error", classify_error),
    )
