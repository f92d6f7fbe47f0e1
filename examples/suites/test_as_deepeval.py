"""Suites in the shape of DeepEval: test cases, metrics with thresholds, `assert_test`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest
from shop import agent, answer, triage

from osmosis_ai import scorers
from pytest_osmosis import Rollout, osmosis

GOLDENS = [
    {"user_prompt": "Where is A1?", "ground_truth": "Order A1 is shipped."},
    {"user_prompt": "Where is C3?", "ground_truth": "Order C3 is cancelled."},
]
golden = osmosis(agent=answer, data=GOLDENS, n=2)


@golden
def test_exact_match(rollout: Rollout) -> None:
    """`assert_test(LLMTestCase(...), [ExactMatchMetric()])`."""
    assert scorers.exact()(rollout.text, rollout.ground_truth)["score"] == 1.0


METRICS = {"length": 0.5, "mentions": 1.0}


@golden
@pytest.mark.parametrize("metric", METRICS)
def test_metrics_with_thresholds(rollout: Rollout, metric: str) -> None:
    """Metrics of your own, each with its threshold."""
    scores = {
        "length": min(1.0, len(rollout.text) / 20),
        "mentions": float("Order" in rollout.text),
    }
    rollout.record_score(metric, scores[metric], pass_threshold=METRICS[metric])
    assert scores[metric] >= METRICS[metric]


@osmosis(agent=agent, data=[{"user_prompt": "Where?", "order": "A1", "tools": ["get_order"]}])
def test_tool_correctness(rollout: Rollout) -> None:
    """`ToolCorrectnessMetric`: `tools_called` against `expected_tools`."""
    assert [call.name for call in rollout.tool_calls] == rollout.row["tools"]
    assert rollout.tool_calls[0].arguments == {"order_id": "A1"}


SCHEMA = {
    "type": "object",
    "required": ["topic", "urgent"],
    "properties": {"topic": {"enum": ["refund", "status"]}},
}


@osmosis(agent=triage, data=[{"user_prompt": "Hurry!"}, {"user_prompt": "I want my money back"}])
def test_json_correctness(rollout: Rollout) -> None:
    """`JsonCorrectnessMetric(expected_schema=...)`."""
    verdict = scorers.json_schema(SCHEMA)(rollout.text, None)
    assert verdict["score"] == 1.0, verdict["reason"]


class TestGEval:
    """`GEval(criteria=...)`, in a class with what all its tests share."""

    pytestmark = golden
    correctness = scorers.judge(
        "1.0: correct. 0.0: wrong.", model="openai/judge", api_base=os.environ.get("JUDGE_URL")
    )

    async def test_correctness(self, rollout: Rollout) -> None:
        row: Mapping[str, Any] = rollout.row
        assert (await type(self).correctness(rollout.text, rollout.ground_truth, row))[
            "score"
        ] >= 0.7
