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
    "user_prompt", "user_input", "inputs", "question_stem", "question_text", "ctx", "goal",
    "sentence", "task", "user", "request", "message", "description", "sample_input", "content",
    "title", "q", "hypothesis", "statement", "问题", "题目",
)  # fmt: skip
"""Proposed, never taken unasked."""
RARER_TRUTHS = (
    "answers", "outputs", "reference_outputs", "ground_truths",
    "gold_answer", "golden_answer", "golden_answers", "correct", "correct_option",
    "correct_answers", "right_answer", "answer_idx", "answer_index", "correct_idx",
    "correct_index", "answer_key", "cop", "gt", "truth", "targets", "expected_response",
    "__expected", "references", "answers_spans", "labels", "response", "completion", "chosen",
    "summary", "highlights", "patch", "code", "gold_label", "class", "category_label", "a",
    "答案", "标准答案", "参考答案",
)  # fmt: skip
CLASSES = ("label", "labels", "gold_label", "class", "category_label", "sentiment")
"""Truths of a few classes, which the prompt must name."""
QUESTION_WORDS = frozenset(("question", "prompt", "query", "problem", "instruction"))
TRUTH_WORDS = frozenset(
    ("answer", "expected", "truth", "target", "gold", "reference", "correct", "ideal", "solution")
)
"""Words of longer names: `Expected Answer (final)`."""
OTHER_WORDS = frozenset(
    ("id", "ids", "type", "source", "number", "count", "category", "date", "start", "format",
     "incorrect", "wrong", "model", "generated", "actual", "tokens", "score", "url", "name", "is",
     "system", "lang", "language", "context", "contexts")
)  # fmt: skip
"""Beside these the words above say something else."""
FACTS = (
    "category", "type", "subject", "level", "difficulty", "lang", "language", "split",
    "url", "domain", "dataset", "model", "date", "tags", "year", "author",
)  # fmt: skip
"""What describes a question, and is none."""
FUNCTIONS = ("tools", "functions", "function", "available_tools", "available_functions")
"""Definitions of what a model may call."""
CALLS = (
    "expected_tools", "expected_calls", "expected_tool_calls", "reference_tool_calls",
    "tool_calls", "calls", "tools",
)  # fmt: skip
"""The calls that are right."""
RUBRICS = ("rubric", "rubrics", "grading_notes", "grading_criteria", "criteria")
"""What a good answer to this row is."""
ASSERTIONS = "__expected"
"""Of promptfoo: a text to be equal to, or an assertion."""
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
