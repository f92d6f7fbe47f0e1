"""Sessions on Ray whose process for it is another program: what a cluster's fate means to them."""

from __future__ import annotations

import pytest

from osmosis_executors.ray import cluster, connection
from tests.support.project import Project

KEY = "sk-not-for-a-cluster"
CLUSTER = """
import json, os, sys
from pathlib import Path

kind, values = json.loads(sys.stdin.readline())
Path("seen").write_text(json.dumps([sys.orig_argv, dict(os.environ), values]))
found = {"host": "127.0.0.1", "processors": 4.0, "folder": None}
print(json.dumps(["connected", found]), flush=True)
"""
GOES_AWAY = f"{CLUSTER}\nsys.stdin.readline()\nos._exit(1)"
IS_NOT_THERE = """
import json

print(json.dumps(["refused", {"why": "no cluster can be used: connection refused"}]))
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_NEEDED", ())


def test_a_cluster_that_goes_away_ends_the_session_with_a_report_and_the_next_step(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "_CODE", GOES_AWAY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.rows("one", "two")
    lost = project.run("--osmosis-ray=10.0.0.1:6379", "--osmosis-shards=1")
    assert (lost.ret, lost.report["summary"]["total_runs"]) == (1, 0)
    assert "stopped: the Ray cluster went away; the same command resumes" in lost.out
    assert "osmosis: 1 shard on the Ray cluster of 127.0.0.1 (4 processors)" in lost.lines
    assert KEY not in (project.path / "seen").read_text()
    done = project.run()
    assert (done.ret, len(done.runs), project.endpoint.requests) == (0, 2, 2)


def test_a_cluster_that_is_not_there_is_a_usage_error(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "_CODE", IS_NOT_THERE)
    project.rows("one")
    refused = project.run("--osmosis-ray=10.0.0.1:6379")
    assert (refused.ret, project.endpoint.requests) == (4, 0)
    assert refused.mistake == (
        "--osmosis-ray 10.0.0.1:6379: no cluster can be used: connection refused"
    )
