"""What refuses a file that was saved in another way names a command, which makes rows of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.errors import DatasetError

TABLE = 'user_prompt,ground_truth\n"café, please?",é\nb,b\n'
COLUMNS = {"user_prompt": ["café, please?", "b"], "ground_truth": ["é", "b"]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("it's a table.csv", TABLE.encode("utf-16")),
        ("table.tsv", TABLE.replace(", p", " p").replace(",", "\t").encode("utf-16-be")),
        ("table.csv", TABLE.encode("utf-16-le")),
        ("table.csv", TABLE.encode("cp1252")),
        ("columns.json", json.dumps(COLUMNS).encode()),
        (
            "its columns.json",
            json.dumps(
                {name: dict(enumerate(column)) for name, column in COLUMNS.items()}
            ).encode(),
        ),
    ],
)
def test_the_command_makes_rows(tmp_path, monkeypatch, name, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        load_dataset(Path(name))
    command = str(refused.value).partition("\n")[2].replace("python ", f"{sys.executable} ")
    before = set(tmp_path.iterdir())
    subprocess.run(command, shell=True, check=True)
    [made] = set(tmp_path.iterdir()) - before
    dataset = load_dataset(made)
    assert [row.ground_truth for row in map(dataset.row, dataset.row_indices)] == ["é", "b"]


@pytest.mark.parametrize(
    "columns", ["{}", '{"a": [1], "b": [1, 2]}', '{"a": [], "b": []}', '{"a": 1}']
)
def test_what_is_no_table_has_no_command(tmp_path, columns):
    path = tmp_path / "a.json"
    path.write_text(columns)
    with pytest.raises(DatasetError) as refused:
        load_dataset(path)
    assert "\n" not in str(refused.value)
