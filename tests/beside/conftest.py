"""Sessions with the neighbours loaded: each in a process of its own, since they load themselves."""

from __future__ import annotations

import pytest

from tests.support.endpoints import Endpoint
from tests.support.project import Project


@pytest.fixture
def project(
    pytester: pytest.Pytester, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project whose sessions load every plugin that is installed; its second row fails."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    project = Project(pytester, endpoint)
    project.write("pytest.ini", "[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    project.rows("alpha", {"user_prompt": "beta", "ground_truth": "B"}, "gamma")
    return project
