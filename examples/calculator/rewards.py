"""How good an answer is: three functions of the last message, and one of the whole conversation."""

from __future__ import annotations

import math
import re
from typing import Any

from osmosis_ai import osmosis_reward

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
ANSWER = re.compile(r"####\s*([-+]?\d+(?:\.\d+)?)")


def final_number(text: str) -> float | None:
    """The number after the last `####`, else the last number in the text."""
    found = ANSWER.findall(text) or NUMBER.findall(text.replace(",", ""))
    return float(found[-1]) if found else None


@osmosis_reward
def compute_reward(
    solution_str: str, ground_truth: str, extra_info: dict | None = None, **kwargs: Any
) -> float:
    """1.0 for the right number, else 0.0."""
    number = final_number(solution_str)
    if number is None or ground_truth is None:
        return 0.0
    return 1.0 if math.isclose(number, float(ground_truth), rel_tol=1e-6, abs_tol=1e-9) else 0.0


def exact_match(
    solution_str: str, ground_truth: str, extra_info: dict | None = None, **kwargs: Any
) -> float:
    """1.0 when what follows `####` is the ground truth, letter by letter."""
    _, marker, answer = solution_str.rpartition("####")
    return 1.0 if marker and answer.strip() == ground_truth.strip() else 0.0


def partial_match(
    solution_str: str, ground_truth: str, extra_info: dict | None = None, **kwargs: Any
) -> float:
    """1.0 for the right number, falling to 0.0 for one that is off by its own size."""
    number, truth = final_number(solution_str), float(ground_truth)
    if number is None:
        return 0.0
    return max(0.0, 1.0 - abs(number - truth) / max(1.0, abs(truth)))


async def conversation_quality(
    messages: list[dict[str, Any]], ground_truth: str, metadata: dict[str, Any], **kwargs: Any
) -> float:
    """How much was calculated rather than guessed: tools used, none in error, an answer given.

    A third each.
    """
    results = [message["content"] for message in messages if message["role"] == "tool"]
    no_errors = bool(results) and not any(content.startswith("Error") for content in results)
    answered = "####" in str(messages[-1].get("content"))
    return sum((bool(results), no_errors, answered)) / 3
