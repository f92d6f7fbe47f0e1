"""Runs of earlier sessions are reported once, as they were kept."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_osmosis.rollouts.cached import ResultCache, StoreCache
from pytest_osmosis.run_result import RunId, RunResult

SUITES: Any = {"s": SimpleNamespace(spec=SimpleNamespace(marked=False))}
RUN, OTHER = RunId("s", 3, 0), RunId("s", 3, 1)
CACHED = RunResult("s", 3, 0, passed=True, cached=True)


class Store:
    """A store that keeps one run."""

    def has(self, run: RunId) -> bool:
        return run == RUN

    log, resumes = None, True

    def kept(self, run: RunId) -> RunResult | None:
        return CACHED if run == RUN else None


def added() -> ResultCache:
    cache = ResultCache(SUITES)
    cache.add(RUN, CACHED)
    return cache


def stored() -> ResultCache:
    store: Any = Store()
    return StoreCache(SUITES, store)


@pytest.mark.parametrize("make", [added, stored])
def test_a_run_that_was_kept_is_known_and_taken_as_it_was(make: Any) -> None:
    cache = make()
    assert RUN in cache and OTHER not in cache
    assert cache.take(RUN).result == CACHED


def test_a_run_that_was_taken_is_still_known() -> None:
    cache = added()
    cache.take(RUN)
    assert RUN in cache


def test_an_empty_cache_knows_no_run() -> None:
    assert RUN not in ResultCache(SUITES)
