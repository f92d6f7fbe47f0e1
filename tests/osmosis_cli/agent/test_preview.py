"""`osmosis preview`: rubric files, records and datasets as they are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli

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


def preview(path: Path, *args: str) -> int:
    return run(cli, ["preview", "-p", str(path), *args])


def test_a_rubric_file_is_counted_and_shown_without_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "rubrics.yaml"
    path.write_text(RUBRICS)
    assert preview(path) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Loaded 1 rubric from {path}\n")
    assert "  id: brief\n" in printed and "  rubric: Short answers only. No lists.\n" in printed
    assert "    score_max: 10\n" in printed and "    api_key: ***\n" in printed
    assert "sk-preview" not in printed


def test_no_key_is_shown_wherever_it_was_put(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rubrics, records = tmp_path / "rubrics.yaml", tmp_path / "records.jsonl"
    info = (
        "{provider: openai, model: m, api_key_env: sk-preview-0123456789, "
        "api_base: 'http://me:sk-preview-1@host/v1?key=sk-preview-2', "
        "extra_headers: {Authorization: Bearer sk-preview-3}}"
    )
    rubrics.write_text(f"rubrics: [{{id: a, rubric: b, model_info: {info}}}]\n")
    extra = {"api_key": "sk-preview-4", "more": [{"api_key": "sk-preview-5", "left": 7}]}
    extra["api_key_env"] = "JUDGE_API_KEY"
    records.write_text(json.dumps({"solution_str": "a", "extra_info": extra}) + "\n")
    assert preview(rubrics) == preview(rubrics, "--json") == 0
    assert preview(records) == preview(records, "--json") == 0
    printed = capsys.readouterr().out
    assert "sk-preview" not in printed
    assert "    api_base: http://***@host/v1?***\n" in printed
    assert "    api_key_env: JUDGE_API_KEY\n" in printed and '"left": 7' in printed


def test_records_and_rows_are_distinguished(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    records, rows = tmp_path / "records.jsonl", tmp_path / "rows.jsonl"
    records.write_text('{"solution_str": "a", "metadata": {"k": "v"}}\n{"solution_str": "b"}\n')
    rows.write_text('{"system_prompt": "s", "user_prompt": "u", "level": 3}\n')
    assert preview(records) == 0
    assert "Loaded 2 records" in (told := capsys.readouterr().out)
    assert "  metadata:\n    k: v\n" in told
    assert preview(rows) == 0
    assert "Loaded 1 row " in (told := capsys.readouterr().out)
    assert "\nrow 0\n" in told and "  user_prompt: u\n" in told and "    level: 3\n" in told


def test_nested_rubrics_without_a_judge_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "rubrics.yaml"
    path.write_text("drafts:\n  - later: {id: a, rubric: deep}\n")
    assert preview(path) == 0
    assert "\nrubric 1\n  id: a\n  rubric: deep\n" in capsys.readouterr().out


def test_csv_holds_rows_and_never_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "rows.csv"
    path.write_text('system_prompt,Asked,"""solution_str"""\n,u,x\n')
    assert preview(path) == 1
    assert "'user_prompt' is missing (columns: system_prompt, Asked" in capsys.readouterr().err
    assert preview(path, "--map", "Asked=prompt") == 2
    assert preview(path, "--map", "Asked=user_prompt") == 0
    assert "Loaded 1 row " in (told := capsys.readouterr().out)
    assert "  user_prompt: u\n" in told


def test_a_limit_shows_fewer_but_counts_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "records.jsonl"
    path.write_text('{"solution_str": "a"}\n' * 5)
    assert preview(path, "--limit", "2") == 0
    printed = capsys.readouterr().out
    assert "Loaded 5 records" in printed and "record 2" in printed and "record 3" not in printed
    assert printed.endswith("and 3 more\n")


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "records.jsonl"
    path.write_text('{"solution_str": "a"}\n')
    assert preview(path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["total"]) == ("records", 1)
    assert document["records"][0]["solution_str"] == "a"


def test_control_characters_and_length_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({"solution_str": "\x1b[2J" + "x" * 5_000}) + "\n")
    assert preview(path) == 0
    printed = capsys.readouterr().out
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
):
    path = tmp_path / name
    path.write_text(text)
    assert preview(path) == 1
    assert said in capsys.readouterr().err
    assert preview(path, "--json") == 1
    printed = capsys.readouterr()
    assert printed.out == "" and said in json.loads(printed.err)["error"]["message"]


def test_the_file_stands_alone_or_behind_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "rubrics.yaml"
    path.write_text(RUBRICS)
    for words in ([], ["-d"], ["--data"], ["--path"]):
        assert run(cli, ["preview", *words, str(path)]) == 0
        assert capsys.readouterr().out.startswith(f"Loaded 1 rubric from {path}\n")
    assert run(cli, ["preview"]) == 2
    assert "which file? osmosis preview FILE" in capsys.readouterr().err
    assert run(cli, ["preview", str(path), "-d", "other.jsonl"]) == 2
    assert "both name a file" in capsys.readouterr().err
