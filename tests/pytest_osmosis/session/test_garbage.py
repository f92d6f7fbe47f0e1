"""The garbage collector is as it was once a session is over."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pytest_osmosis.session.garbage import YOUNG, collect_less


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_what_is_there_is_left_alone_for_a_while() -> None:
    gc.set_threshold(700, 10, 10)
    end = collect_less()
    assert gc.get_freeze_count() > 0 and gc.get_threshold() == (YOUNG, 10, 10)
    end()
    assert gc.get_freeze_count() == 0 and gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("first", [0, 2 * YOUNG])
def test_whoever_collects_less_already_is_let_alone(first: int) -> None:
    gc.set_threshold(first, 5, 5)
    end = collect_less()
    assert gc.get_threshold() == (first, 5, 5)
    end()
    assert gc.get_threshold() == (first, 5, 5)


def test_a_threshold_that_was_set_meanwhile_stays() -> None:
    gc.set_threshold(700, 10, 10)
    end = collect_less()
    gc.set_threshold(800, 10, 10)
    end()
    assert gc.get_threshold() == (800, 10, 10)
