"""Scores the text that the program printed."""


def right(solution_str: str, ground_truth: str) -> float:
    return float(solution_str.rpartition("####")[2].strip() == ground_truth)
