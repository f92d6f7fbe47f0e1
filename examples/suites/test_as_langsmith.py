"""Suites in the shape of LangSmith's pytest plugin: one test a case, inputs, outputs, feedback."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from shop import answer, triage

from osmosis_ai import scorers
from pytest_osmosis import Rollout, osmosis


@osmosis(agent=answer, data=[{"user_prompt": "Where is A1?"}])
def test_one_case(rollout: Rollout) -> None:
    """`@pytest.mark.langsmith` with `t.log_inputs` and `t.log_outputs`: kept without being told."""
    assert "shipped" in rollout.text


@pytest.mark.parametrize("word", ["Order", "is"])
@osmosis(agent=answer, data=[{"user_prompt": "Where is A1?"}, {"user_prompt": "Where is B2?"}])
def test_parametrized(rollout: Rollout, word: str) -> None:
    """`@pytest.mark.parametrize` beside the marker, in either order."""
    assert word in rollout.text


@osmosis(agent=answer, data=[{"user_prompt": "Where is Z9?", "ground_truth": "not known"}], n=3)
def test_feedback(rollout: Rollout) -> None:
    """`t.log_reference_outputs`, `t.log_feedback(key=..., score=...)`, repetitions."""
    assert rollout.ground_truth is not None
    rollout.record_score(
        "right", rollout.ground_truth in rollout.text, reason="looked for the words"
    )
    rollout.record_score("short", 1 / len(rollout.text.split()))


@pytest.fixture
def judge() -> Any:
    """What the tests share is a fixture."""
    return scorers.judge(
        "1.0: polite. 0.0: rude.", model="openai/judge", api_base=os.environ.get("JUDGE_URL")
    )


@osmosis(agent=answer, data=[{"user_prompt": "Where is A1?"}])
async def test_traced_feedback(rollout: Rollout, judge: scorers.Judge) -> None:
    """`with t.trace_feedback():` a judge of your own, in an async test."""
    verdict = await judge(rollout.text, None, rollout.row)
    rollout.record_score("polite", verdict["score"], verdict.get("reason"))
    assert verdict["score"] > 0.5


@osmosis(agent=triage, data=lambda: json.loads('[{"user_prompt": "Now!", "urgent": true}]'))
async def test_async_app(rollout: Rollout) -> None:
    """An async application under an async test."""
    assert json.loads(rollout.text)["urgent"] is rollout.row["urgent"]
    assert not [call for call in rollout.tool_calls if call.error]
