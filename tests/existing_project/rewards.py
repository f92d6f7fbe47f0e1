# ruff: noqa: RUF013, UP006, UP035, UP045
"""Reward functions, as an existing project has them."""

import re
from typing import Any, Dict, List, Optional

from osmosis_ai import osmosis_reward


def extract_solution(solution_str: str) -> Optional[str]:
    solution = re.search(r"####\s*([-+]?\d*\.?\d+)", solution_str)
    return solution.group(1) if solution else None


@osmosis_reward
def compute_reward(
    solution_str: str, ground_truth: str, extra_info: dict = None, **kwargs
) -> float:
    extracted = extract_solution(solution_str)
    if extracted is None:
        return 0.0
    try:
        return 1.0 if abs(float(extracted) - float(ground_truth)) < 1e-2 else 0.0
    except ValueError:
        return 0.0


def exact_match(solution_str: str, ground_truth: str, extra_info: dict = None, **kwargs) -> float:
    return 1.0 if extract_solution(solution_str) == ground_truth.strip() else 0.0


async def conversation_quality(
    messages: List[Dict[str, Any]], ground_truth: str, metadata: dict, **kwargs
) -> float:
    assistant_messages = [m for m in messages if m["role"] == "assistant"]
    return min(1.0, len(assistant_messages) / 2)
