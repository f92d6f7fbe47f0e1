"""Runs of earlier sessions are reported once, as they were kept."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_osmosis.rollouts.cached import ResultCache, StoreCache
from pytest_osmosis.run_result import CachedRun, RunId, RunResult

SUITES: Any = {"s": SimpleNamespace(spec=SimpleNamespace(marked=False))}
RUN, OTHER = RunId("s", 3, 0), RunId("s", 3, 1)
CACHED = CachedRun(RunResult("s", 3, 0, passed=True, cached=True), "why")


class Store:
    """A store that keeps one run."""

    def has(self, run: RunId) -> bool:
        return run == RUN

    def kept(self, run: RunId) -> CachedRun | None:
        return CACHED if run == RUN else None

    def places(self) -> dict[str, Any]:
        return {}


def added() -> ResultCache:
    cache = ResultCache(SUITES, dict)
    cache.add(RUN, CACHED)
    return cache


def stored() -> ResultCache:
    store: Any = Store()
    return StoreCache(SUITES, store)


@pytest.mark.parametrize("make", [added, stored])
def test_a_run_that_was_kept_is_known_and_taken_as_it_was(make: Any) -> None:
    cache = make()
    assert RUN in cache and OTHER not in cache
    record = cache.take(RUN)
    assert (record.result, record.explanation) == (CACHED.result, "why")


def test_a_run_that_was_taken_is_still_known() -> None:
    cache = added()
    cache.take(RUN)
    assert RUN in cache


def test_an_empty_cache_knows_no_run() -> None:
    assert RUN not in ResultCache(SUITES, dict)
