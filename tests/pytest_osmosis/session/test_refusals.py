"""Which refusals end a session, and which are one run's alone."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_osmosis.run_result import RunResult
from pytest_osmosis.session.progress import ProgressCounter
from pytest_osmosis.session.refusals import RefusedTries
from pytest_osmosis.session.supervisor import Supervisor

GOOD = {"success": True, "passed": True, "llm_calls": 1, "scores": {"f": 1.0}}
WRONG = {"success": True, "llm_calls": 1, "scores": {"f": 0.0}}
RAISED = {"error_type": "agent", "error": "KeyError: 'x'"}
LATE = {"error_type": "provider", "error_kind": "timeout", "error": "no answer"}


def refused(kind: str, said: str = "401 from x") -> dict[str, Any]:
    return {"error_type": "provider", "error_kind": kind, "error": said}


KEY, MODEL, DOWN, BUSY = map(refused, ("auth", "model_not_found", "overloaded", "rate_limited"))


def request(said: str, *, fatal: bool = False) -> dict[str, Any]:
    return {"error_type": "agent", "error_kind": "bad_request", "error": said, "fatal": fatal}


class Session:
    """A session of so many rows with one run, at one endpoint unless suites say otherwise."""

    def __init__(self, rows: int, *, planned: int | None = None) -> None:
        self.reasons: list[str] = []
        self.supervisor = Supervisor(
            batch_size=16,
            selected=lambda: rows,
            halt=lambda reason: self.reasons.append(reason),
            resize=lambda window: None,
            place_of=lambda suite: suite,
            planned=lambda place: (rows, rows if planned is None else planned),
        )

    def end(self, *runs: dict[str, Any], suite: str = "s", one_row: bool = False) -> int | None:
        """Have runs end; return after how many of them the session was stopped."""
        for number, fields in enumerate(runs):
            at = (0, number) if one_row else (number, 0)
            self.supervisor.ended(RunResult(suite, *at, **fields))
            if self.reasons:
                return number + 1
        return None


@pytest.mark.parametrize(
    ("rows", "runs", "stopped_after"),
    [
        (100, [KEY] * 5, 3),
        (100, [MODEL] * 5, 3),
        (100, [refused("quota")] * 5, 3),
        (2, [KEY] * 2, 2),
        (1, [KEY], 1),
        (100, [KEY, MODEL, KEY, KEY], 4),
        (100, [GOOD, *[KEY] * 20], None),
        (100, [KEY, KEY, GOOD, *[KEY] * 9], None),
        (100, [WRONG, KEY, KEY, KEY], None),
        (100, [RAISED, KEY, LATE, KEY, KEY], 5),
        (100, [request("400: no such thing")] * 5, 3),
        (100, [request("400: row 1"), request("400: row 2"), request("400: row 3")], 3),
        (100, [request("400: a"), request("400: b"), request("400: c")] * 2, None),
        (2, [request("400: too long")] * 2, None),
        (100, [GOOD, *[request("400: no such thing")] * 9], None),
        (100, [request("400: temperature", fatal=True)], 1),
        (100, [GOOD, request("400: temperature", fatal=True)], None),
        (100, [DOWN] * 20, 16),
        (100, [BUSY, DOWN] * 10, 16),
        (100, [GOOD, *[DOWN] * 20], 17),
        (100, [*[DOWN] * 15, GOOD, *[DOWN] * 15], None),
        (100, [*[DOWN] * 15, KEY, *[DOWN] * 15], None),
        (4, [DOWN] * 4, 4),
        (4, [DOWN, DOWN, GOOD, DOWN], None),
        (100, [LATE] * 50, 16),
        (100, [LATE, DOWN] * 25, 16),
        (100, [*[LATE] * 15, WRONG, *[LATE] * 15], None),
        (100, [GOOD, *[{**LATE, "error_kind": "connection"}] * 50], 17),
        (100, [*[{**LATE, "duration_ms": 450_000}] * 9], 3),
        (100, [{**LATE, "error_kind": "not_streamed", "duration_ms": 450_000}] * 9, 3),
        (100, [GOOD, *[{**LATE, "duration_ms": 450_000}] * 15], None),
        (4, [LATE] * 4, None),
        (100, [RAISED] * 50, None),
    ],
)
def test_what_stops_a_session(rows: int, runs: list[dict[str, Any]], stopped_after: int | None):
    session = Session(rows)
    assert session.end(*runs) == stopped_after
    if stopped_after:
        assert session.reasons == [runs[stopped_after - 1]["error"]]


def test_one_row_alone_is_no_refusal_of_every_row():
    assert Session(5, planned=50).end(*[KEY] * 10, one_row=True) is None
    assert Session(1, planned=10).end(*[KEY] * 10, one_row=True) == 1


def test_each_model_at_each_endpoint_is_looked_at_alone():
    session = Session(100)
    assert session.end(GOOD, GOOD, suite="good") is None
    assert session.end(KEY, KEY, suite="other") is None
    assert session.end(KEY, suite="good") is None
    assert session.end(KEY, KEY, KEY, suite="third") == 3


def test_a_candidate_that_has_answers_hides_none_that_has_not():
    away = {"error_type": "provider", "error_kind": "unreachable", "error": "cannot reach x:1"}
    session = Session(100)
    for _ in range(2):
        session.end(GOOD, suite="good")
        session.end(away, suite="other")
    assert session.reasons == []
    session.end(away, suite="other")
    assert session.reasons == ["cannot reach x:1"]


def test_what_ended_the_session_is_asked_again_and_another_refusal_is_its_runs_own():
    session = Session(100)
    assert session.end(*[request("400: no such thing")] * 3) == 3
    [alike, other, key] = [
        session.supervisor.settled(RunResult("s", 0, 0, **fields))
        for fields in (request("400: no such thing"), request("400: long"), KEY)
    ]
    assert (alike.fatal, alike.outcome, alike.counted_score("f")) == (True, "error", None)
    assert (other.fatal, other.outcome, other.counted_score("f")) == (False, "raised", 0.0)
    assert not key.fatal
    option = RunResult("s", 0, 0, **request("400: temperature", fatal=True))
    assert not Session(100).supervisor.settled(option).fatal


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def after(clock: Clock, tries: RefusedTries, *steps: tuple[float, float]) -> float | None:
    """After how many seconds tries have lasted too long, each so long after the one before."""
    for seconds, pause_s in steps:
        clock.now += seconds
        if tries.add("500: upstream timed out", pause_s):
            return clock.now - 50.0
    return None


def test_two_minutes_without_a_success_are_too_long_and_asked_pauses_do_not_count():
    clock = Clock()
    assert after(clock, RefusedTries(clock), *[(8.0, 0.0)] * 30) == 128.0  # the first is the start
    clock = Clock()
    assert after(clock, RefusedTries(clock), *[(10.0, 5.0)] * 30) == 250.0
    clock = Clock()  # calls in flight together ask for one and the same pause
    together = [(10.0, 5.0), *[(0.0, 5.0)] * 15]
    assert after(clock, RefusedTries(clock), *together * 30) == 250.0
    clock = Clock()
    assert after(clock, RefusedTries(clock), *[(60.0, 60.0)] * 100) is None


def test_the_session_stops_after_two_minutes_and_the_line_names_the_last_refusal():
    clock, reasons = Clock(), []
    supervisor = Supervisor(
        batch_size=16, selected=lambda: 100, resize=lambda window: None,
        halt=lambda reason: reasons.append(reason), clock=clock,
    )  # fmt: skip
    counter = ProgressCounter(
        lambda: 100, lambda left: 16, refusals=supervisor.refusals, clock=clock
    )
    for _ in range(23):
        supervisor.pressed("500: upstream timed out")
    assert counter.line() == "0/100  16 in flight  500 x 23: upstream timed out"
    supervisor.pressed("429")
    assert counter.line().endswith("  429 x 1")
    supervisor.answered()
    assert counter.line() == "0/100  16 in flight"
    supervisor.pressed("503: busy")
    clock.now += 121.0
    supervisor.pressed("503: busy")
    assert reasons == ["no answer for 120 s: 503 x 2: busy"]


def test_two_minutes_are_counted_for_each_model_at_each_endpoint():
    clock, reasons = Clock(), []
    supervisor = Supervisor(
        batch_size=16, selected=lambda: 100, resize=lambda window: None,
        halt=lambda reason: reasons.append(reason), clock=clock,
        place_of=lambda suite: f"{suite} at x",
    )  # fmt: skip
    for _ in range(14):
        supervisor.pressed("500: down", place="b at x")
        supervisor.answered("a at x")
        supervisor.ended(RunResult("a", 0, 0, success=True, llm_calls=1))
        clock.now += 9.0
    assert (reasons, supervisor.refusals()) == ([], "500 x 14: down")
    supervisor.pressed("500: down", place="b at x")
    assert reasons == ["no answer for 120 s: 500 x 15: down"]
    supervisor.ended(RunResult("b", 0, 0, success=True, llm_calls=1))
    assert supervisor.refusals() == ""
