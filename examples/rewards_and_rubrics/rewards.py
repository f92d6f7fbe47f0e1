"""Reward functions: plain code that scores an answer."""

from __future__ import annotations

import re
from typing import Any

from osmosis_ai import osmosis_reward


@osmosis_reward
def exact(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
    """Whether the number behind #### is the right one, character by character."""
    return 1.0 if final_number(solution_str) == ground_truth else 0.0


@osmosis_reward
def close(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
    """From 1.0, right, down to 0.0, off by the truth's own size or more."""
    said = final_number(solution_str)
    if said is None:
        return 0.0
    truth = float(ground_truth)
    return max(0.0, 1.0 - abs(float(said) - truth) / max(abs(truth), 1.0))


async def short(messages: list[dict[str, Any]], metadata: dict[str, Any]) -> float:
    """A function of the whole conversation; it may be `async`, and takes what it names."""
    words = len(messages[-1]["content"].split())
    return 1.0 if words <= metadata.get("most_words", 40) else 0.5


def final_number(text: str) -> str | None:
    found = re.search(r"####\s*(-?\d+(?:\.\d+)?)", text)
    return found.group(1) if found else None
