"""Which scheduler executes which run, and what a run that is executed writes."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from osmosis_ai.secret import Redactor, Secret
from osmosis_platform.database.models import now
from osmosis_platform.execution import writing
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.writing import LOOK_S, NotToGoOn, RunWatch, RunWriter
from tests.support.platform_server import PlatformServer
from tests.support.submitted_runs import log_of, run_of

SECRET = "sk-the-value-of-a-secret"


def test_the_oldest_evaluation_that_waits_is_taken_by_one_scheduler(
    platform: PlatformServer, claims: Claims
):
    moment = now()
    newer = platform.add_run(created_at=moment)
    older = platform.add_run(created_at=moment - timedelta(seconds=1))
    platform.add_run("training")
    for status in ("finished", "stopped", "failed"):
        platform.add_run(status=status)
    other = replace(claims, owner="second")
    assert [claims.take(), other.take(), claims.take()] == [older, newer, None]
    run = run_of(platform, older)
    assert (run.status, run.executed_by) == ("running", "first")
    assert run.started_at is not None


def test_a_run_whose_scheduler_is_gone_is_taken_again_and_no_longer_its_own(
    platform: PlatformServer, claims: Claims
):
    run_id = platform.add_run()
    other = replace(claims, owner="second")
    assert claims.take() == run_id
    assert (claims.keep(run_id), other.take(), other.status(run_id)) == (None, None, "running")
    interrupt(platform, run_id)
    assert other.take() == run_id
    assert (claims.keep(run_id), claims.status(run_id)) == ("running", "running")
    assert log_of(platform, run_id)[0].startswith("warning run: interrupted: the platform was")
    RunWriter(claims, run_id).end("failed", "too late", step="run")
    assert run_of(platform, run_id).status == "running"
    other.give_back(run_id)
    assert claims.take() == run_id


def interrupt(platform: PlatformServer, *run_ids: str) -> None:
    """Have the schedulers of runs be gone."""
    for run_id in run_ids:
        platform.set_run(run_id, lease_until=now() - timedelta(seconds=1))


def test_a_run_that_was_interrupted_three_times_has_failed(
    platform: PlatformServer, claims: Claims
):
    run_id = platform.add_run(results={"commit_sha": "c"})
    for number in range(3):
        assert replace(claims, owner=f"scheduler {number}").take() == run_id
        assert run_of(platform, run_id).interruptions == number
        interrupt(platform, run_id)
    assert claims.take() is None
    run = run_of(platform, run_id)
    assert (run.status, run.interruptions) == ("failed", 3)
    assert run.completed_at is not None
    message = "given up after 3 interruptions: each time the platform was killed or lost"
    error = (run.results or {})["error"]
    assert error.startswith(message)
    assert run.results == {"commit_sha": "c", "error": error}
    assert log_of(platform, run_id)[-1] == f"error run: {error}"


def test_a_run_that_is_handed_over_or_loses_the_database_is_not_interrupted(
    platform: PlatformServer, claims: Claims
):
    run_id = platform.add_run()
    for number in range(5):
        scheduler = replace(claims, owner=f"scheduler {number}")
        assert scheduler.take() == run_id
        interrupt(platform, run_id)
        assert scheduler.take() == run_id
        scheduler.give_back(run_id)
    assert claims.take() == run_id
    assert run_of(platform, run_id).interruptions == 0


def test_of_runs_that_may_have_ended_their_platform_one_at_a_time_is_executed(
    platform: PlatformServer, claims: Claims
):
    moment = now()
    first, second = (platform.add_run(created_at=moment + timedelta(seconds=s)) for s in (0, 1))
    for number in range(2):
        scheduler = replace(claims, owner=f"scheduler {number}")
        assert scheduler.take() == first
        assert scheduler.take(executed=[first]) == second
        interrupt(platform, first, second)
    third = platform.add_run(created_at=moment + timedelta(seconds=2))
    assert claims.take() == first
    assert claims.take(executed=[first]) == third
    assert claims.take(executed=[first, third]) is None
    interrupt(platform, first, third)
    after = replace(claims, owner="after")
    assert after.take() == second
    assert after.take(executed=[second]) == third
    counts = {run_of(platform, run_id).interruptions for run_id in (first, second, third)}
    statuses = [run_of(platform, run_id).status for run_id in (first, second, third)]
    assert (counts, statuses) == ({3, 2, 1}, ["failed", "running", "running"])


def test_a_watch_says_that_a_run_was_stopped_and_that_the_platform_ends(
    platform: PlatformServer, claims: Claims
):
    run_id = platform.add_run()
    claims.take()
    times = iter([0.0, 0.1, LOOK_S, 1000.0, 2000.0])
    shutdown = threading.Event()
    watch = RunWatch(claims, run_id, shutdown, clock=lambda: next(times))
    platform.set_run(run_id, lease_until=now() - timedelta(seconds=1))
    watch.check()  # looks at nothing yet
    watch.check()
    watch.check()  # and puts the lease off
    lease = run_of(platform, run_id).lease_until
    assert lease is not None
    assert lease > now()
    platform.set_run(run_id, status="stopped")
    with pytest.raises(NotToGoOn) as stopped:
        watch.check()
    shutdown.set()
    with pytest.raises(NotToGoOn) as ended:
        watch.check()
    assert (stopped.value.reason, ended.value.reason) == ("stopped", "shutdown")


def test_nothing_that_is_written_of_a_run_has_the_value_of_a_secret(
    platform: PlatformServer, claims: Claims, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writing, "LINES", 3)
    run_id = platform.add_run()
    claims.take()
    record = RunWriter(claims, run_id, Redactor([Secret(SECRET, "KEY")]))
    record.say(f"it is {SECRET}", step="clone")
    for _ in range(3):
        record.add_output([f"{SECRET}\0\n".encode(), b"\n", b"x" * 5000], step="run")
    record.note(a=1)
    record.end("failed", f"because of {SECRET}", step="run")
    lines = log_of(platform, run_id)
    message = "info run: the log takes 3 lines; what comes now is left out"
    long = "info run: " + "x" * writing.LINE_LENGTH
    masked = "info run: ***\\x00"
    output = [masked, long, message]  # an empty line counts too
    assert lines == ["info clone: it is ***", *output, "error run: because of ***"]
    results: Any = run_of(platform, run_id).results
    assert results == {"a": 1, "error": "because of ***"}


def test_a_user_has_no_more_runs_executed_than_the_limit_but_interrupted_ones(
    platform: PlatformServer, claims: Claims
):
    other = platform.add_user("another")
    limited = replace(claims, of_user=1)
    first, second = platform.add_run(), platform.add_run()
    third = platform.add_run(account=other)
    assert [limited.take(), limited.take(), limited.take()] == [first, third, None]
    interrupt(platform, first)
    assert limited.take() == first
    platform.set_run(first, status="finished")
    assert limited.take() == second
