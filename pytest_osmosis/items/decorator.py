"""`osmosis`: the marker of test functions as a typed decorator, and its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

MARKER = "osmosis"
"""The marker of all items of an evaluation."""

Rows = Iterable[Mapping[str, Any]]


def osmosis(
    *test: object,
    agent: str | Callable[..., Any] | object | None = None,
    data: str | os.PathLike[str] | Rows | Callable[[], Rows] | None = None,
    model: str | None = None,
    n: int | None = None,
    pass_threshold: float | None = None,
    limit: int | None = None,
    offset: int | None = None,
    max_turns: int | None = None,
    shared: bool = True,
) -> pytest.MarkDecorator:
    """Return the marker for a test function or class that takes `rollout: Rollout`.

    The function is run on every row and run of `data` (a path relative to the test file, rows, or
    a function that returns rows). What is left out comes from options and the ini file. Functions
    over the same agent, data, model and runs share their rollouts unless `shared` is False.
    """
    given = locals()  # the parameters alone
    if given.pop("test"):
        pytest.fail("@osmosis takes names in parentheses: @osmosis(agent=..., data=...)", False)
    named = {name: value for name, value in given.items() if value is not None}
    return pytest.mark.osmosis.with_args(**named)
