"""What is proposed for files in the shapes that people publish."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_osmosis.dataset.column_names import QUESTIONS, TRUTHS
from pytest_osmosis.dataset.shapes.search import SAMPLED, shape_of

LETTERS = '"ABCDEFGHIJ"[loop.index0]'
LISTED = '{%% for option in %s %%}{{ "\\n" }}{{ %s }}. {{ option }}{%% endfor %%}'
LABELLED = "choices.label[loop.index0]"
ASKED = {"role": "user", "content": "How many pears?"}
SAID = {"role": "assistant", "content": "Seven."}
NIGHT = ["is falling", "sings", "sleeps", "is over"]
LONG = "It lasted for a hundred years and more, and when it ended nobody remembered why. " * 2

Rows = list[dict[str, Any]]
Flags = list[tuple[str, str]]


def of_columns(question: str, *names: str) -> str:
    lines = (
        f'{{{{ "\\n" }}}}{letter}. {{{{ {name} }}}}'
        for letter, name in zip("ABCD", names, strict=False)
    )
    return f"{{{{ {question} }}}}{''.join(lines)}"


def mapped(*pairs: str) -> Flags:
    return [("map", pair) for pair in pairs]


MULTIPLE_CHOICE: dict[str, tuple[Rows, Flags]] = {
    "list and index": (
        [{"question": "Which?", "choices": ["a", "b", "c", "d"], "answer": at} for at in (0, 3)],
        [
            *mapped("answer=ground_truth"),
            ("prompt-template", "{{ question }}" + LISTED % ("choices", LETTERS)),
            ("eval-fn", "choice"),
        ],
    ),
    "texts and labels": (
        [
            {"question": "Which?", "choices": {"text": ["a", "b"], "label": labels}, "answerKey": k}
            for labels, k in ((["A", "B"], "B"), (["1", "2"], "1"))
        ],
        [
            *mapped("answerKey=ground_truth"),
            ("prompt-template", "{{ question }}" + LISTED % ("choices.text", LABELLED)),
            ("eval-fn", "choice"),
        ],
    ),
    "digits as text, from 0": (
        [{"ctx": "The night", "ctx_a": "x", "endings": NIGHT, "label": at} for at in "203"],
        [
            ("prompt-template", "{{ ctx }}" + LISTED % ("endings", LETTERS)),
            ("eval-fn", 'choice(options="endings", base=0)'),
        ],
    ),
    "columns and letters": (
        [{"question": "Which?", "A": "w", "B": "x", "C": "y", "D": "z", "answer": "B"}],
        [
            *mapped("answer=ground_truth"),
            ("prompt-template", of_columns("question", "A", "B", "C", "D")),
            ("eval-fn", "choice"),
        ],
    ),
    "two columns, from 1": (
        [{"sentence": "The _ fell.", "option1": "x", "option2": "y", "answer": a} for a in "21"],
        [
            *mapped("answer=ground_truth"),
            ("prompt-template", of_columns("sentence", "option1", "option2")),
            ("eval-fn", "choice(base=1)"),
        ],
    ),
    "columns, from 0": (
        [{"goal": "Open it", "sol1": "push", "sol2": "pull", "label": at} for at in (0, 1)],
        [
            ("prompt-template", of_columns("goal", "sol1", "sol2")),
            ("eval-fn", "choice(base=0)"),
        ],
    ),
    "objects, labelled": (
        [
            {
                "question_stem": "Which?",
                "options": [{"key": "A", "text": "x"}, {"key": "B", "text": "y"}],
                "answer": "A",
            }
        ],
        [
            *mapped("answer=ground_truth"),
            (
                "prompt-template",
                "{{ question_stem }}{% for option in options %}"
                '{{ "\\n" }}{{ option.key }}. {{ option.text }}{% endfor %}',
            ),
            ("eval-fn", 'choice(options="options")'),
        ],
    ),
    "by letter in an object, the text right": (
        [{"question": "Which?", "options": {"A": "x", "B": "y"}, "answer": "y", "answer_idx": "B"}],
        [
            *mapped("answer=ground_truth"),
            (
                "prompt-template",
                "{{ question }}{% for label, option in options.items() %}"
                '{{ "\\n" }}{{ label }}. {{ option }}{% endfor %}',
            ),
            ("eval-fn", 'choice(options="options")'),
        ],
    ),
    "JSON in a text": (
        [{"question": "Which?", "options": '["x", "y"]', "answer": at} for at in "AB"],
        [
            *mapped("answer=ground_truth"),
            ("prompt-template", '{{ question }}{{ "\\n" }}{{ options }}'),
            ("eval-fn", 'choice(options="options")'),
        ],
    ),
    "letters in a text": (
        [{"Problem": "Which?", "options": "a ) x , b ) y", "correct": at} for at in "ab"],
        [
            *mapped("correct=ground_truth"),
            ("prompt-template", '{{ Problem }}{{ "\\n" }}{{ options }}'),
            ("eval-fn", "choice"),
        ],
    ),
    "columns, the text is right": (
        [{"question": "Which?", "option1": "x", "option2": "yes", "correct": "yes"}],
        [
            *mapped("correct=ground_truth"),
            (
                "prompt-template",
                '{{ question }}{{ "\\n" }}- {{ option1 }}{{ "\\n" }}- {{ option2 }}',
            ),
            ("eval-fn", "includes"),
        ],
    ),
    "marked by ones": (
        [
            {
                "question": "What if?",
                "mc1_targets": {"choices": ["Nothing", "You die"], "labels": [1, 0]},
            }
        ],
        [
            *mapped("question=user_prompt", "mc1_targets.choices[0]=ground_truth"),
            ("eval-fn", 'judge("correct")'),
        ],
    ),
}
TEXTS: dict[str, tuple[Rows, Flags]] = {
    "worked solutions": (
        [
            {"question": "How many?", "answer": "2 + 5 = 7\n#### 7"},
            {"question": "?", "answer": "8"},
        ],
        [("eval-fn", "number")],
    ),
    "mathematics": (
        [{"problem": "Expand.", "level": "Level 1", "solution": r"So $\boxed{x^2+1}$."}],
        [("eval-fn", "math")],
    ),
    "a short answer beside the long one": (
        [{"problem": "Add.", "solution": "It is 5 + 2.", "answer": "7", "subject": "x"}],
        [*mapped("problem=user_prompt", "answer=ground_truth"), ("eval-fn", "number")],
    ),
    "names with blanks": (
        [{"Type": "x", "Question": "Who?", "Best Answer": LONG, "Source": "y"}],
        [("eval-fn", 'judge("correct")')],
    ),
    "a passage, true or false": (
        [{"question": "is it so", "passage": "It is.", "answer": True}],
        [
            *mapped("answer=ground_truth"),
            (
                "prompt-template",
                '{{ passage }}{{ "\\n\\n" }}{{ question }}{{ "\\n\\n" }}Answer true or false.',
            ),
            ("eval-fn", "includes"),
        ],
    ),
    "spans in an object": (
        [
            {
                "context": "Denver won.",
                "question": "Who won?",
                "answers": {"text": ["Denver"], "answer_start": [0]},
            }
        ],
        [
            *mapped("answers.text=ground_truth"),
            ("prompt-template", '{{ context }}{{ "\\n\\n" }}{{ question }}'),
            ("eval-fn", "includes"),
        ],
    ),
    "aliases": (
        [{"question": "Who?", "answer": {"value": "Lewis", "aliases": ["Lewis", "S. Lewis"]}}],
        [
            *mapped("question=user_prompt", "answer.aliases=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
    "an instruction and maybe an input": (
        [
            {"instruction": "Sing.", "input": "", "output": LONG},
            {"instruction": "Sing this.", "input": "La", "output": LONG},
        ],
        [
            *mapped("output=ground_truth"),
            (
                "prompt-template",
                '{{ instruction }}{% if input %}{{ "\\n\\n" }}{{ input }}{% endif %}',
            ),
            ("eval-fn", 'judge("correct")'),
        ],
    ),
    "golden pairs with a context for metrics": (
        [
            {
                "input": "Refund?",
                "actual_output": None,
                "expected_output": "30 days",
                "context": ["x"],
            }
        ],
        [
            *mapped("input=user_prompt", "expected_output=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
    "variables and an assertion": (
        [{"vars": {"question": "6 x 7?"}, "assert": [{"type": "equals", "value": "42"}]}],
        [
            *mapped("vars.question=user_prompt", "assert[0].value=ground_truth"),
            ("eval-fn", "number"),
        ],
    ),
    "inputs and outputs": (
        [{"inputs": {"question": "Who?"}, "outputs": {"answer": "Ada"}, "metadata": {"k": 1}}],
        [
            *mapped("inputs.question=user_prompt", "outputs.answer=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
    "other languages": (
        [{"frage": "Wer?", "antwort": "Ada"}],
        [*mapped("frage=user_prompt", "antwort=ground_truth"), ("eval-fn", "includes")],
    ),
    "any of a list": (
        [{"question": "Who?", "answer": ["Ada", "Ada L."]}],
        [("eval-fn", "includes")],
    ),
    "an object as the truth": (
        [{"question": "Who?", "answer": {"a": 1}}],
        [("eval-fn", "json_equal")],
    ),
    "a text alone": (
        [{"article": LONG, "highlights": "It lasted.", "id": "7"}],
        [
            *mapped("article=user_prompt", "highlights=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
    "a problem that is no formula": (
        [{"metadata": "{'topic': 'x'}", "problem": "Who?", "answer": "Ada"}],
        [
            *mapped("problem=user_prompt", "answer=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
    "objects": (
        [{"text": "Ada, 36", "expected": {"name": "Ada", "age": 36}}],
        [("eval-fn", "json_equal")],
    ),
    "no truth": (
        [{"key": 1, "prompt": "Write.", "tags": ["a"]}],
        [
            *mapped("prompt=user_prompt"),
            ("eval-fn", 'judge("helpful")'),
        ],
    ),
    "classes": (
        [{"sentence": "I liked it.", "label": at} for at in ("pos", "neg")],
        [
            (
                "prompt-template",
                '{{ sentence }}{{ "\\n\\n" }}Answer with one of: neg, pos.',
            ),
            ("eval-fn", "includes"),
        ],
    ),
    "classes that the prompt names": (
        [{"text": "Was it: yes or no?", "label": at} for at in ("yes", "no")],
        [*mapped("text=user_prompt"), ("eval-fn", "includes")],
    ),
    "yes and no": (
        [{"question": "Was it so?", "answer": at} for at in ("Yes", "no")],
        [
            *mapped("answer=ground_truth"),
            ("prompt-template", '{{ question }}{{ "\\n\\n" }}Answer yes or no.'),
            ("eval-fn", "includes"),
        ],
    ),
    "a context that is no text": (
        [{"question": "Who?", "context": {"title": ["x"]}, "answer": "Ada"}],
        [
            *mapped("answer=ground_truth"),
            ("prompt-template", '{{ context|tojson }}{{ "\\n\\n" }}{{ question }}'),
            ("eval-fn", "includes"),
        ],
    ),
    "longer names": (
        [{"My Question": "Who?", "Expected Answer (final)": "Ada", "answer_id": 7, "b": "x"}],
        [
            *mapped("My Question=user_prompt", "Expected Answer (final)=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
    "Chinese names": (
        [{"问题": "谁?", "答案": "罗马", "类别": "地理"}],
        [*mapped("问题=user_prompt", "答案=ground_truth"), ("eval-fn", "includes")],
    ),
    "inputs, targets and a task": (
        [{"inputs": "Who?", "targets": "Ada", "task": "qa"}],
        [*mapped("inputs=user_prompt", "targets=ground_truth"), ("eval-fn", "includes")],
    ),
    "sentences": (
        [{"question": "Who?", "answer": "It was Ada who wrote it."}],
        [("eval-fn", 'judge("correct")')],
    ),
    "assertions of promptfoo": (
        [{"question": "Who?", "__expected": "contains:Ada"}],
        [*mapped("question=user_prompt"), ("eval-fn", 'judge("helpful")')],
    ),
    "calls of functions": (
        [
            {
                "query": "Area?",
                "tools": '[{"name": "area", "parameters": {}}]',
                "answers": '[{"name": "area", "arguments": {"side": 1}}]',
            }
        ],
        [
            *mapped("answers=ground_truth"),
            (
                "prompt-template",
                '{{ query }}{{ "\\n\\n" }}These functions can be called:{{ "\\n" }}{{ tools }}'
                '{{ "\\n\\n" }}Answer with a JSON list of the calls alone, each an object with '
                "name and arguments.",
            ),
            ("eval-fn", "json_equal"),
        ],
    ),
    "calls of an agent": (
        [{"question": "Area?", "expected_tools": [{"name": "area", "arguments": {}}]}],
        [*mapped("question=user_prompt"), ("eval-fn", 'tools("expected_tools")')],
    ),
    "first turns": (
        [
            {"prompt": ["2 + 2?", "And?"], "category": "a", "reference": ["4", "5"]},
            {"prompt": ["2 + 3?", "And?"], "category": "b", "reference": []},
        ],
        [
            *mapped("prompt[0]=user_prompt", "reference[0]=ground_truth"),
            ("where", "reference[0]!="),
            ("eval-fn", "number"),
        ],
    ),
    "first turns, mostly without a reference": (
        [
            {"prompt": ["Write.", "And?"], "reference": reference}
            for reference in (["4", "5"], [], [])
        ],
        [*mapped("prompt[0]=user_prompt"), ("eval-fn", 'judge("helpful")')],
    ),
    "some truths missing": (
        [{"question": "Who?", "answer": "Ada"}, {"question": "Why?", "answer": None}],
        [("where", "answer!="), ("eval-fn", "includes")],
    ),
    "as the plugin has it": (
        [{"user_prompt": "2 + 5?", "ground_truth": "7"}],
        [("eval-fn", "number")],
    ),
}
CHATS: dict[str, tuple[Rows, Flags]] = {
    "a truth in an object": (
        [
            {
                "prompt": [ASKED],
                "reward_model": {"ground_truth": "7", "style": "rule"},
                "extra_info": {"answer": "2 + 5", "index": 0},
            }
        ],
        [
            *mapped("prompt=messages", "reward_model.ground_truth=ground_truth"),
            ("eval-fn", "number"),
        ],
    ),
    "a text or any of a list": (
        [{"input": [ASKED], "ideal": "B"}, {"input": [ASKED], "ideal": ["C", "c"]}],
        [*mapped("input=messages", "ideal=ground_truth"), ("eval-fn", "choice")],
    ),
    "a reply of its own": (
        [{"prompt": [ASKED], "completion": [SAID]}],
        [
            *mapped("prompt=messages", "completion[-1].content=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
    "the last turn": (
        [{"messages": [ASKED, SAID]}],
        [*mapped("messages[-1].content=ground_truth"), ("eval-fn", "includes")],
    ),
    "a list of one conversation, functions": (
        [{"question": [[ASKED]], "function": [{"name": "f", "description": "F", "parameters": 1}]}],
        [*mapped("question[0]=messages"), ("eval-fn", 'judge("helpful")')],
    ),
    "chosen and rejected, with the question": (
        [{"chosen": [ASKED, SAID], "rejected": [ASKED, SAID]}],
        [*mapped("chosen=messages", "chosen[-1].content=ground_truth"), ("eval-fn", "includes")],
    ),
    "a recorded answer beside the truth": (
        [{"problem": "3 + 4", "messages": [ASKED, SAID], "answer": "7"}],
        [*mapped("problem=user_prompt", "answer=ground_truth"), ("eval-fn", "number")],
    ),
    "from and value": (
        [{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}],
        [
            *mapped("conversations=messages", "conversations[-1].value=ground_truth"),
            ("eval-fn", "includes"),
        ],
    ),
}
PROGRAMS: dict[str, tuple[Rows, Flags]] = {
    "a function to complete": (
        [
            {
                "prompt": "def double(x):\n",
                "entry_point": "double",
                "canonical_solution": "    return 2 * x",
                "test": "def check(candidate):\n    assert candidate(2) == 4",
            }
        ],
        [*mapped("prompt=user_prompt"), ("eval-fn", "code")],
    ),
    "a list of tests": (
        [{"text": "Add.", "code": "def add(): ...", "test_list": ["assert add(1, 2) == 3"]}],
        [
            (
                "prompt-template",
                '{{ text }}{{ "\\n\\n" }}The code must pass these tests:'
                '{% for test in test_list %}{{ "\\n" }}{{ test }}{% endfor %}',
            ),
            ("eval-fn", 'code(tests="test_list")'),
        ],
    ),
}


@pytest.mark.parametrize(
    ("rows", "flags"),
    [
        pytest.param(*each, id=name)
        for name, each in {**MULTIPLE_CHOICE, **TEXTS, **CHATS, **PROGRAMS}.items()
    ],
)
def test_the_options_for_a_shape_are_found_by_names_and_values(rows: Rows, flags: Flags):
    assert shape_of(rows).flags() == flags


def test_the_table_names_each_column_its_role_and_a_sample_of_its_first_value():
    rows = [
        {"prompt": [ASKED], "reward_model": {"ground_truth": "7"}, "level": 3, "note": None},
    ]
    assert shape_of(rows).columns == (
        ("prompt", "messages", "messages: user"),
        ("reward_model", "", '{"ground_truth": "7"}'),
        ("reward_model.ground_truth", "ground_truth", "'7'"),
        ("level", "", "3"),
        ("note", "", "null"),
    )


def test_an_answer_beside_a_label_is_asked_about_where_they_differ():
    rows = [{"question": "Who?", "answer": "Ada", "label": "Grace"}]
    shape = shape_of(rows)
    assert shape.either == ("label=ground_truth", "answer=ground_truth")
    assert shape_of([{**rows[0], "label": "Ada"}]).either == ()


def test_what_is_not_said_by_the_rows_is_remarked_upon():
    assert shape_of([{"turns": ["Hi", "And?"]}]).flags()[0] == ("map", "turns[0]=user_prompt")
    [remark] = shape_of([{"turns": ["Hi", "And?"]}]).remarks
    assert remark == "turns has further turns: only the first is sent, and scored"
    [remark] = shape_of([{"question": "?", "choices": ["a", "b", "c"], "answer": 1}]).remarks
    assert remark.startswith("no row shows whether answer counts from 0 or 1: 0 is taken")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"x": 1, "y": [2]}, "name the question: --osmosis-map COLUMN=user_prompt"),
        (
            {"title": "Cities", "paragraphs": [{"qas": [{"question": "Who?", "answer": "Ada"}]}]},
            "its questions are in lists (paragraphs): write one object for each question",
        ),
        (
            {"Who was it?": "Who else?", "Ada": "Bob", "A": "B"},
            "its first line is a row: write the names of its columns above it",
        ),
    ],
)
def test_a_file_without_rows_that_ask_has_no_prompt(record: dict[str, Any], said: str):
    shape = shape_of([record])
    assert (shape.has_prompt, shape.otherwise, shape.flags()) == (False, said, [])


def test_a_file_without_anything_to_ask_has_no_prompt():
    assert not shape_of([]).has_prompt


def test_only_the_first_rows_are_looked_at():
    row = {"question": "Who?", "answer": "Ada"}
    assert shape_of([row] * SAMPLED + [{"question": "Who?", "answer": None}]).where == ()


def test_names_are_compared_by_letters_and_digits():
    assert len({*QUESTIONS}) == len(QUESTIONS) and len({*TRUTHS}) == len(TRUTHS)
    flags = shape_of([{"Problem-Statement": "Why?", "Correct Answer": "7", "x": [1]}]).flags()
    assert flags[:2] == mapped("Problem-Statement=user_prompt", "Correct Answer=ground_truth")
