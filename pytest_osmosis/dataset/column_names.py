"""The names that datasets give their columns, by what the columns are; the one list of them.

Compared by letters and digits alone, in lower case: `Best Answer` and `best_answer` are one name.
"""

from __future__ import annotations

QUESTIONS = (
    "question", "prompt", "problem", "problem_statement", "instruction", "query", "input", "text",
)  # fmt: skip
"""The most usual first, here and below. One of these alone is taken without being asked about."""
TRUTHS = (
    "final_answer", "expected_answer", "correct_answer", "reference_answer", "answer", "answerkey",
    "gold", "target", "expected", "expected_output", "ideal", "best answer", "reference",
    "solution", "canonical_solution", "output",
)  # fmt: skip
"""Likewise."""
SYSTEM_PROMPTS = ("system",)

RARER_QUESTIONS = (
    "user_prompt", "user_input", "question_stem", "question_text", "ctx", "goal", "sentence",
    "task", "user", "request", "message", "description", "sample_input", "content", "title", "q",
    "hypothesis",
)  # fmt: skip
"""Proposed, never taken unasked."""
RARER_TRUTHS = (
    "answers", "outputs", "reference_outputs", "ground_truths",
    "gold_answer", "golden_answer", "golden_answers", "correct", "correct_option",
    "correct_answers", "right_answer", "answer_idx", "answer_index", "correct_idx",
    "correct_index", "answer_key", "cop", "gt", "truth", "targets", "expected_response",
    "__expected", "references", "answers_spans", "labels", "response", "completion", "chosen",
    "summary", "highlights", "patch", "code", "gold_label", "class", "category_label", "a",
)  # fmt: skip
OPTIONS = ("choices", "options", "endings", "candidates", "alternatives", "mc1_targets")
"""What an answer is chosen from."""
OPTION_STEMS = ("", "option", "choice", "sol", "solution", "ending", "answer", "op", "candidate")
"""Of columns with an option each: `option_a`, `choice1`, `A`."""
CONTEXTS = (
    "context", "passage", "article", "story", "document", "paragraph", "background", "contexts",
    "premise",
)  # fmt: skip
"""What a question is about, in a column of its own."""
TESTS = ("test", "tests", "test_list", "test_cases", "unit_tests")
"""Programs that try an answer out."""
NOT_ALONE = (
    *OPTIONS, *CONTEXTS, *TESTS, *(f"{stem}{second}" for stem in OPTION_STEMS for second in "b2"),
    "hypothesis", "label",
)  # fmt: skip
"""Beside these a question is not all that an agent needs, or a truth not clear."""


def plain(name: str) -> str:
    """Return a name as it is compared."""
    return "".join(filter(str.isalnum, name.lower()))
