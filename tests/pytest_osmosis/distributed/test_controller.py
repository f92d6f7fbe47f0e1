"""The controller's side of its channels to workers."""

from __future__ import annotations

from tests.support.project import Project

STRANGER = """
def pytest_collection_finish(session):
    given = getattr(session.config, "workerinput", None)
    if given is not None:
        given["osmosis_channel"].send(("strange", 1))
"""


def test_a_message_of_no_known_kind_ends_the_session(project: Project):
    project.write("conftest.py", STRANGER)
    project.rows("a", "b")
    session = project.run(workers=1)
    assert session.ret == 1
    assert "worker gw0 has sent 'strange', which is no known message" in session.out
