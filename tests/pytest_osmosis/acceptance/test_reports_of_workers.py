"""What the controller, its plugins and those of the workers hear of items that workers run."""

from __future__ import annotations

import pytest

from tests.support.project import Project

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
    with open("noted", "a") as file:
        print(*words, sep="|", file=file)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Listener())
"""


def heard(project: Project) -> list[list[str]]:
    return [line.split("|") for line in (project.path / "noted").read_text().splitlines()]


@pytest.mark.slow
def test_plugins_of_the_controller_hear_of_each_item_from_its_start_to_its_finish(
    project: Project,
):
    project.rows(*ROWS)
    project.write("conftest.py", LISTENER)
    session = project.run("--batch-size=4", workers=2)
    assert session.outcomes == {"passed": 7}
    events = heard(project)
    assert [words[0] for words in events] == ["start", "report", "finish"] * 7
    for start, report, finish in zip(events[::3], events[1::3], events[2::3], strict=True):
        nodeid = start[1]
        line = nodeid[len("data.jsonl::row-")]  # from 0, as pytest counts
        assert start[1:] == finish[1:] == [nodeid, "data.jsonl", line, nodeid[12:]]
        _, of, when, outcome, gateway, worker, uid, index = report
        assert (of, when, outcome) == (nodeid, "call", "passed")
        assert gateway == worker in ("gw0", "gw1")
        assert int(uid) == 32
        assert IDS[int(index)] == nodeid
    assert sorted(start[1] for start in events[::3]) == IDS


@pytest.mark.slow
def test_what_is_wrong_in_a_worker_ends_the_session_and_is_shown(project: Project):
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
