"""The hint at a session that ran one rollout at a time, and waited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_osmosis.reports import waits
from pytest_osmosis.reports.waits import waits_line
from tests.support.made_results import result_of, suite_of
from tests.support.project import Project

BEGAN = 1_000_000.0


def line(
    *, runs: int, llm_ms: int, seconds: int, earlier: int = 0, limit: int | None = None
) -> str | None:
    """The hint of a session; `earlier` of its runs are of one before."""
    suite = suite_of([[1.0]] * runs)
    suite = replace(suite, info=replace(suite.info, max_concurrent=limit))
    rows = [
        replace(
            row,
            runs=tuple(
                replace(run, llm_ms=llm_ms, started_at=BEGAN + (-50 if at < earlier else 1))
                for run in row.runs
            ),
        )
        for at, row in enumerate(suite.rows)
    ]
    result = replace(result_of(replace(suite, rows=tuple(rows))), duration_ms=seconds * 1000)
    return waits_line(result, now=BEGAN + seconds)


def test_it_says_what_was_waited_for_and_how_many_would_be_in_flight():
    assert line(runs=49, llm_ms=2000, seconds=103) == (
        "one at a time: 98 of 103 s were waits; --batch-size 16 keeps 16 in flight"
    )


@pytest.mark.parametrize(
    ("limit", "cure"),
    [
        (3, "--batch-size 3 keeps 3 in flight"),
        (1, "max_concurrent of the workflow's config keeps it so"),
    ],
)
def test_a_workflow_s_own_limit_is_not_passed_over(limit: int, cure: str):
    found = line(runs=49, llm_ms=2000, seconds=103, limit=limit)
    assert found == f"one at a time: 98 of 103 s were waits; {cure}"


@pytest.mark.parametrize(
    ("runs", "llm_ms", "seconds", "earlier"),
    [
        (19, 2000, 40, 0),  # too few
        (20, 400, 9, 0),  # soon done
        (20, 1000, 41, 0),  # less than half of the time
        (30, 2000, 100, 11),  # too few of this session
        (20, 3000, 50, 0),  # more than the session took: not one at a time
    ],
)
def test_it_is_silent_where_it_would_not_help(runs: int, llm_ms: int, seconds: int, earlier: int):
    assert line(runs=runs, llm_ms=llm_ms, seconds=seconds, earlier=earlier) is None


def test_a_session_says_it_last_and_only_one_that_ran_one_at_a_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(waits, "WAITED_S", 0.5)
    project.endpoint.latency_s = 0.1
    project.rows(*map(str, range(20)))
    session = project.run()
    assert "s were waits; --batch-size 16 keeps 16 in flight" in session.out, session.out
    assert "were waits" not in project.run("--osmosis-fresh", "--batch-size=2").out
