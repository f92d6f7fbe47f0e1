"""What the controller, its plugins and those of the workers hear of items that workers run."""

from __future__ import annotations

import os

import pytest

from tests.project import AGENT, Project

ROWS = [f"row {number}" for number in range(7)]
IDS = [f"data.jsonl::row-{number}[run-0]" for number in range(len(ROWS))]

LISTENER = """
class Listener:
    def pytest_runtest_logstart(self, nodeid, location):
        tell("start", nodeid, *location)

    def pytest_runtest_logreport(self, report):
        who = report.node.gateway.id, report.worker_id, len(report.testrun_uid), report.item_index
        tell("report", report.nodeid, report.when, report.outcome, *who)

    def pytest_runtest_logfinish(self, nodeid, location):
        tell("finish", nodeid, *location)


def tell(*words):
    with open("heard", "a") as file:
        print(*words, sep="|", file=file)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Listener())
"""


def heard(project: Project) -> list[list[str]]:
    return [line.split("|") for line in (project.path / "heard").read_text().splitlines()]


def test_plugins_of_the_controller_hear_of_each_item_from_its_start_to_its_finish(
    project: Project,
) -> None:
    project.rows(*ROWS)
    project.write("conftest.py", LISTENER)
    session = project.run("--batch-size=4", workers=2)
    assert session.outcomes == {"passed": 7}
    told = heard(project)
    assert [words[0] for words in told] == ["start", "report", "finish"] * 7
    for start, report, finish in zip(told[::3], told[1::3], told[2::3], strict=True):
        nodeid = start[1]
        assert start[1:] == finish[1:] == [nodeid, "data.jsonl", "None", nodeid[12:]]
        _, of, when, outcome, gateway, worker, uid, index = report
        assert (of, when, outcome) == (nodeid, "call", "passed")
        assert gateway == worker in ("gw0", "gw1")
        assert int(uid) == 32
        assert IDS[int(index)] == nodeid
    assert sorted(start[1] for start in told[::3]) == IDS


def test_verbose_names_the_worker_of_each_item(project: Project) -> None:
    project.rows(*ROWS)
    session = project.run("-v", "--batch-size=4", workers=2)
    lines = [line.split() for line in session.lines if " PASSED " in line]
    assert {line[0] for line in lines} <= {"[gw0]", "[gw1]"}
    assert sorted(line[-1] for line in lines) == IDS


def test_a_plugin_that_looks_at_items_sees_them_in_the_workers(project: Project) -> None:
    project.rows(*ROWS)
    project.write(
        "conftest.py",
        """
import os

def pytest_runtest_logstart(nodeid):
    with open("heard", "a") as file:
        print(os.getpid(), nodeid, sep="|", file=file)
""",
    )
    session = project.run("--batch-size=4", workers=2)
    assert session.outcomes == {"passed": 7}
    told = heard(project)
    assert sorted(nodeid for pid, nodeid in told if int(pid) == os.getpid()) == IDS
    assert sorted(nodeid for pid, nodeid in told if int(pid) != os.getpid()) == IDS


def test_what_agents_warn_of_is_in_the_summary_of_warnings(project: Project) -> None:
    warning = '        import warnings\n        warnings.warn("mind the gap")\n'
    line = "        messages = list(ctx.request.messages)\n"
    assert line in AGENT
    project.write("agent.py", AGENT.replace(line, warning + line))
    project.rows("a", "b")
    session = project.run("--batch-size=2", workers=1)
    assert session.outcomes == {"passed": 2, "warnings": 1}
    assert "UserWarning: mind the gap" in "\n".join(session.section("warnings summary"))


@pytest.mark.slow
def test_what_is_wrong_in_a_worker_ends_the_session_and_is_shown(project: Project) -> None:
    project.rows(*ROWS)
    project.write(
        "conftest.py",
        """
def broken():
    raise RuntimeError("nothing can be captured here")

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        import pytest_osmosis.rollouts.pool
        pytest_osmosis.rollouts.pool.capture = broken
""",
    )
    session = project.run("--batch-size=4", workers=2)
    assert session.ret == 3
    assert "RuntimeError: nothing can be captured here" in session.out + session.err
