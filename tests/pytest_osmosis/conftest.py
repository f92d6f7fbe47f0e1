"""A project whose sessions talk to an endpoint of the test."""

from __future__ import annotations

import pytest

from osmosis_ai.models.retry import RetryPolicy
from tests.support.endpoints import Endpoint
from tests.support.project import NO_NEIGHBOURS, Project


@pytest.fixture
def project(
    pytester: pytest.Pytester, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project whose model is the endpoint, with short pauses between tries in this process.

    Its sessions load none of the neighbours.
    """
    monkeypatch.setenv("PYTEST_ADDOPTS", NO_NEIGHBOURS)
    for name in ("base_s", "cap_s"):
        monkeypatch.setitem(RetryPolicy.__init__.__kwdefaults__, name, 0.01)
    return Project(pytester, endpoint)
