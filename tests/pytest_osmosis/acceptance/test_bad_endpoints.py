"""What an endpoint may do instead of answering, and what the session makes of it.

Each row names a fault of `tests/support/endpoint_faults.py`; one session runs them all.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.support.endpoint_faults import misbehave
from tests.support.endpoints import (
    Ask,
    Endpoint,
    completion,
    error_reply,
    failure_reply,
    refusing_address,
    reply,
)
from tests.support.modes import each_mode
from tests.support.project import Project

KEY = "sk-proj-a+b/c=0123456789"


FAILS: dict[str, tuple[str, str]] = {
    # fault: (kind of error, words)
    "400": ("bad_request", "maximum context length is 8192 tokens"),
    "429-retry-after-99999": ("rate_limited", "asked to wait 27 h"),
    "reset": ("connection", "the connection was closed"),
    "not-http": ("protocol", "not an HTTP reply from"),
    "bad-json": ("protocol", "a 200 that is not JSON (application/json)"),
    "choices-null": ("protocol", "an answer without choices"),
    "gzip-bomb": ("too_large", "of 32 MiB"),
    "redirect-other": ("redirect", "http://127.0.0.2:9/v1/chat/completions"),
    "error-key": ("bad_request", "your key is ***"),
    "stream": ("protocol", "an answer streamed although not asked"),
}
ANSWERS: dict[str, str | None] = {
    # fault: the text that is scored
    "content-empty": "",
    "content-parts": "The answer is 42",
    "refusal": "",
    "finish-length": "The answer is",
    "finish-content_filter": "The answer is",
    "usage-absent": "42",
    "usage-nan": "42",
    "utf-8-sig": "café",
    "gzip-good": "42",
    "surrogate": "lone \ufffd and paired \U0001f600",
    "control": "nul \x00 escape \x1b[31m bell \x07 arabic ٤٢",
}
"""A part of the faults, of every kind one: the client's own tests have them all."""


@pytest.fixture
def faulty(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose endpoint misbehaves row by row."""

    def answers(ask: Ask) -> Any:
        steps = misbehave(replace(ask, model=f"fault-{ask.row}"))
        return ask.row if steps is None else list(steps)

    project.endpoint.answers = answers
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return project


@pytest.mark.fault(
    "it refuses a request (400, 422, a context too long)",
    "it asks for nonsense, or for a day",
    "the connection breaks before, within or behind the headers, or in the body",
    "it does not speak HTTP, or sends 100 kB of headers",
    "a 200 is empty, broken JSON or a web page",
    "an answer is huge, or unpacks to something huge",
    "a gzip body is broken, or fine",
    "it redirects",
    "an answer or an error quotes the key",
    "it streams although not asked to",
    "the provider echoes the key",
)
def test_every_failure_costs_its_own_run_alone_and_is_reported_in_words(faulty: Project):
    faulty.rows(*FAILS, "content-parts")
    session = faulty.run("--batch-size=8", "--junitxml=out.xml")
    found = {}
    for row, name in zip(session.report["rows"], [*FAILS, "content-parts"], strict=True):
        [found[name]] = row["runs"]
    for name, (kind, words) in FAILS.items():
        run = found[name]
        assert run["error_type"] == ("agent" if kind == "bad_request" else "provider"), (name, run)
        assert run["error_kind"] == kind, (name, run)
        assert words in run["error"], (name, run)
        assert len(run["error"]) < 800
    assert found["content-parts"]["error"] is None
    assert session.ret == 1
    everything = [session.out, session.err, *map(read, faulty.path.rglob("*.json*"))]
    assert all(KEY not in text for text in everything)
    assert "Traceback" not in session.out
    assert len(session.junit.findall(".//testcase")) == len(FAILS) + 1


def read(path: Any) -> str:
    return str(path.read_text())


@pytest.mark.fault(
    "an answer is empty",
    "an answer is a list of parts",
    "the model refuses, or is cut short",
    "usage is absent, or nonsense",
    "a gzip body is broken, or fine",
    "an answer holds half characters or control characters",
    "JUnit, pytest-html, GitHub annotations",
)
@each_mode
def test_unusual_answers_are_answers(faulty: Project, workers: int):
    rows = [{"user_prompt": name, "ground_truth": text} for name, text in ANSWERS.items()]
    faulty.rows(*rows)
    session = faulty.run("--batch-size=4", "--junitxml=out.xml", workers=workers)
    assert session.outcomes == {"passed": len(ANSWERS)}, session.out
    assert len(session.junit.findall(".//testcase")) == len(ANSWERS)
    runs = dict(zip(ANSWERS, session.runs, strict=True))
    for name in ("usage-absent", "usage-nan"):
        assert runs[name]["tokens"] is None
    assert runs["finish-length"]["finish_reason"] == "length"
    assert runs["finish-content_filter"]["finish_reason"] == "content_filter"
    assert "\x1b[31m" not in session.out


@pytest.mark.fault(
    "it refuses the key (401, 403)",
    "it does not know the model (404)",
    "the account has no quota left",
)
@pytest.mark.parametrize("fault", ["401", "model-not-found", "quota"])
@each_mode
def test_what_refuses_every_row_stops_the_session_after_three(
    faulty: Project, fault: str, workers: int
):
    refuse, asked = faulty.endpoint.answers, count(1)

    def answers(ask: Ask) -> Any:  # a worker sends on until it hears of the third refusal
        return refuse(ask) if next(asked) <= 3 else [0.2, *refuse(ask)]

    faulty.endpoint.answers = answers
    faulty.rows(*[fault] * 30)
    session = faulty.run(workers=workers)
    assert faulty.endpoint.requests < 30 if workers else faulty.endpoint.requests == 3
    assert session.ret == 1
    assert session.refusal.endswith("Correct it and run the same command again.")
    summary = session.report["summary"]
    assert (summary["complete"], summary["selected"]) == (False, 30)
    assert summary["eval_fns"]["rewards:exact"]["mean"] is None
    if fault == "401":  # what was kept of it is no reason to start another model anew
        faulty.endpoint.answers = refuse
        assert "starting anew" not in faulty.run(model="other").out


@pytest.mark.fault(
    "a gateway answers 500 and speaks of the key, or says nothing where none was sent"
)
def test_a_gateway_whose_500_is_about_the_key_stops_the_session_after_three_rows(
    faulty: Project,
):
    faulty.rows(*["500-wrong-key"] * 7)
    session = faulty.run("--batch-size=7")
    assert session.ret == 1
    assert "the key in OPENAI_API_KEY was refused" in session.refusal


@pytest.mark.fault("the port is closed, or the name does not resolve")
def test_an_endpoint_that_nobody_can_reach_stops_the_session_after_a_few(
    faulty: Project,
):
    faulty.rows(*"abcdefghij")
    with refusing_address() as netloc:
        session = faulty.run("--junitxml=out.xml", base_url=f"http://{netloc}/v1")
    assert session.ret == 1
    assert "lowest rows" not in session.out and "0.000" not in session.out
    assert "osmosis_mean" not in (faulty.path / "out.xml").read_text()
    summary = session.report["summary"]
    figures = summary["eval_fns"]["rewards:exact"]
    assert (figures["mean"], figures["std"], figures["intervals"]) == (None, None, {})
    assert figures["scored"] == 0
    assert summary["complete"] is False
    assert summary["total_runs"] < 10
    assert f"cannot reach http://{netloc}" in summary["halted"]


@pytest.mark.fault("it goes away in the middle of a session")
@each_mode
def test_an_endpoint_that_goes_away_stops_the_session_and_the_rest_is_run_later(
    faulty: Project, workers: int
):
    rows = [f"row {number}" for number in range(20)]

    def answer_four(ask: Ask) -> Any:
        if ask.row in rows[:4]:
            return ask.row
        if all(ask.endpoint.by_row[row] for row in rows[:4]):
            ask.endpoint.go_away()
        return ["hang"]

    faulty.endpoint.answers = answer_four
    faulty.rows(*rows)
    passes_anyway = "--osmosis-gate=mean >= 0"
    session = faulty.run("--batch-size=8", passes_anyway, workers=workers)
    [gate] = session.report["gates"]
    assert (gate["outcome"], session.ret) == ("passed", 1)
    assert session.report["summary"]["total_runs"] < 20
    message = f"stopped: the endpoint went away: cannot reach http://{faulty.endpoint.netloc}"
    assert message in session.out
    left = "not complete: 4 of 20 runs are done; run the same command again to resume"
    assert left in session.lines
    with Endpoint(port=faulty.endpoint.port):
        rest = faulty.run("--batch-size=8", passes_anyway, workers=workers)
    assert "resuming: 4 of 20 runs done" in rest.out
    assert (rest.ret, rest.outcomes["passed"]) == (0, 20)


@pytest.mark.fault("it accepts and says nothing", "its answer trickles")
def test_an_endpoint_that_takes_too_long_is_left_and_the_row_errored(
    faulty: Project, monkeypatch: pytest.MonkeyPatch
):
    from osmosis_ai.models import openai

    defaults = openai.OpenAIModel.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "request_timeout_s", 0.3)
    late = [30.0, reply(200, completion("late"))]
    faulty.endpoint.answers = lambda ask: (
        late if ask.row == "late" else misbehave(replace(ask, model=f"fault-{ask.row}"))
    )
    faulty.rows("silent", "trickle", "late")
    session = faulty.run("--batch-size=3")
    assert len(session.runs) == 3
    for run in session.runs:
        assert (run["error_type"], run["error_kind"]) == ("provider", "timeout")
        assert "no whole answer from" in run["error"]
    assert faulty.endpoint.wait_until(lambda e: e.open_connections == 0)


@pytest.mark.fault("it refuses one request, and answers others")
@pytest.mark.parametrize(
    ("status", "said", "outcome", "scored"),
    [
        (403, "your input was flagged", "raised", 4),
        (403, "access denied", "error", 3),
        (401, "no", "error", 3),
        (404, "no such thing", "error", 3),
        (400, "this is too long", "raised", 4),
    ],
)
def test_a_refusal_of_one_request_is_that_runs_alone_also_when_the_session_resumes(
    project: Project, status: int, said: str, outcome: str, scored: int
):
    def answers(ask: Ask) -> Any:
        if ask.row == "down" and ask.endpoint.by_row["down"] == 1:
            return failure_reply("come back later")
        return error_reply(status, said) if ask.row == "odd" else ask.row

    project.endpoint.answers = answers
    project.rows("odd", "a", "b", "c", "down")
    first = project.run("--osmosis-gate=mean >= 0.5")
    assert [run["outcome"] for run in first.runs] == [outcome, *["passed"] * 3, "error"]
    assert first.report["summary"]["eval_fns"]["rewards:exact"]["scored"] == scored
    assert (first.ret, first.report["summary"]["halted"]) == (0, None)
    again = project.run("--osmosis-gate=mean >= 0.5")
    assert "resuming: 4 of 5 runs done" in again.out
    assert (again.ret, project.endpoint.by_row) == (
        0,
        {**dict.fromkeys(["odd", *"abc"], 1), "down": 2},
    )
    assert [run["outcome"] for run in again.runs] == [outcome, *["passed"] * 4]


@pytest.mark.fault("it refuses an option of every request")
@each_mode
@pytest.mark.parametrize(
    ("said", "rows"), [("Unsupported parameter: 'temperature'", 1), ("not in this mode", 3)]
)
def test_what_every_request_is_refused_for_stops_the_session_and_is_asked_again(
    project: Project, workers: int, said: str, rows: int
):
    project.endpoint.answers = lambda ask: error_reply(400, said)
    project.rows(*(f"row {number}" for number in range(9)))
    session = project.run("--osmosis-temperature=0.2", workers=workers)
    assert session.ret == 1 and said in session.refusal
    assert rows <= project.endpoint.requests <= rows + 2 * workers
    figures = session.report["summary"]["eval_fns"]["rewards:exact"]
    assert (figures["mean"], figures["scored"]) == (None, 0)
    assert {run["outcome"] for run in session.runs} == {"error"}
    project.endpoint.answers = lambda ask: ask.row
    again = project.run("--osmosis-temperature=0.2", workers=workers)
    assert (again.ret, again.outcomes) == (0, {"passed": 9})


@pytest.mark.fault("it answers nothing but 5xx or 429")
@each_mode
def test_an_endpoint_that_only_fails_stops_the_session_and_is_asked_again(
    project: Project, workers: int
):
    project.endpoint.answers = lambda ask: failure_reply("upstream timed out")
    project.rows(*(f"row {number}" for number in range(100)))
    session = project.run("--batch-size=4", workers=workers)
    assert session.ret == 1 and "upstream timed out" in session.refusal
    assert 16 <= project.endpoint.requests <= 24
    assert session.report["summary"]["eval_fns"]["rewards:exact"]["mean"] is None
    project.endpoint.answers = lambda ask: ask.row
    again = project.run("--batch-size=4", workers=workers)
    assert (again.ret, again.outcomes) == (0, {"passed": 100})


@each_mode
def test_one_candidate_whose_model_is_not_known_stops_the_session(project: Project, workers: int):
    project.endpoint.answers = lambda ask: (
        error_reply(404, "no such model: b") if ask.model == "b" else ask.row
    )
    project.rows(*"acdefg")
    session = project.run("--osmosis-model=b", model="a", workers=workers)
    assert session.ret == 1
    assert "stopped: model 'b' is not known at" in session.out.replace("\n", " ")
