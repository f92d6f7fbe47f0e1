"""Rubric functions: another model scores an answer.

The judge is named by variables, so that the same file serves here and in a test without network:
JUDGE_MODEL (`provider/model`), JUDGE_API_KEY, and JUDGE_BASE_URL for an endpoint of one's own.
"""

from __future__ import annotations

import os
from typing import Any

from osmosis_ai import aevaluate_rubric, evaluate_rubric, osmosis_rubric

RUBRIC = """\
1.0: the result is right and every step that leads to it is shown
0.5: the result is right, but it is not shown how it was found
0.0: the result is wrong
"""


def judge() -> dict[str, Any]:
    provider, _, model = os.environ.get("JUDGE_MODEL", "openai/gpt-4o-mini").partition("/")
    asked = {"provider": provider, "model": model, "api_key_env": "JUDGE_API_KEY"}
    base_url = os.environ.get("JUDGE_BASE_URL")
    return {**asked, "api_base": base_url} if base_url else asked


def explained(solution_str: str, ground_truth: str | None, extra_info: dict[str, Any]) -> float:
    """A `def` runs in a thread of its own while it waits for the judge."""
    return evaluate_rubric(
        RUBRIC,
        solution_str,
        judge(),
        ground_truth=ground_truth,
        original_input=extra_info["user_prompt"],
    )


async def explained_by_three(solution_str: str, ground_truth: str | None) -> float:
    """The median of three votes of a judge that does not always agree with itself."""
    return await aevaluate_rubric(RUBRIC, solution_str, judge(), ground_truth=ground_truth, votes=3)


@osmosis_rubric
def by_row(solution_str: str, ground_truth: str | None, extra_info: dict) -> float:
    """Each row has a rubric and a judge of its own: columns of `judged.jsonl`."""
    asked = {**extra_info, "api_base": os.environ.get("JUDGE_BASE_URL")}
    return evaluate_rubric(extra_info["rubric"], solution_str, asked, ground_truth=ground_truth)
