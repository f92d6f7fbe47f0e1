"""What xdist and execnet may not have: an evaluation still ends right."""

from __future__ import annotations

import pytest

from pytest_osmosis.distributed import compat
from tests.support.project import Project


class Gateway:
    """A gateway of an execnet without channels that are known here."""


class Node:
    gateway = Gateway()


def test_without_channels_that_are_known_there_is_a_warning() -> None:
    with pytest.warns(pytest.PytestWarning, match="one rollout at a time; use -n 0"):
        assert compat.open_channel(Node()) is None


@pytest.mark.slow
def test_without_channels_workers_run_one_rollout_at_a_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.rows("a", {"user_prompt": "b", "ground_truth": "x"}, "c", "d")
    monkeypatch.setattr(compat, "open_channel", lambda node: None)
    session = project.run("--batch-size=8", workers=2)
    assert session.outcomes == {"passed": 3, "failed": 1}
    assert session.ret == 1
    assert [run["outcome"] for run in session.runs] == ["passed", "failed", "passed", "passed"]
    assert project.endpoint.max_in_flight <= 2
