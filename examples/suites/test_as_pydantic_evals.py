"""Suites in the shape of pydantic-evals: cases, a task, evaluators."""

from __future__ import annotations

import json
import os

from shop import Support, agent, answer, triage

from osmosis_ai import scorers
from pytest_osmosis import Rollout, osmosis

CASES = [
    {"id": "shipped", "user_prompt": "Where is A1?", "ground_truth": "shipped"},
    {"id": "packed", "user_prompt": "And B2?", "ground_truth": "packed"},
]


@osmosis(agent=answer, data=CASES)
def test_contains(rollout: Rollout) -> None:
    """`Dataset(cases=[Case(...)], evaluators=[Contains()])`, `dataset.evaluate_sync(answer)`."""
    verdict = scorers.includes()(rollout.text, rollout.ground_truth)
    assert verdict["score"] == 1.0, verdict["reason"]


@osmosis(
    agent=triage,
    data=[
        {"user_prompt": "Give me my money!", "topic": "refund"},
        {"user_prompt": "A1?", "topic": "status"},
    ],
)
def test_structured_output(rollout: Rollout) -> None:
    """`IsInstance`, and `EqualsExpected` on one field: the task returns a dict."""
    said = json.loads(rollout.text)
    assert isinstance(said["urgent"], bool)
    assert said["topic"] == rollout.row["topic"]


@osmosis(
    agent=agent,
    data=lambda: [{"user_prompt": "Where?", "order": name} for name in ("A1", "B2")],
    n=2,
)
def test_spans_and_duration(rollout: Rollout) -> None:
    """`HasMatchingSpan` for a tool, `MaxDuration`."""
    assert rollout.called("get_order", order_id=rollout.row["order"])
    assert rollout.duration_s < 60


@osmosis(agent=Support(tone="formal"), data=CASES)
def test_evaluator_of_your_own(rollout: Rollout) -> None:
    """An `Evaluator` that returns several scores and a label."""
    words = rollout.text.split()
    rollout.record_score("length", len(words), reason=f"{len(words)} words")
    rollout.record_score("formal", rollout.text.startswith("Dear"), pass_threshold=1.0)
    assert rollout.scores["formal"]


judge = scorers.judge(
    "1.0: friendly. 0.0: not.", model="openai/judge", api_base=os.environ.get("JUDGE_URL")
)


@osmosis(agent=answer, data=CASES, limit=1)
async def test_judge(rollout: Rollout) -> None:
    """`LLMJudge(rubric=...)`."""
    verdict = await judge(rollout.text, rollout.ground_truth, rollout.row)
    rollout.record_score("friendly", verdict["score"], verdict["reason"])
    assert verdict["score"] >= 0.5
