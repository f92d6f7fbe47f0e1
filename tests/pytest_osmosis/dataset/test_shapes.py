"""Files in the shapes that people have: columns by guess and by path, wrappings, packed files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.dataset.columns import mapping_of
from pytest_osmosis.dataset.dataset import Dataset, load_dataset
from pytest_osmosis.dataset.errors import DatasetError

ROWS = [{"question": "2 + 3?", "answer": "5"}, {"question": "2 + 4?", "answer": "6"}]
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS)
CSV = "question,answer\n2 + 3?,5\n2 + 4?,6\n"
WRAPPED = {"name": "sums", "version": [1, 2], "data": ROWS, "empty": []}


def written(folder: Path, content: str | bytes, name: str = "data.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def asked(dataset: Dataset) -> list[tuple[str, str | None]]:
    rows = map(dataset.row, dataset.row_indices)
    return [(row.user_prompt, row.ground_truth) for row in rows]


@pytest.mark.parametrize(
    ("name", "content", "notice"),
    [
        ("data.csv", CSV, None),
        ("data.csv", "\ufeffsep=;\n" + CSV.replace(",", ";"), None),
        ("data.csv", CSV.replace(",", ";"), "its columns are separated by semicolons"),
        ("data.tsv", CSV, "its columns are separated by commas"),
        ("data.csv", "question,answer,,\n2 + 3?,5,,\n2 + 4?,6,,\n", None),
        ("data.tsv", CSV.replace(",", "\t"), None),
        ("data.csv.gz", gzip.compress(CSV.encode(), mtime=0), None),
        ("data.jsonl", LINES, None),
        ("data.jsonl.gz", gzip.compress(LINES.encode(), mtime=0), None),
        ("data.json", json.dumps(ROWS), None),
        ("data.json", LINES, "it is read as JSON lines"),
        ("data.json", json.dumps(WRAPPED), "its rows are the list 'data'"),
        (
            "data.json.gz",
            gzip.compress(json.dumps(WRAPPED, indent=1).encode(), mtime=0),
            "the list 'data'",
        ),
    ],
)
def test_a_question_and_an_answer_run_without_a_flag(
    tmp_path: Path, name: str, content: str | bytes, notice: str | None
):
    path = written(tmp_path, content, name)
    dataset = load_dataset(path)
    assert asked(dataset) == [("2 + 3?", "5"), ("2 + 4?", "6")]
    first, *others = dataset.notices
    assert first == "user_prompt <- question, ground_truth <- answer"
    assert [notice in other for other in others] == [True] * (notice is not None)
    assert asked(load_dataset(path, validate=False)) == asked(dataset)
    assert asked(load_dataset(path, offset=1)) == [("2 + 4?", "6")]


@pytest.mark.parametrize(
    "record",
    [
        {"question": "q", "prompt": "p"},
        {"question": "q", "answer": "a", "target": "t"},
        {"question": "q", "choices": "a b"},
        {"question": "q", "context": "c"},
        {"question": "q", "answer": "a", "label": "b"},
        {"question": "q", "answer": "a", "tags": ["a"]},
        {"question": ["q"]},
        {"asked": "q"},
    ],
)
def test_a_row_that_leaves_a_doubt_is_refused(tmp_path: Path, record: dict[str, Any]):
    with pytest.raises(DatasetError, match="'user_prompt' is missing"):
        load_dataset(written(tmp_path, json.dumps(record)))


def test_a_map_on_the_command_line_beats_the_guess(tmp_path: Path):
    path = written(tmp_path, LINES)
    assert asked(load_dataset(path, mapping={"user_prompt": "answer"})) == [
        ("5", None),
        ("6", None),
    ]


def test_a_column_that_plays_a_role_keeps_its_own_name_for_graders(tmp_path: Path):
    row = load_dataset(written(tmp_path, LINES)).row(0)
    assert row.metadata() == {
        "question": "2 + 3?",
        "answer": "5",
        "system_prompt": "",
        "user_prompt": "2 + 3?",
        "ground_truth": "5",
    }
    assert row.describe().columns == {}


NESTED = {
    "prompt": [{"role": "user", "content": "2 + 3?"}],
    "reward_model": {"ground_truth": 5, "style": {"name": "rule"}},
    "turns": ["first", "second"],
    "a.b": "a column of this name",
}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["prompt=messages", "reward_model.ground_truth=ground_truth"], ("2 + 3?", "5")),
        (["turns[0]=user_prompt", "reward_model.style.name=ground_truth"], ("first", "rule")),
        (["turns[1]=user_prompt", "reward_model.gone=ground_truth"], ("second", None)),
        (["a.b=user_prompt", "turns[7]=ground_truth"], ("a column of this name", None)),
    ],
)
def test_a_role_may_be_a_place_within_a_row(
    tmp_path: Path, texts: list[str], expected: tuple[str, str | None]
):
    dataset = load_dataset(written(tmp_path, json.dumps(NESTED)), mapping=mapping_of(texts))
    assert asked(dataset) == [expected]


@pytest.mark.parametrize("text", ["turns[9]", "turns.first", "reward_model", "turns[x]", "gone.x"])
def test_a_place_without_a_question_is_refused(tmp_path: Path, text: str):
    path = written(tmp_path, json.dumps(NESTED))
    with pytest.raises(DatasetError, match="user_prompt"):
        load_dataset(path, mapping={"user_prompt": text})


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('"Yes" is a word', '"Yes" is a word'),
        ('say "yes"', 'say "yes"'),
        ('"all of it"', "all of it"),
        ('"a ""b"" c"', 'a "b" c'),
        ('"', '"'),
        ('"two\nlines"', "two\nlines"),
        ('"a\ttab"', "a\ttab"),
    ],
)
def test_quotes_in_cells_between_tabs_are_text_unless_they_enclose_it(
    tmp_path: Path, cell: str, text: str
):
    path = written(tmp_path, f"question\tanswer\n{cell}\t1\n\nb\t2\n", "data.tsv")
    assert asked(load_dataset(path)) == [(text, "1"), ("b", "2")]


def test_an_index_without_a_name_is_left_out_and_said(tmp_path: Path):
    path = written(tmp_path, ",question,answer\n0,a,1\n7,b,2\n", "data.csv")
    dataset = load_dataset(path)
    assert (asked(dataset), dataset.row(1).extra) == ([("a", "1"), ("b", "2")], {})
    assert dataset.notices[-1] == "left out: the first column, of numbers without a name"


def test_text_in_a_column_without_a_name_is_wrong(tmp_path: Path):
    path = written(tmp_path, "question,\nu,\nv,what is this\n", "data.csv")
    with pytest.raises(DatasetError, match=r"data.csv:3: has text in a column without a name"):
        load_dataset(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [{"question": "u"}]} {', "Expecting"),
        ('{"data": [{"question": "u"}]}\n[{"question": "v"}]', "Extra data"),
        ('{"data": [{"question": "u"}], "data": [{"question": "v"}]}', "'data' is there twice"),
    ],
)
def test_rows_beside_the_one_list_are_not_left_out_in_silence(
    tmp_path: Path, content: str, message: str
):
    with pytest.raises(DatasetError, match=message):
        load_dataset(written(tmp_path, content, "data.json"))


@pytest.mark.parametrize("name", ["ground_truth", "user_prompt", "choices", "label"])
def test_a_later_row_that_leaves_a_doubt_is_refused(tmp_path: Path, name: str):
    path = written(tmp_path, f"{LINES}{json.dumps({**ROWS[0], name: 'other'})}\n")
    with pytest.raises(DatasetError, match=r"data.jsonl:3: .*--osmosis-map question=user_prompt"):
        load_dataset(path)


def test_a_map_names_a_column_by_its_exact_name_first(tmp_path: Path):
    path = written(tmp_path, '{"user_prompt": "u", "Answer": "A", "answer": "a"}')
    assert asked(load_dataset(path, mapping={"ground_truth": "answer"})) == [("u", "a")]
    assert asked(load_dataset(path, mapping={"ground_truth": "Answer"})) == [("u", "A")]


def test_the_guess_is_shown_without_what_a_map_says(tmp_path: Path):
    path = written(tmp_path, '{"question": "u", "answer": "a", "final": "f"}')
    dataset = load_dataset(path, mapping={"ground_truth": "final"})
    assert asked(dataset) == [("u", "f")]
    assert dataset.notices == ["user_prompt <- question"]


def test_a_place_where_no_row_has_anything_is_named(tmp_path: Path):
    mapping = {"ground_truth": "of.thruth"}
    dataset = load_dataset(written(tmp_path, '{"user_prompt": "u", "of": {}}'), mapping=mapping)
    assert dataset.notices == ["nothing stands at of.thruth in any row"]
    path = written(tmp_path, '{"user_prompt": "u", "of": {"thruth": 1}}\n' * 2)
    assert not load_dataset(path, mapping=mapping).notices


def test_narrow_floats_within_columns_are_as_short_as_those_of_columns(tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    floats = pa.array([{"truth": [0.1, None]}], pa.struct({"truth": pa.list_(pa.float32())}))
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"user_prompt": ["u"], "of": floats}), path)
    dataset = load_dataset(path, mapping={"ground_truth": "of.truth[0]"})
    assert asked(dataset) == [("u", "0.1")]
    assert dataset.row(0).extra == {"of": {"truth": [0.1, None]}}


def test_columns_with_dots_beside_columns_of_bytes(tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "data.parquet"
    image = [{"b": b"png"}]
    parquet.write_table(pa.table({"user_prompt": ["u"], "a.b": ["x"], "a": image}), path)
    dataset = load_dataset(path)
    assert dataset.row(0).extra == {"a.b": "x"}
    assert dataset.notices == ["left out: the column 'a' of bytes"]


def test_a_packed_file_is_named_by_what_it_holds(tmp_path: Path):
    path = written(tmp_path, gzip.compress(LINES.encode(), mtime=0), "data.gz")
    with pytest.raises(DatasetError, match=r"data\.gz: name it for what it is"):
        load_dataset(path)


@pytest.mark.parametrize("mapping", [{}, {"user_prompt": "question", "ground_truth": "answer"}])
def test_a_truth_that_later_rows_lack_is_absent_there(tmp_path: Path, mapping: dict[str, str]):
    rows = [{"question": "a", "answer": "1"}, {"question": "b"}, {"question": "c", "answer": None}]
    path = written(tmp_path, "".join(f"{json.dumps(row)}\n" for row in rows))
    assert asked(load_dataset(path, mapping=mapping)) == [("a", "1"), ("b", None), ("c", None)]


def test_an_optional_role_may_have_no_column(tmp_path: Path):
    record = {"question": "q", "answer": "a", "id": "x", "ground_truth": "t"}
    texts = ["question=user_prompt", "none=id", "none=ground_truth", "none=system_prompt"]
    dataset = load_dataset(written(tmp_path, json.dumps(record)), mapping=mapping_of(texts))
    assert (dataset.row_name(0), dataset.row(0).ground_truth) == ("row-0", None)
