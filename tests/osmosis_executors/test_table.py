"""Executors by their names."""

from __future__ import annotations

import pytest

from osmosis_executors.local import LocalExecutor
from osmosis_executors.table import EXECUTOR_OPTIONS, NoExecutor, choose_executor


def test_an_executor_is_found_by_its_name_and_takes_no_option_of_another():
    assert isinstance(choose_executor("local"), LocalExecutor)
    for option in EXECUTOR_OPTIONS:
        with pytest.raises(NoExecutor, match=rf"^--{option.name} is for --executor ray$"):
            choose_executor("local", {option.field: 2})
