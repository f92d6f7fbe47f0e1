"""`osmosis preview`: rubric files, records and datasets as they are read."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Osmosis

RUBRICS = """
version: 1
rubrics:
  - id: brief
    title: Brevity
    rubric: |
      Short answers only.
      No lists.
    score_max: 10
    model_info: {provider: openai, model: gpt-5, api_key: sk-preview-0123456789}
"""


class Preview(Osmosis):
    """`osmosis preview` of a file in a folder."""

    folder: Path

    def __call__(self, name: str, *words: str, **given: Any) -> tuple[int, str, str]:
        return super().__call__("-p", str(self.folder / name), *words, **given)

    def write(self, name: str, text: str) -> str:
        """Write the file, and return its name."""
        (self.folder / name).write_text(text)
        return name


@pytest.fixture
def preview(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Preview:
    preview = Preview(monkeypatch, capsys, "preview")
    preview.folder, preview.hidden = tmp_path, ("sk-preview",)
    return preview


def test_a_dataset_is_shown_with_a_template_and_the_rows_that_are_wanted(preview: Preview):
    rows = [{"q": f"What {at}?", "hint": None, "level": at} for at in range(3)]
    name = preview.write("rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    preview.write("p.txt", "Q: {{ q }}{{ hint | default('.') }}\n")
    template = f"--prompt-template=@{preview.folder / 'p.txt'}"
    printed = preview.out(name, template, "--where", "level!=0", "--limit", "9")
    assert printed.startswith("Loaded 2 rows") and "user_prompt: Q: What 2?." in printed
    assert "\nrow 2\n" in printed and "row 0" not in printed
    for word, said in (
        ("--prompt-template={{ x", "--prompt-template: line 1: unexpected end"),
        ("--prompt-template=@gone", "--prompt-template: No such file"),
        ("--where=level", "--where: expected COLUMN=VALUE"),
    ):
        status, _, err = preview(name, word)
        assert (status, said in err) == (2, True), err


def test_a_rubric_file_is_counted_and_shown_without_its_key(preview: Preview):
    printed = preview.out(preview.write("rubrics.yaml", RUBRICS))
    assert printed.startswith(f"Loaded 1 rubric from {preview.folder / 'rubrics.yaml'}\n")
    assert "  id: brief\n" in printed and "  rubric: Short answers only. No lists.\n" in printed
    assert "    score_max: 10\n" in printed and "    api_key: ***\n" in printed


def test_no_key_is_shown_wherever_it_was_put(preview: Preview):
    info = (
        "{provider: openai, model: m, api_key_env: sk-preview-0123456789, "
        "api_base: 'http://me:sk-preview-1@host/v1?key=sk-preview-2', "
        "extra_headers: {Authorization: Bearer sk-preview-3}}"
    )
    rubrics = preview.write("a.yaml", f"rubrics: [{{id: a, rubric: b, model_info: {info}}}]\n")
    extra = {"api_key": "sk-preview-4", "more": [{"api_key": "sk-preview-5", "left": 7}]}
    extra["api_key_env"] = "JUDGE_API_KEY"
    record = json.dumps({"solution_str": "a", "extra_info": extra})
    records = preview.write("records.jsonl", f"{record}\n")
    assert "    api_base: http://***@host/v1?***\n" in preview.out(rubrics)
    assert "    api_key_env: JUDGE_API_KEY\n" in preview.out(records)
    assert preview.document(rubrics)["total"] == 1
    assert '"left": 7' in preview.out(records, "--json")


def test_records_and_rows_are_distinguished(preview: Preview):
    text = '{"solution_str": "a", "metadata": {"k": "v"}}\n{"solution_str": "b"}\n'
    printed = preview.out(preview.write("records.jsonl", text))
    assert "Loaded 2 records" in printed and "  metadata:\n    k: v\n" in printed
    text = '{"system_prompt": "s", "user_prompt": "u", "level": 3}\n'
    printed = preview.out(preview.write("rows.jsonl", text))
    assert "Loaded 1 row " in printed and "\nrow 0\n" in printed
    assert "  user_prompt: u\n" in printed and "    level: 3\n" in printed


def test_nested_rubrics_without_a_judge_are_shown(preview: Preview):
    text = "drafts:\n  - later: {id: a, rubric: deep}\n"
    printed = preview.out(preview.write("rubrics.yaml", text))
    assert "\nrubric 1\n  id: a\n  rubric: deep\n" in printed
    printed = preview.out(preview.write("list.yaml", "- rubric: one\n- {id: b, rubric: two}\n"))
    assert "\n  id: [0]\n  rubric: one\n\nrubric 2\n  id: b\n" in printed


def test_csv_holds_rows_and_never_records(preview: Preview):
    name = preview.write("rows.csv", 'system_prompt,Asked,"""solution_str"""\n,u,x\n')
    assert "  Asked           user_prompt   'u'\n" in preview.out(name)
    assert preview(name, "--map", "Asked=prompt")[0] == 2
    printed = preview.out(name, "--map", "Asked=user_prompt")
    assert "Loaded 1 row " in printed and "  user_prompt: u\n" in printed


def test_a_dataset_is_shown_as_an_agent_gets_it_with_the_command_that_evaluates_it(
    preview: Preview,
):
    row = {"question": "Which?", "choices": ["red", "blue"], "answer": 1}
    name = preview.write(
        "colours.jsonl", f"{json.dumps(row)}\n{json.dumps({**row, 'answer': 0})}\n"
    )
    printed = preview.out(name)
    assert '  choices   options       ["red", "blue"]\n' in printed
    assert "\nscored by choice: there are options\n" in printed
    assert "  user_prompt: Which? A. red B. blue\n" in printed
    [line] = [each for each in printed.splitlines() if each.startswith("evaluate it: ")]
    words = shlex.split(line.removeprefix("evaluate it: "))
    assert words[:6] == ["osmosis", "eval", "-d", str(preview.folder / name), "--model", "NAME"]
    document = preview.document(name)
    assert document["rows"][0]["user_prompt"] == "Which?\nA. red\nB. blue"
    options = [word for each in document["proposed"]["options"] for word in each.values()]
    assert words[6:] == options


def test_a_limit_shows_fewer_but_counts_all(preview: Preview):
    name = preview.write("records.jsonl", '{"solution_str": "a"}\n' * 5)
    printed = preview.out(name, "--limit", "2")
    assert "Loaded 5 records" in printed and "record 2" in printed and "record 3" not in printed
    assert printed.endswith("and 3 more\n")


def test_json_is_one_document(preview: Preview):
    document = preview.document(preview.write("records.jsonl", '{"solution_str": "a"}\n'))
    assert (document["kind"], document["total"]) == ("records", 1)
    assert document["records"][0]["solution_str"] == "a"


def test_control_characters_and_length_do_not_reach_the_terminal(preview: Preview):
    record = json.dumps({"solution_str": "\x1b[2J" + "x" * 5_000})
    printed = preview.out(preview.write("records.jsonl", f"{record}\n"))
    assert "\x1b" not in printed and "\\x1b[2J" in printed and "(5004 characters)" in printed


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rubrics.yaml", "rubrics: 5", "rubrics must be a list"),
        ("rubrics.yaml", "a: {id: a, rubric: r, model_info: {model: m}}\n", "no 'provider'"),
        ("rubrics.yaml", "a: {id: a, rubric: r, score_mx: 5}\n", "did you mean 'score_max'?"),
        ("rubrics.yaml", "other: 5", "is no rubric file: it holds no rubric"),
        ("records.jsonl", '{"solution_str": 5}\n', "records.jsonl:1: 'solution_str' is a number"),
        ("rows.jsonl", '{"system_prompt": "s"}\n', "'user_prompt' is missing"),
        ("rows.jsonl", "", "has no rows"),
        ("rows.txt", "x", "expected a .yaml, .jsonl, .json, .csv, .tsv or .parquet file"),
    ],
)
def test_a_wrong_file_is_a_clear_error_and_exit_1(
    preview: Preview, name: str, text: str, said: str
):
    preview.write(name, text)
    assert said in preview.error(name)
    assert said in preview.failure(name)["message"]


def test_the_file_stands_alone_or_behind_an_option(osmosis: Osmosis, tmp_path: Path):
    path = tmp_path / "rubrics.yaml"
    path.write_text(RUBRICS)
    for words in ([], ["-d"], ["--data"], ["--path"]):
        printed = osmosis.out("preview", *words, str(path))
        assert printed.startswith(f"Loaded 1 rubric from {path}\n")
    assert "which file? osmosis preview FILE" in osmosis.error("preview", status=2)
    message = osmosis.error("preview", str(path), "-d", "other.jsonl", status=2)
    assert "both name a file" in message


def test_a_row_is_shown_by_what_it_has(preview: Preview):
    rows = preview.write(
        "tasks.jsonl",
        '{"metadata": {"left": 0, "right": 1}}\n'
        '{"metadata": "{\\"left\\": 2, \\"right\\": 3}", "ground_truth": "5"}\n',
    )
    first, second = preview.out(rows, "--limit", "2").split("\n\n")[1:]
    task = "  metadata:\n    left: {}\n    right: {}"
    assert first == "row 0\n  row_index: 0\n" + task.format(0, 1)
    assert second == "row 1\n  row_index: 1\n  ground_truth: 5\n" + task.format(2, 3) + "\n"
    assert [row["metadata"]["left"] for row in preview.document(rows)["rows"]] == [0, 2]
