"""What agents in threads read of the environment while pytest goes from item to item."""

from __future__ import annotations

from tests.support.project import Project

AGENT = """
import os


def agent(question):
    for _ in range(1000):
        dict(os.environ.items())  # as clients do that look for proxies
    return question
"""
PHASES = """
def pytest_runtest_call(item):
    pass
"""


def test_the_name_of_the_test_does_not_vanish_under_a_thread(project: Project):
    project.write("conftest.py", PHASES)  # pytest's own protocol reports each item
    project.write("app.py", AGENT)
    project.rows(*map(str, range(40)))
    own = {"model": None, "base_url": None}
    session = project.run("--batch-size=8", agent="app:agent", **own)
    assert session.outcomes == {"passed": 40}, session.out
