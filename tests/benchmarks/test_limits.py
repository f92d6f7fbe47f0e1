"""What a rollout crosses may only become less: counts that no machine changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import main_job
from benchmarks.bench import Bench
from benchmarks.crossed import LIMITS, crossing, messages_of_a_rollout

DONT_WRITE = "PYTHONDONTWRITEBYTECODE"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench that takes the bytecode that there is: nothing is timed."""
    with Bench.opened(tmp_path, repeats=1, quick=True) as bench:
        del bench.env["PYTHONPYCACHEPREFIX"]
        if DONT_WRITE in os.environ:
            bench.env[DONT_WRITE] = os.environ[DONT_WRITE]
        yield bench


@pytest.mark.slow
def test_a_rollout_that_passes_crosses_no_more_of_our_code_than_before(bench: Bench):
    """When this fails, your change has made each rollout dearer: see what it calls besides.

    When you have made it cheaper, lower `LIMITS`.
    """
    found = crossing(bench)
    listed = "\n".join(f"{count} {name}" for name, count in sorted(found.calls.items()))
    assert len(found.calls) <= LIMITS.functions, listed
    assert len(found.modules) <= LIMITS.modules, listed
    assert sum(found.calls.values()) <= LIMITS.calls, listed
    assert len(found.values) <= LIMITS.values, sorted(found.values)


@pytest.mark.slow
def test_a_worker_sends_no_more_messages_of_a_rollout_than_before(bench: Bench):
    assert messages_of_a_rollout(bench) <= LIMITS.messages


@pytest.mark.slow
def test_the_main_job_needs_no_more_of_our_code_than_before(bench: Bench):
    """When this fails, see whether the main job needs what your change imports or calls.

    When you have made it smaller, lower `LIMITS`.
    """
    size, limits = main_job.size(bench), main_job.LIMITS
    assert size.modules <= limits.modules
    assert size.imported <= limits.imported
    # Which functions wait for others depends on who is first: a fiftieth is left for these.
    assert size.called <= limits.called * 1.02
