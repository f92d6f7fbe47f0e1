"""Gates in a session: verdicts, exit status, and gates as the tests that they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from osmosis_cli.eval.viewer.library import Library
from osmosis_cli.main import cli
from pytest_osmosis.features.html.charts import charts_of
from pytest_osmosis.reports.view import view_of
from tests.support.endpoints import Ask, error_reply, failure_reply
from tests.support.modes import each_mode
from tests.support.project import Project, Session

PASSES, BETWEEN, FAILS = "mean >= 0.5", "mean > 0.6", "mean > 0.8"
"""Gates on `partly_known`, by what becomes of them."""
NAMED = "mean[rewards:exact] > 0.8"


@pytest.fixture
def partly_known(project: Project) -> Project:
    """Four rows: two pass, one is wrong, of one nothing is known."""

    def answer(ask: Ask) -> str | bytes:
        if ask.row == "refused":
            return failure_reply("come back later")
        return "no" if ask.row == "wrong" else ask.row

    project.endpoint.answers = answer
    project.rows(
        *({"user_prompt": row, "ground_truth": row, "kind": kind}
          for row, kind in [("a", "easy"), ("b", "hard"), ("wrong", "hard"), ("refused", "hard")])
    )  # fmt: skip
    return project


def gated(project: Project, *gates: str, workers: int = 0, **options: str | None) -> Session:
    return project.run(*(f"--osmosis-gate={gate}" for gate in gates), workers=workers, **options)


def outcomes(session: Session) -> dict[str, str]:
    """The JSON report's verdicts, by gate."""
    return {gate["gate"]: gate["outcome"] for gate in session.report["gates"]}


def cases(session: Session) -> dict[str, Any]:
    """JUnit's test cases of gates, by name."""
    found = session.junit.iter("testcase")
    return {case.attrib["name"]: case for case in found if case.attrib["classname"] == "gates"}


@pytest.mark.parametrize(("gates", "status"), [([PASSES], 0), ([BETWEEN, PASSES], 8)])
def test_the_exit_status_is_that_of_the_gates_alone(
    partly_known: Project, gates: list[str], status: int
):
    session = gated(partly_known, *gates)
    assert session.ret == status
    assert session.outcomes["passed"] == 2
    assert session.outcomes["below"] == 1
    assert session.outcomes["errored"] == 1
    assert "failed" not in session.outcomes


def test_a_session_of_passed_gates_does_not_end_in_red(partly_known: Project):
    partly_known.rows("a", "wrong")
    session = partly_known.run("--color=yes", "--osmosis-gate=mean >= 0.5")
    [last] = [line for line in session.lines if " gate passed" in line]
    assert last.startswith("\x1b[33m====")  # as of every outcome that pytest does not know
    assert "1 gate passed" in last


class TestRuns:
    """What runs are reported as where gates decide."""

    @pytest.mark.slow
    def test_a_low_run_is_below_with_its_reason(self, partly_known: Project):
        session = gated(partly_known, PASSES, "scored > 0.5", workers=0, output="out.json")
        assert session.outcomes["gates"] == 2
        session = partly_known.run(
            f"--osmosis-gate={PASSES.replace('mean', 'mean[exact]')}",
            "--eval-fn=rewards:length", "-rx", "--junitxml=out.xml", "--osmosis-fresh",
        )  # fmt: skip
        reasons = [line for line in session.lines if line.startswith("BELOW")]
        assert reasons == [
            "BELOW data.jsonl::row-0[run-0] - rewards:length scored 0.1, below the threshold 1",
            "BELOW data.jsonl::row-1[run-0] - rewards:length scored 0.1, below the threshold 1",
            "BELOW data.jsonl::row-2[run-0] - rewards:exact scored 0, below the threshold 1; "
            "rewards:length scored 0.2, below the threshold 1",
        ]
        skipped = session.junit.find(".//testcase[@name='row-0[run-0]']/skipped").attrib["message"]
        assert skipped == "rewards:length scored 0.1, below the threshold 1"

    def test_what_has_an_error_keeps_it(self, project: Project):
        project.rows("raise", "give up", "a")
        session = gated(project, "mean >= 0.3", "errors == 2", "scored == 1")
        assert session.outcomes["raised"] == 2
        assert "LookupError: no such drawer" in session.out
        # The agent is to blame: nothing is unknown, what it broke counts as 0.0.
        assert session.ret == 0

    def test_a_failing_test_beside_the_evaluation_still_fails_the_session(
        self, partly_known: Project
    ):
        partly_known.write("test_unit.py", "def test_unit(): assert False\n")
        args = partly_known.options("-n0", f"--osmosis-gate={PASSES}", "data.jsonl", "test_unit.py")
        session = partly_known.plain(*args)
        assert session.ret == 1
        assert outcomes(session) == {PASSES: "passed"}

    @pytest.mark.slow
    @pytest.mark.parametrize(("raised", "status"), [("pytest.exit('no', 9)", 9),
                                                    ("raise KeyboardInterrupt", 2)])  # fmt: skip
    def test_another_reason_to_end_keeps_its_code(
        self, partly_known: Project, raised: str, status: int
    ):
        partly_known.write(
            "conftest.py",
            f"import pytest\ndef pytest_runtest_logfinish(nodeid):\n"
            f"    if 'row-1' in nodeid: {raised}\n",
        )
        args = partly_known.options("-n0", f"--osmosis-gate={FAILS}")
        assert partly_known.apart(*args).ret == status

    def test_a_code_that_another_plugin_has_set_stays(self, partly_known: Project):
        partly_known.write(
            "conftest.py",
            "import pytest\n@pytest.hookimpl(wrapper=True)\n"
            "def pytest_runtestloop(session):\n"
            "    result = yield\n    session.testsfailed += 1\n    return result\n",
        )
        assert gated(partly_known, PASSES).ret == 1


@each_mode
class TestAsTests:
    """A gate is a test of its own."""

    def test_terminal_junit_and_json_show_each(self, partly_known: Project, workers: int):
        gates = [PASSES, BETWEEN, FAILS, NAMED]
        session = partly_known.run(
            *(f"--osmosis-gate={gate}" for gate in gates), "--junitxml=out.xml", workers=workers
        )
        shown = cases(session)
        assert (session.ret, list(shown)) == (1, gates)
        if not workers:  # one is below, one has an error
            assert any(line.startswith("data.jsonl ..--") for line in session.lines)
        at = session.lines.index("- means below or error")
        assert session.lines[at + 1].startswith("gates .?FF")
        assert [child.tag for child in shown[PASSES]] == ["properties"]
        assert shown[FAILS].find("failure").attrib["message"].startswith("failed: mean is 0.6667")
        assert shown[BETWEEN].find("failure").attrib["message"].startswith("inconclusive: ")
        assert "1 gate inconclusive" in session.out
        assert "1 gate passed" in session.out
        # A bracket in a node id begins the parameters of a test.
        named = NAMED.replace("[", "(").replace("]", ")")
        assert {f"FAILED gates::{FAILS}", f"FAILED gates::{named}"} <= {
            line.partition(" - ")[0] for line in session.lines
        }
        if pytest.version_tuple >= (9,):  # older ones leave the reason out of this line
            assert f"FAILED gates::{FAILS} - failed: mean is 0.6667" in session.out
        [only] = [gate for gate in session.report["gates"] if gate["gate"] == BETWEEN]
        assert (only["outcome"], only["rows"], only["unknown"]) == ("inconclusive", 4, 1)
        summary = session.section("osmosis summary")
        assert any(line.split() == ["gate", *BETWEEN.split(), "INCONCLUSIVE"] for line in summary)
        assert "repeat 1 run to settle it" in " ".join(line.strip() for line in summary)
        assert max(map(len, summary)) <= 80

    @pytest.mark.slow
    def test_lf_runs_all_again_where_nothing_but_gates_has_failed(
        self, partly_known: Project, workers: int
    ):
        partly_known.rows("a", "wrong")
        more = [f"--osmosis-gate={gate}" for gate in (NAMED, "mean > 0.1")]
        assert partly_known.run(*more, "--osmosis-no-journal").ret == 1
        session = partly_known.run(*more, "--lf", "--osmosis-no-journal", workers=workers)
        assert outcomes(session) == {NAMED: "failed", "mean > 0.1": "passed"}
        assert len(session.runs) == 2
        assert session.ret == 1

    def test_one_row_alone_decides_for_itself(self, partly_known: Project, workers: int):
        session = partly_known.run("-k", "row-2", f"--osmosis-gate={PASSES}", workers=workers)
        assert (session.ret, session.outcomes["failed"]) == (1, 1)
        assert session.report["gates"] == []


def test_each_suite_has_its_own(project: Project):
    project.rows("a", "b", name="one.jsonl")
    project.rows("a", {"user_prompt": "b", "ground_truth": "no"}, name="two.jsonl")
    session = project.run(
        "--osmosis-data=two.jsonl", "--osmosis-gate=mean == 1", "-v", data="one.jsonl"
    )
    assert session.ret == 1
    assert [(gate["suite"], gate["outcome"]) for gate in session.report["gates"]] == [
        ("one.jsonl", "passed"),
        ("two.jsonl", "failed"),
    ]
    assert "gates::one.jsonl::mean == 1 PASSED" in session.out
    assert "gates::two.jsonl::mean == 1 FAILED" in session.out


MARKED = """
import pytest

@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
def test_it(rollout):
    rollout.record_score("size", len(rollout.solution_str))
    assert rollout.solution_str == rollout.ground_truth, "not that"
"""


@each_mode
def test_a_marked_functions_asserts_become_observations(partly_known: Project, workers: int):
    partly_known.write("test_it.py", MARKED)
    session = partly_known.plain(
        "test_it.py", f"-n{workers}", "--osmosis-model=m", "-rx", "--osmosis-output=out.json",
        f"--osmosis-base-url={partly_known.endpoint.base_url}",
        "--osmosis-gate=mean[test] >= 0.5", "--osmosis-gate=mean[size] >= 1.2",
    )  # fmt: skip
    assert outcomes(session) == {"mean[test] >= 0.5": "passed", "mean[size] >= 1.2": "inconclusive"}
    assert session.ret == 8
    assert session.outcomes["below"] == 1
    assert "AssertionError: not that" in session.out


OWN_MODEL = """
import pytest

def parrot(question):
    return question

@pytest.mark.osmosis(agent=parrot, data="data.jsonl", n=2)
def test_own(rollout):
    assert rollout.solution_str == rollout.ground_truth
"""


@pytest.mark.parametrize(("limit", "status"), [("0.5", 0), ("0.6", 1)])
def test_gates_decide_where_a_marker_alone_begins_the_evaluation(
    project: Project, limit: str, status: int
):
    project.rows("a", {"user_prompt": "b", "ground_truth": "c"})
    project.write("test_own.py", OWN_MODEL)
    session = project.plain("test_own.py", "-n0", f"--osmosis-gate=mean >= {limit}")
    assert session.ret == status, session.out
    assert ("gate passed" in session.out) == (status == 0)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_gate_that_decides_on_nothing_is_no_success(project: Project, workers: int):
    project.write("test_it.py", "def test_it():\n    pass\n")
    session = project.plain(f"-n{workers}", "--osmosis-gate=mean >= 0.5")
    assert session.ret == 4
    assert "--osmosis-gate 'mean >= 0.5' decided on nothing" in session.out
    assert project.plain(f"-n{workers}").ret == 0


@each_mode
def test_gates_decide_on_data_files_and_functions_beside_them_for_themselves(
    partly_known: Project, workers: int
):
    partly_known.write("test_it.py", MARKED)
    partly_known.write("pytest.ini", "[pytest]\nosmosis_agent = agent:agent_loop\n")
    session = partly_known.run(
        "--osmosis-gate=mean >= 0.1", "test_it.py", "data.jsonl", "--osmosis-markdown=out.md",
        workers=workers, agent=None,
    )  # fmt: skip
    [gate] = session.report["gates"]
    assert (gate["suite"], gate["outcome"]) == ("data.jsonl", "passed")
    assert (session.ret, session.outcomes["failed"]) == (1, 1)  # one is wrong, one has an error
    own = [suite["summary"]["verdict"] for suite in session.report["suites"]]
    assert (sorted(own), session.report["summary"]["verdict"]) == (["failed", "passed"], "failed")
    headline = (partly_known.path / "out.md").read_text().partition("\n")[0]
    assert headline == "## ❌ Evaluation: 1 of 1 gate passed, 2 of 4 other runs passed"


def runs(project: Project, *words: str) -> str:
    done = CliRunner().invoke(
        cli, ["eval", "runs", "--run-dir", str(project.path / ".osmosis/runs"), *words]
    )
    assert done.exit_code == 0, done.output
    return done.output


def everywhere(project: Project) -> set[str]:
    """What report, list, `show`, and the list and pages of `view` say of the one evaluation."""
    [listed] = json.loads(runs(project, "list", "--json"))["runs"]
    library = Library(project.path)
    found = library.entries()
    entries = [*found, *(entry.report for entry in found if entry.report is not None)]
    assert {entry.kind for entry in entries} == {"run", "report"}
    states = {view_of(library.view(entry).result).state for entry in entries}
    said = json.loads((project.path / "out.json").read_text())["summary"]["verdict"]
    shown = (
        runs(project, "show", listed["name"]).partition("\n")[0].partition(": ")[2].split(", ")[-2]
    )
    return {said, listed["verdict"], shown, *states, *(entry.run.verdict for entry in entries)}


@pytest.mark.parametrize(
    ("gate", "status", "verdict"),
    [("mean >= 0.25", 0, "passed"), ("mean >= 0.9", 1, "failed")],
)
def test_it_is_that_of_the_exit_status(project: Project, gate: str, status: int, verdict: str):
    project.endpoint.answers = lambda ask: "right" if ask.row in ("a", "b") else "half"
    project.rows("a", "b", "c", "d")
    session = project.run(f"--osmosis-gate={gate}", eval_fn="rewards:judge")
    assert session.ret == status
    assert [each["outcome"] for each in session.report["gates"]] == [verdict]
    assert everywhere(project) == {verdict}
    [listed] = json.loads(runs(project, "list", "--json"))["runs"]
    shown = runs(project, "show", listed["name"])
    assert f"complete, {verdict}, 4/4 runs" in shown
    assert f"gate  {gate}" in shown
    assert "2 passed, 2 below" in shown.replace("2 below, 2 passed", "2 passed, 2 below")
    library = Library(project.path)
    suite = library.view(library.entries()[0]).result.suites[0]
    assert [run.outcome for run in suite.runs] == ["passed"] * 2 + ["below"] * 2
    [chart] = charts_of(suite)
    assert chart.scores is not None
    assert [bar.state for bar in chart.scores.bars] == ["below", "passed"]


def test_a_session_that_the_endpoint_stopped_is_unfinished_though_its_gate_has_passed(
    project: Project,
):
    down = error_reply(503, "down", headers={"x-should-retry": "false"})
    project.endpoint.answers = lambda ask: ask.row if ask.row == "0" else down
    project.rows(*map(str, range(18)))
    session = project.run("--osmosis-gate=errors >= 1", "--osmosis-markdown=out.md")
    assert (session.ret, session.report["gates"][0]["outcome"]) == (1, "passed")
    assert everywhere(project) == {"unfinished"}
    headline = (project.path / "out.md").read_text().partition("\n")[0]
    assert headline == "## ❌ Evaluation: 1 of 1 gate passed, cut short"


def test_a_session_without_the_gates_of_the_one_that_it_extends_has_its_own(
    project: Project,
):
    project.endpoint.answers = "no"
    project.rows("a", "b")
    assert project.run("--osmosis-gate=mean <= 0.25").ret == 0
    assert everywhere(project) == {"passed"}
    assert project.run("--osmosis-extend").ret == 1
    assert everywhere(project) == {"failed"}


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
def test_what_is_not_needed_is_not_run_and_reported_as_not_run(easy: Project, workers: int):
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
    assert report["summary"]["halted"] == "every gate is decided"
    assert report["summary"]["complete"] is False
    assert session.outcomes["passed"] == ran + 1  # the test beside it as well
    assert session.outcomes["skipped"] == 20 - ran
    assert f"SKIPPED [{20 - ran}] data.jsonl:0: not run: every gate is decided" in session.lines
    assert len(session.junit.findall(".//testcase/skipped")) == 20 - ran
    summary = "\n".join(session.section("osmosis summary"))
    assert "stopped: every gate is decided" in summary
    assert f"{20 - ran} of 20 runs ({(20 - ran) / 20:.0%}) did not have to be run" in summary


def test_a_gate_that_is_never_settled_early_lets_all_run(easy: Project):
    sure = ("--osmosis-gate=mean >= 0.25", "--osmosis-confidence=0.9")
    for gates in (("--osmosis-gate=mean == 1",), sure):
        session = easy.run(STOP, "--osmosis-fresh", *gates)
        assert (session.ret, len(session.runs)) == (0, 20)
        assert session.report["summary"]["halted"] is None


@pytest.mark.slow
def test_extending_without_it_runs_what_was_left_out(easy: Project):
    gate = "--osmosis-gate=mean >= 0.25"
    assert len(easy.run(STOP, gate).runs) == 5
    session = easy.run(gate, "--osmosis-extend")
    assert len(session.runs) == 20
    assert easy.endpoint.requests == 20
