"""Prompts out of several columns: what is printed, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2
import pytest

from pytest_osmosis.dataset.dataset import Dataset, load_dataset
from pytest_osmosis.dataset.errors import DatasetError

RECORD: dict[str, Any] = {
    "question": "2 + 3?",
    "choices": ["4", "5"],
    "answer": 1,
    "meta": {"hint": "add"},
    "context": None,
    "Long Hint": "five",
}
OPTIONS = "{{ question }}\n{% for c in choices %}{{ 'AB'[loop.index0] }}. {{ c }}\n{% endfor %}"


def loaded(folder: Path, template: str, *records: dict[str, Any], **options: Any) -> Dataset:
    path = folder / "data.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records or (RECORD,)))
    return load_dataset(path, template=template, **options)


@pytest.mark.parametrize(
    "template",
    [
        OPTIONS,
        "{{ meta.hint }}: {{ question | upper }}",
        "{{ row['Long Hint'] }}",
        "{% if context %}{{ context }}{% else %}{{ question }}{% endif %}",
        "{{ context | default('-', true) }}{{ context or '-' }}{{ context is none }}{{ question }}",
        "{{ range(3) | list }} {{ question }}\n",
        "مرحبا {{ question }} 🎨",
    ],
)
def test_a_prompt_is_what_jinja2_renders(tmp_path: Path, template: str):
    row = loaded(tmp_path, template).row(0)
    truth = jinja2.Environment().from_string(template)
    assert row.user_prompt == truth.render(row=RECORD, **RECORD)
    assert row.opening() == [{"role": "user", "content": row.user_prompt}]
    assert (row.ground_truth, row.own_truth) == ("1", 1)
    assert row.metadata()["question"] == "2 + 3?"


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{{ qestion }}", "no row has a column 'qestion' (columns: question, choices, answer"),
        ("{% if queston is defined %}{{ question }}{% endif %}", "did you mean 'question'?"),
        ("\n{{ question", "the prompt template: line 2: unexpected end of template"),
        ("{{ question | upcase }}", "line 1: No filter named 'upcase'"),
        ("\n{% include 'x' %}{{ question }}", "line 2: there is no other template"),
        ("all rows alike", "it names no column"),
        (
            "{{ context }}",
            "data.jsonl:1: the prompt template: 'context' is null in this row; w",
        ),
        ("{{ 'It: ' ~ context }}", "'context' is null in this row"),
        ("{{ context | trim }}", "'context' is null in this row"),
        ("{{ meta.gone }}", "has no attribute 'gone'"),
        ("{{ question + 1 }}", "data.jsonl:1: the prompt template: TypeError: can only conc"),
        ("{{ question.__class__.__mro__ }}", "access to attribute '__class__'"),
        ("{{ choices.append('x') }}", "SecurityError"),
        ("{{ '' if question }}", "'user_prompt' is an empty string"),
    ],
)
def test_a_template_that_makes_no_prompt_is_refused_with_its_place(
    tmp_path: Path, template: str, sentence: str
):
    with pytest.raises(DatasetError) as caught:
        loaded(tmp_path, template)
    assert sentence in str(caught.value)


def test_a_column_that_some_rows_lack_is_named_with_these_rows(tmp_path: Path):
    rows = [{"question": "a"}, {"question": "b", "hint": "h"}, {"question": "c"}]
    with pytest.raises(DatasetError) as caught:
        loaded(tmp_path, "{{ question }} {{ hint }}", *rows)
    [problem] = caught.value.problems
    assert problem.startswith("line 1: ") and problem.endswith("; so 1 further row (line 3)")
    dataset = loaded(tmp_path, "{{ question }}{{ hint | default('') }}", *rows)
    prompts = [dataset.row(index).user_prompt for index in dataset.row_indices]
    assert prompts == ["a", "bh", "c"]


def test_messages_beside_a_template_are_refused_unless_it_prints_them(tmp_path: Path):
    record = {"messages": [{"role": "user", "content": "hi"}], "tone": "loud"}
    with pytest.raises(DatasetError, match="'messages' would be the prompt"):
        loaded(tmp_path, "{{ tone }}", record)
    row = loaded(tmp_path, "{{ messages[0].content }}, {{ tone }}", record).row(0)
    assert row.opening() == [{"role": "user", "content": "hi, loud"}]


def test_what_a_template_prints_is_not_guessed_to_be_the_truth(tmp_path: Path):
    record = {"question": "q", "reference": "r", "answer": "a"}
    assert loaded(tmp_path, "{{ question }} {{ reference }}", record).row(0).ground_truth == "a"
    assert loaded(tmp_path, "{{ question }}", record).row(0).ground_truth is None
