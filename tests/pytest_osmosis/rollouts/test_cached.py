"""Runs of earlier sessions are reported as they were kept."""

from types import SimpleNamespace
from typing import Any

from pytest_osmosis.rollouts.cached import ResultCache
from pytest_osmosis.run_result import RunId, RunResult

SUITES: Any = {"s": SimpleNamespace(spec=SimpleNamespace(scored_by_test=False))}
RUN, OTHER = RunId("s", 3, 0), RunId("s", 3, 1)
CACHED = RunResult("s", 3, 0, passed=True, cached=True)


def test_a_run_that_was_kept_is_known_and_reported_as_it_was():
    cache = ResultCache(SUITES, runs={RUN: CACHED})
    assert RUN in cache.runs and OTHER not in cache.runs
    assert cache.record(RUN).result == CACHED
    assert RUN in cache.runs  # the engine may ask for it after its item has


def test_an_empty_cache_knows_no_run():
    assert RUN not in ResultCache(SUITES).runs
