"""The recorder with hand-made reports: every run counts once, and a missing one is named."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_osmosis.reports.summary import summary
from pytest_osmosis.run_result import DECIDED, REPORT_FIELD, RunResult
from pytest_osmosis.session.gate_reports import OutcomeLetters
from pytest_osmosis.session.recorder import Recorder
from pytest_osmosis.spec import SessionSpec
from pytest_osmosis.suite_results import EvalResult, SuiteResult
from tests.support.made_results import EXACT, info

SUITE = "data.jsonl"


@dataclass
class Gates:
    """Stands in for the plugin of the gates: leaves results and exit statuses as they are."""

    gated: bool = False
    several: bool = False
    letters: OutcomeLetters = field(default_factory=OutcomeLetters)

    def evaluated(self, result: EvalResult) -> EvalResult:
        return result

    def is_gated(self, suite: str) -> bool:
        return self.gated


@dataclass
class Heard:
    """Another plugin, a store and the listener of first runs: what each is given, in order."""

    calls: list[tuple[str, Any]] = field(default_factory=list)
    on_export: Callable[[], None] = lambda: None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.calls.append(("plugin", getattr(report, REPORT_FIELD, None)))

    def repeated(self, suite: str) -> list[RunResult]:
        """No earlier session has left runs."""
        return []

    def first(self, run: RunResult) -> None:
        self.calls.append(("first", (run.row_index, run.run_index)))

    def flush(self) -> None:
        self.calls.append(("flush", None))

    def keep_verdict(self, suite: SuiteResult, git: object) -> None:
        self.calls.append(("keep_verdict", suite.verdict))

    def end(self) -> None:
        self.calls.append(("end", None))

    def keeps(self, suite: str) -> bool:
        return False

    @property
    def log(self) -> Any:
        """What reads conversations, when they are written to a file."""
        return SimpleNamespace(read_conversation=lambda run: self.on_export())


class Bench:
    """A session of two rows with two runs each, its recorder, and what hears of it."""

    def __init__(self, spec: SessionSpec) -> None:
        self.written: list[str] = []
        option = SimpleNamespace(maxfail=0, fulltrace=False)
        self.config: Any = SimpleNamespace(
            option=option, stash=pytest.Stash(), get_verbosity=lambda: 0,
            getoption=lambda name, default: default,
            hook=SimpleNamespace(pytest_osmosis_summary=lambda **_: []),
            get_terminal_writer=lambda: SimpleNamespace(fullwidth=80, line=self.written.append),
        )  # fmt: skip
        self.session: Any = SimpleNamespace(
            config=self.config, exitstatus=pytest.ExitCode.OK, shouldstop=False, shouldfail=False
        )
        self.heard, self.gates = Heard(), Gates()
        self.recorder = Recorder(
            self.config, spec, {}, self.gates, self.heard,  # type: ignore[arg-type]
            on_first=self.heard.first,
        )  # fmt: skip
        self.plugins = pytest.PytestPluginManager()
        for plugin in (self.recorder, self.heard):
            self.plugins.register(plugin)
        self.recorder.declare(info(n=2, rows=2))
        self.recorder.select({SUITE: 4})

    def report(self, row: int, run: int, *, carries: RunResult | None = None, **kind: str) -> Any:
        outcome: Any = kind.get("outcome", "passed")
        nodeid = f"{SUITE}::row-{row}[run-{run}]"
        report = pytest.TestReport(nodeid, (SUITE, None, ""), {}, outcome, None, "call")
        if carries is not None:
            setattr(report, REPORT_FIELD, carries)
        self.plugins.hook.pytest_runtest_logreport(report=report)
        return report

    def finish(self) -> EvalResult | None:
        self.recorder.pytest_sessionfinish(self.session)
        return self.recorder.result

    def shown(self) -> list[str]:
        lines: list[str] = []
        terminal = SimpleNamespace(
            write_line=lambda line, **_: lines.append(line), write_sep=lambda *_: None,
            write=lambda *_, **__: None, line=lambda *_: None, ensure_newline=lambda: None,
            config=self.config,
        )  # fmt: skip
        self.recorder.pytest_terminal_summary(terminal)
        return lines


def result(row: int, run: int, score: float = 1.0) -> RunResult:
    scores = {EXACT: score}
    return RunResult(SUITE, row, run, success=True, passed=score >= 1.0, scores=scores)


Make = Callable[..., Bench]


@pytest.fixture
def make() -> Make:
    def made(**spec: Any) -> Bench:
        return Bench(SessionSpec(**spec))

    return made


def test_a_run_counts_once_whether_it_is_noted_or_reported_or_both(make: Make):
    bench = make()
    noted, reported, both, late = (result(row, run) for row in (0, 1) for run in (0, 1))
    bench.recorder.note(noted.run_id, noted)
    bench.report(0, 1, carries=reported)
    bench.recorder.note(both.run_id, both)
    bench.report(1, 0, carries=both)
    bench.report(1, 1, carries=late)
    bench.recorder.note(late.run_id, late)
    bench.report(0, 0, carries=noted)
    found = bench.finish()
    assert found is not None
    assert [len(row.runs) for row in found.suites[0].rows] == [2, 2]
    assert found.suites[0].functions[0].mean == 1.0
    first = [of for call, of in bench.heard.calls if call == "first"]
    assert first == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_runs_that_ended_without_a_report_can_be_left_out(make: Make):
    bench = make()
    reported, ahead, late = result(0, 0), result(0, 1, 0.0), result(1, 0)
    bench.recorder.note(reported.run_id, reported)
    bench.recorder.note(ahead.run_id, ahead)
    bench.report(0, 0, carries=reported)
    bench.recorder.close_runs(leave_out_unreported=True)
    bench.recorder.note(late.run_id, late)  # what ends now is counted nowhere
    bench.config.option.maxfail = 1
    found = bench.finish()
    assert found is not None
    assert found.suites[0].finished == 1


def test_what_the_report_carries_supersedes_what_was_noted(make: Make):
    bench = make()
    bench.recorder.note(result(0, 0).run_id, result(0, 0, 0.0))
    for row, run in ((0, 0), (0, 1), (1, 0), (1, 1)):
        bench.report(row, run, carries=result(row, run))
    found = bench.finish()
    assert found is not None
    assert found.suites[0].functions[0].mean == 1.0


def test_a_run_counts_before_other_plugins_hear_of_it_and_the_field_is_gone_afterwards(
    make: Make,
):
    bench = make()
    run = result(0, 0)
    report = bench.report(0, 0, carries=run)
    assert [call for call, _ in bench.heard.calls] == ["first", "plugin"]
    assert ("plugin", run) in bench.heard.calls
    assert not hasattr(report, REPORT_FIELD)


@pytest.mark.fault("a run was selected and is never reported")
def test_runs_that_were_never_reported_fail_the_session_by_name(make: Make):
    bench = make()
    for row, run in ((0, 0), (0, 1), (1, 1)):
        bench.report(row, run, carries=result(row, run))
    bench.finish()
    assert bench.session.exitstatus == pytest.ExitCode.TESTS_FAILED
    [problem] = [line for line in bench.shown() if line.startswith("ERROR: ")]
    assert problem == ("ERROR: data.jsonl: 1 of 4 selected runs were never reported: row-1[run-0]")


@pytest.mark.parametrize("cut", ["shouldstop", "shouldfail", "maxfail", "interrupted"])
def test_a_session_that_was_cut_short_misses_nothing(make: Make, cut: str):
    bench = make()
    bench.report(0, 0, carries=result(0, 0))
    if cut == "maxfail":
        bench.config.option.maxfail = 1
    elif cut == "interrupted":
        bench.session.exitstatus = pytest.ExitCode.INTERRUPTED
    else:
        setattr(bench.session, cut, True)
    status = bench.session.exitstatus
    assert bench.finish() is not None
    assert bench.session.exitstatus == status
    assert not [line for line in bench.shown() if line.startswith("ERROR: ")]


def test_an_item_that_failed_before_its_run_began_is_reported_and_has_no_result(
    make: Make,
):
    bench = make()
    suite = info(name="test_it.py::test_answer", n=1, rows=1)
    bench.recorder.declare(suite)
    bench.recorder.select({suite.name: 1})
    report = pytest.TestReport(
        "test_it.py::test_answer[row-0]", ("", None, ""), {}, "skipped", None, "setup"
    )
    bench.plugins.hook.pytest_runtest_logreport(report=report)
    assert bench.recorder.has_report(report.nodeid)
    assert bench.finish() is not None
    assert bench.session.exitstatus == pytest.ExitCode.OK


def test_reports_of_other_tests_are_passed_on(make: Make):
    bench = make()
    bench.report(0, 0, outcome="failed")
    assert bench.heard.calls == [("plugin", None)]


@pytest.mark.parametrize(
    ("halts", "before", "status"),
    [
        ({"reason": "the budget is spent", "spent": lambda: "it is spent"}, 0, 0),
        ({"reason": "the budget is spent", "spent": lambda: "it is spent"}, 8, 8),
        ({"reason": DECIDED}, 0, 0),
        ({"reason": "the endpoint went away"}, 0, 1),
        ({"reason": "the endpoint went away"}, 8, 1),
    ],
)
def test_a_halt_fails_the_session_but_where_it_leaves_that_to_gates(
    make: Make, halts: dict[str, Any], before: int, status: int
):
    for gated, expected in ((False, 1), (True, status)):
        bench = make()
        bench.gates.gated = gated
        bench.session.exitstatus = before if gated else 0
        bench.recorder.halt(**halts)
        bench.recorder.halt("another reason", spent=lambda: "it is spent as well")
        found = bench.finish()
        assert found is not None
        assert found.halted in (halts["reason"], "it is spent")
        assert bench.session.exitstatus == expected


def test_a_spent_budget_halts_no_session_in_which_every_run_has_ended(make: Make):
    for ended, halted in ((4, None), (3, "the budget is spent (5 used)")):
        bench = make()
        for index in range(ended):
            row, run = divmod(index, 2)
            bench.report(row, run, carries=result(row, run))
        bench.recorder.halt("the budget is spent", spent=lambda: "the budget is spent (5 used)")
        found = bench.finish()
        assert found is not None
        assert found.halted == halted
        assert (bench.session.exitstatus == pytest.ExitCode.OK) == (halted is None)


def test_gates_that_are_decided_stop_no_session_in_which_every_run_has_ended(make: Make):
    for ended, halted in ((4, None), (3, DECIDED)):
        bench = make()
        for index in range(ended):
            row, run = divmod(index, 2)
            bench.report(row, run, carries=result(row, run))
        bench.recorder.halt(DECIDED)
        found = bench.finish()
        assert found is not None
        assert found.halted == halted


def test_a_journal_that_fails_after_a_budget_is_spent_is_the_reason(make: Make):
    bench = make()
    for index in range(4):
        row, run = divmod(index, 2)
        bench.report(row, run, carries=result(row, run))
    bench.recorder.halt("the budget is spent", spent=lambda: "the budget is spent (5 used)")
    bench.recorder.halt("cannot write the journal")
    found = bench.finish()
    assert found is not None
    assert found.halted == "cannot write the journal"
    assert bench.session.exitstatus == pytest.ExitCode.TESTS_FAILED


def test_a_file_that_cannot_be_written_is_named_and_fails_the_session(make: Make, tmp_path: Path):
    (tmp_path / "file").write_text("")
    good = tmp_path / "out.md"
    bench = make(reports={"output": tmp_path / "file" / "out.json", "markdown": good})
    for row in (0, 1):
        for run in (0, 1):
            bench.report(row, run, carries=result(row, run))
    bench.finish()
    assert bench.session.exitstatus == pytest.ExitCode.TESTS_FAILED
    lines = bench.shown()
    assert any(line.startswith("ERROR: cannot write ") and "out.json" in line for line in lines)
    assert f"Markdown report: {good}" in lines
    assert good.exists()


def test_an_evaluation_has_ended_once_its_reports_are_written(make: Make, tmp_path: Path):
    for failing in (False, True):
        bench = make(trajectories=tmp_path / "out.trajectories.jsonl")
        bench.report(0, 0, carries=result(0, 0))

        def export(failing: bool = failing) -> None:
            if failing:
                raise OSError(errno.ENOSPC, "No space left on device")

        bench.heard.on_export = export
        bench.finish()
        bench.shown()
        assert ("end", None) not in bench.heard.calls
        bench.recorder.end(bench.session)
        assert (("end", None) in bench.heard.calls) != failing


@pytest.mark.parametrize("when", ["files", "summary"])
def test_a_signal_while_reports_are_written_decides_the_exit_status_and_ends_no_evaluation(
    make: Make, tmp_path: Path, when: str
):
    bench = make(trajectories=tmp_path / "out.trajectories.jsonl")
    bench.report(0, 0, carries=result(0, 0))
    if when == "files":
        bench.heard.on_export = lambda: bench.recorder.interrupt("SIGTERM")
    assert bench.finish() is not None
    bench.shown()
    if when == "summary":
        bench.recorder.interrupt("SIGTERM")
    bench.recorder.end(bench.session)
    assert bench.session.exitstatus == pytest.ExitCode.INTERRUPTED
    assert bench.written == ["interrupted by SIGTERM while the reports were being written"]
    assert ("end", None) not in bench.heard.calls


def test_without_runs_there_is_no_result(make: Make):
    bench = make()
    bench.recorder.select({SUITE: 0})
    assert bench.finish() is None
    assert bench.shown() == []


@pytest.mark.parametrize(
    ("ended", "text"), [(0, "0 of 4 runs are done"), (1, "1 of 4 runs is done and kept")]
)
def test_an_interrupt_before_any_run_has_ended_shows_no_figures(make: Make, ended: int, text: str):
    bench = make()
    bench.session.exitstatus = pytest.ExitCode.INTERRUPTED
    crash = SimpleNamespace(message="")
    terminal = SimpleNamespace(_keyboardinterrupt_memo=SimpleNamespace(reprcrash=crash))
    bench.config.pluginmanager = SimpleNamespace(
        getplugin={"terminalreporter": terminal}.get, get_plugin={"terminalreporter": terminal}.get
    )
    for run in range(ended):
        bench.report(0, run, carries=result(0, run))
    bench.recorder.interrupt("SIGINT")
    found = bench.finish()
    assert found is not None
    assert crash.message == f"interrupted by SIGINT: {text}"
    assert (summary(found) == ["no run had ended"]) is (ended == 0)


def test_an_interrupt_is_part_of_the_result(make: Make):
    bench = make()
    bench.session.exitstatus = pytest.ExitCode.INTERRUPTED
    bench.config.pluginmanager = SimpleNamespace(
        getplugin=lambda _: None, get_plugin=lambda _: None
    )
    bench.report(0, 0, carries=result(0, 0))
    bench.recorder.interrupt("SIGTERM")
    found = bench.finish()
    assert found is not None
    assert found.interrupted == "SIGTERM"
    assert bench.session.exitstatus == pytest.ExitCode.INTERRUPTED
