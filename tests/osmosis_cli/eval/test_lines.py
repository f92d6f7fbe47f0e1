"""The lines of commands on a narrow terminal that has no more than ASCII."""

from __future__ import annotations

from pathlib import Path

import pytest

from osmosis_cli.main import cli
from pytest_osmosis.reports import json_writer
from tests.support.made_results import result_of, suite_of
from tests.support.narrow_terminal import COLUMNS, NarrowTerminal


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["eval", "compare", "before.json", "after.json"], "rows: 1 changed"),
        (["eval", "report", "after.json"], "lowest rows: row-1"),
    ],
)
def test_reports_can_be_read_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
):
    monkeypatch.chdir(tmp_path)
    for name, score in (("before.json", 1.0), ("after.json", 0.0)):
        suite = suite_of([[1.0], [score]], answer=f"{score} and more " * 5)
        json_writer.write(result_of(suite), Path(name))
    screen = NarrowTerminal(monkeypatch)
    cli.main(words, standalone_mode=False)
    lines = screen.lines()
    assert said in [line.strip() for line in lines]
    assert [line for line in lines if len(line) > COLUMNS] == []


def test_a_preview_has_the_plugins_own_signs_and_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"system_prompt": "", "user_prompt": "th\xe9 … 木"}\n', "utf-8")
    screen = NarrowTerminal(monkeypatch)
    cli.main(["preview", "--path", str(path)], standalone_mode=False)
    assert "  user_prompt: th\\xe9 ... \\u6728" in screen.lines()
