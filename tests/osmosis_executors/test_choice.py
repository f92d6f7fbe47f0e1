"""Executors by their names."""

from __future__ import annotations

import pytest

from osmosis_executors.choice import NoExecutor, choose_executor
from osmosis_executors.local import LocalExecutor


def test_an_executor_is_found_by_its_name_and_a_wrong_choice_is_one_sentence() -> None:
    assert isinstance(choose_executor("local"), LocalExecutor)
    with pytest.raises(NoExecutor, match=r"^--ray-address is for --executor ray$"):
        choose_executor("local", ray_address="auto")
    with pytest.raises(NoExecutor, match=r"^there is no executor locl; there is local"):
        choose_executor("locl")
