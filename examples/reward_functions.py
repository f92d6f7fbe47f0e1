"""Reward functions: plain code that scores an answer, without any request.

    PYTHONPATH=. python examples/reward_functions.py

In an evaluation: `--eval-fn examples/reward_functions.py:numeric_tolerance`.
"""

from __future__ import annotations

import re

from osmosis_ai import osmosis_reward


@osmosis_reward
def simple_reward(solution_str: str, ground_truth: str, extra_info: dict = None) -> float:
    """Whether the answer is the right one, character by character."""
    return 1.0 if solution_str.strip() == ground_truth.strip() else 0.0


@osmosis_reward
def case_insensitive_match(solution_str: str, ground_truth: str, extra_info: dict = None) -> float:
    """Whether the answer is the right one in any case; half for one that is nearly as long."""
    said, right = solution_str.strip().lower(), ground_truth.strip().lower()
    if said == right:
        return 1.0
    wants_partial = bool(extra_info and extra_info.get("partial_credit"))
    return 0.5 if wants_partial and abs(len(said) - len(right)) <= 2 else 0.0


@osmosis_reward
def numeric_tolerance(solution_str: str, ground_truth: str, extra_info: dict = None) -> float:
    """Whether the answer is a number within `tolerance` of the right one, 0.01 unless given."""
    tolerance = (extra_info or {}).get("tolerance", 0.01)
    try:
        return 1.0 if abs(float(solution_str) - float(ground_truth)) <= tolerance else 0.0
    except ValueError:
        return 0.0


@osmosis_reward
def last_number(solution_str: str, ground_truth: str, extra_info: dict = None) -> float:
    """Whether the last number that the answer names is the right one."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", solution_str.replace(",", ""))
    return 1.0 if numbers and float(numbers[-1]) == float(ground_truth) else 0.0


def main() -> None:
    """Print what each function says of an answer or two."""
    for score in (
        simple_reward("hello world", "hello world"),
        simple_reward("Hello World", "hello world"),
        case_insensitive_match("Hello World", "hello world"),
        case_insensitive_match("hello word", "hello world", {"partial_credit": True}),
        numeric_tolerance("3.141", "3.14159"),
        numeric_tolerance("3", "3.14159", {"tolerance": 0.2}),
        last_number("17 * 23 is 391.", "391"),
    ):
        print(score)


if __name__ == "__main__":
    main()
