"""An evaluation as ordinary tests: each row and run is a test, and `assert` decides."""

from __future__ import annotations

import pytest


def number_in(text: str) -> float:
    return float(text.rpartition("####")[2])


@pytest.fixture
def tolerance() -> float:
    return 1e-6


@pytest.mark.osmosis(agent="agent:agent_loop", data="questions.jsonl", n=3)
def test_the_answer_is_right(rollout, tolerance):
    number, truth = number_in(rollout.solution_str), float(rollout.ground_truth)
    rollout.record_score("closeness", max(0.0, 1.0 - abs(number - truth) / abs(truth)))
    assert number == pytest.approx(truth, rel=tolerance)


@pytest.mark.osmosis(agent="agent:agent_loop", data="questions.jsonl")
def test_the_answer_is_short(rollout):
    assert rollout.messages[-1]["role"] == "assistant"
    assert len(rollout.solution_str) < 200
    assert rollout.metadata["row_index"] in range(5)
