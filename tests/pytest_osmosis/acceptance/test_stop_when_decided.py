"""Stopping when every gate is decided: fewer calls, the same verdicts, what was saved is said."""

from __future__ import annotations

import pytest

from tests.support.modes import each_mode
from tests.support.project import Project, Session

STOP = "--osmosis-stop-when-decided"


@pytest.fixture
def easy(project: Project) -> Project:
    """Twenty rows that pass, and a test beside them."""
    project.rows(*(f"row {number}" for number in range(20)))
    project.write("test_unit.py", "def test_unit(): pass\n")
    return project


def verdicts(session: Session) -> dict[str, str]:
    return {gate["gate"]: gate["outcome"] for gate in session.report["gates"]}


@each_mode
def test_what_is_not_needed_is_not_run_and_reported_as_not_run(easy: Project, workers: int) -> None:
    args = easy.options(
        f"-n{workers}", STOP, "--osmosis-gate=mean >= 0.25", "--osmosis-gate=min >= -1", "-rs",
        "data.jsonl", "test_unit.py", "--junitxml=out.xml",
    )  # fmt: skip
    session = easy.plain(*args)
    report = session.report
    assert session.ret == 0
    assert verdicts(session) == {"mean >= 0.25": "passed", "min >= -1": "passed"}
    ran = report["summary"]["total_runs"]
    assert 5 <= ran <= 5 + 2 * max(workers, 0)
    assert easy.endpoint.requests == ran
    assert report["saved"] == {
        "runs": 20 - ran, "of": 20, "tokens": 15.0 * (20 - ran), "cost_usd": None,
    }  # fmt: skip
    assert report["summary"]["complete"] is False
    assert session.outcomes["passed"] == ran + 1  # the test beside it as well
    assert session.outcomes["skipped"] == 20 - ran
    assert f"SKIPPED [{20 - ran}] data.jsonl:0: not run: every gate is decided" in session.lines
    assert len(session.junit.findall(".//testcase/skipped")) == 20 - ran
    summary = "\n".join(session.section("osmosis summary"))
    assert "stopped: every gate is decided" in summary
    assert f"{20 - ran} of 20 runs ({(20 - ran) / 20:.0%}) did not have to be run" in summary


def test_a_gate_that_is_never_settled_early_lets_all_run(easy: Project) -> None:
    session = easy.run(STOP, "--osmosis-gate=mean == 1")
    assert (session.ret, len(session.runs), session.report["saved"]) == (0, 20, None)


@pytest.mark.slow
def test_extending_without_it_runs_what_was_left_out(easy: Project) -> None:
    gate = "--osmosis-gate=mean >= 0.25"
    assert len(easy.run(STOP, gate).runs) == 5
    session = easy.run(gate, "--osmosis-extend")
    assert len(session.runs) == 20
    assert easy.endpoint.requests == 20


def test_it_needs_a_gate(easy: Project) -> None:
    session = easy.run(STOP)
    assert session.ret == 4
    assert session.mistake == "--osmosis-stop-when-decided needs --osmosis-gate too"
