"""Which option of a multiple-choice row an answer names, and which a ground truth says is right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from osmosis_ai.option_reading import chosen_option, read_options
from osmosis_ai.scorers import choice

TEXTS = ["Paris", "Rome", "Vitamin C", "Guilty", "Guilty of Romance", "E. coli", "iron", "4", "5"]
TEN = [*TEXTS, "tin"]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("B", "B"), ("b", "B"), ("(B)", "B"), ("**B**", "B"), ("B.", "B"), ("B) Rome", "B"),
        ("b. Rome", "B"), ("Answer: B", "B"), (r"\boxed{B}", "B"), (r"$\boxed{\text{(B)}}$", "B"),
        ("#### B", "B"), ("（Ｂ）", "B"), ("答案：B", "B"), ("Antwort:\n\nAntwort: C", "C"),
        ('{"answer": "B"}', "B"), ("<answer>b</answer>", "B"), ("## Answer\n**(B)**", "B"),
        ("Rome", "B"), ("rome.", "B"), ("**Rome**", "B"), ("The capital is Rome.", "B"),
        ("The answer is Guilty of Romance", "E"), ("Vitamin C prevents scurvy.", "C"),
        ("Answer: E. coli", "F"), ("4", "H"), ("The answer is 5.", "I"), ("It is 4.5", None),
        ("The answer is I.", "I"), ("I think so", None), ("A good question: Rome!", "B"),
        ("The answer is B because a car moves.", "B"), ("I would pick B, a safe choice.", "B"),
        ("The answer is C because I computed it.", "C"), ("The correct answer is d.", "D"),
        ("Answer seems to be A.\n\nAnswer: C", "C"), ("ANSWER IS D. A is incorrect.", "D"),
        ("I considered (A), but it is incorrect. Final answer: D.", "D"),
        ("Answer: It is not B, the answer is D", "D"), ("Answer: D, not B", "D"),
        ("Answer: rules out C, leaving D", "D"), ("It is (B), not A.", "B"),
        ("A. Paris: no\nB. Rome: yes\nSo B.", "B"), ("A. Paris\nB. Rome", None),
        ("Option B is correct. Option A is wrong.", "B"), ("B\n\nThe answer is clear.", "B"),
        ("(A) is wrong. (C) is wrong.", None), ("Option C is like option D", None),
        ("A or B", None), ("Both A and B", None), ("Answer: A/B", None), (r"\boxed{A, B}", None),
        ("Paris or Rome", None), ("not Rome but Paris", "A"), ("B) Paris", None),
        ("The answer is option B: Paris", None), ("Answer: none of these. A is Paris", None),
        ("Vitamin C or Rome", None), ("ABCD", None), ("Neither", None), ("", None),
        (r"A \boxed{B", None), ("A is a letter", None), ("(Guilty  of Romance)", "E"),
        (r"\boxed{Vitamin  C} ", "C"), ("A good choice is C.", "C"), ("Answer - B", "B"),
        ("The correct statement is B.", "B"), ("Solution: B", "B"), ("<final>B</final>", "B"),
        ("La respuesta correcta es B", "B"), ("故选：B", "B"), ("Ⓑ", "B"), ("【B】", "B"),
        ("That leaves us with B.", "B"), ("The answer is Guilty of\nRomance.", "E"),
        ("It is called Guilty\nof Romance", "E"), (r"\boxed{A,B}", None),
        ("Answer: B or maybe C", None),
        ("A and C can be eliminated. D as well is wrong.", None), ("I rule out A, C and D.", None),
        ("A (Paris) and B (Rome) are wrong.", None), ("It's not A, B is right.", "B"),
        ("La respuesta no es A", None), ("Die Antwort ist nicht A", None), ("答案不是A", None),
        ("La réponse n'est pas A", None), ("The answer is A? Then it is B.", "B"),
        ("Not A or C. Answer: B", "B"), ("not Paris or Guilty: Rome", "B"),
    ],
)  # fmt: skip
def test_an_answer_names_an_option_in_the_place_that_decides(answer: str, label: str | None):
    options = read_options(TEN, "choices")
    named = chosen_option(answer, options)
    assert (options.labels[named] if isinstance(named, int) else None) == label, named


ARC = {"text": ["gravity", "a dog", "wind", "rain"], "label": ["1", "2", "3", "4"]}
LETTERED = {"text": ["gravity", "a dog"], "label": ["A", "B"]}


@pytest.mark.parametrize(
    ("row", "truth", "base", "right"),
    [
        ({"choices": TEXTS}, "B", None, "B"), ({"choices": TEXTS}, "(b)", None, "B"),
        ({"choices": TEXTS}, 1, None, "B"), ({"choices": TEXTS}, 1.0, None, "B"),
        ({"choices": TEXTS}, 1, 1, "A"), ({"choices": TEXTS}, "1", 0, "B"),
        ({"choices": TEXTS}, "1", 1, "A"), ({"choices": TEXTS}, "rome", None, "B"),
        ({"choices": TEXTS}, ["A", "Rome"], None, "A"), ({"choices": ARC}, "3", None, "3"),
        ({"choices": ARC}, "3", None, "C"), ({"choices": ARC}, 3, None, "3"),
        ({"choices": LETTERED}, "B", None, "B"), ({"choices": {"X": "a", "Y": "b"}}, "Y", 1, "Y"),
        ({"choices": [{"label": "A", "text": "x"}, {"label": "B", "text": "y"}]}, "y", None, "B"),
        ({"choices": '["one", "two"]'}, 1, None, "B"), ({}, "B", None, "B"), ({}, "2", 0, "C"),
        ({"choices": ["30", "42"]}, "42", None, "B"),
    ],
)  # fmt: skip
def test_a_ground_truth_is_a_label_a_place_or_a_text(
    row: dict[str, Any], truth: Any, base: Any, right: str
):
    assert choice(base=base)(right, truth, row) == {"score": 1.0}


@pytest.mark.parametrize(
    ("row", "truth", "fault"),
    [
        ({"choices": TEXTS}, None, "'ground_truth' is missing"),
        ({"choices": TEXTS}, " ", "'ground_truth' is blank"),
        ({"choices": TEXTS}, [], "'ground_truth' is an empty list"),
        ({"choices": TEXTS}, True, "is true, which names no option"),
        ({"choices": TEXTS}, "Oslo", "is 'Oslo', which is none of the options A, B, C"),
        ({"choices": TEXTS}, 9, "is 9, and the options are 0 to 8"),
        ({"choices": TEXTS}, "2", "is '2': is the first option 0 or 1? Say so: choice(base=0)"),
        ({}, 2, "is 2: is the first option 0 or 1?"),
        ({}, "x y", "is no letter, and the row has no options"),
        ({"choices": ["3", "4", "5"]}, "2", "is '2': is the first option 0 or 1?"),
        ({"choices": ["B", "A"]}, "A", "is 'A', which can be A ('B') and B ('A')"),
        ({"choices": [1, 2, 3]}, 1, "is 1, which can be A ('1') and B ('2')"),
        ({"choices": ["a", "A"]}, "a ", "is 'a', which can be A ('a') and B ('A')"),
        ({"endings": TEXTS}, 1, "the row has no 'choices'; try choice(options='endings')"),
        ({"choices": "a, b"}, 1, "'choices' is a text, not a list of options"),
        ({"choices": ["a"]}, 0, "'choices' has 1 options"),
        ({"choices": [["a"], ["b"]]}, 0, "'choices' is no list of options"),
        ({"choices": {"text": ["a", "b"], "label": ["A"]}}, 0, "needs one label of its own"),
    ],
)  # fmt: skip
def test_a_row_that_names_no_right_option_is_refused(row: dict[str, Any], truth: Any, fault: str):
    scorer: Any = choice()
    assert fault in scorer.refuse_row(truth, row)
    with pytest.raises(ValueError, match="choice: "):
        scorer("A", truth, row)


WORDS = st.text(alphabet="bcdfghjklmnpqrstvwz ", min_size=3, max_size=12).map(str.strip)
AROUND = [
    "{}", "({})", "**{}**", "Answer: {}", "The answer is {}.", r"So \boxed{{{}}}.", "#### {}",
    "Let me think: a car, an I-beam.\n\nThe correct answer is **{}**.", "Final answer:\n{}",
]  # fmt: skip


@given(
    st.lists(WORDS, min_size=2, max_size=8, unique_by=lambda text: " ".join(text.split())),
    st.data(),
    st.sampled_from(AROUND),
)
def test_a_named_option_scores_where_it_is_the_right_one_alone(
    texts: list[str], data: st.DataObject, around: str
):
    assume(all(len(text) > 2 and not text.isspace() for text in texts))
    given_at, right = (data.draw(st.integers(0, len(texts) - 1)) for _ in range(2))
    row = {"choices": texts}
    for named in ("ABCDEFGH"[given_at], texts[given_at]):
        verdict = choice()(around.format(named), right, row)
        assert verdict["score"] == float(given_at == right), (around.format(named), verdict)


@pytest.mark.parametrize(
    "part",
    [
        "(A) ",
        "answer is ",
        "A or ",
        "Paris ",
        "not ",
        "**A** ",
        r"\boxed{",
        "A\n",
        "so ",
        "option ",
    ],
)
def test_a_long_answer_is_read_in_time_that_grows_with_it(part: str):
    options = read_options(TEN, "choices")
    chosen_option(part * (30_000 // len(part)), options)
