from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.dataset.csv_file import CsvSource
from pytest_osmosis.dataset.dataset import Dataset, load_dataset
from pytest_osmosis.dataset.errors import DatasetError, EmptyDataset

HEADER = b"system_prompt,user_prompt,ground_truth,level\n"


def loaded(folder: Path, content: bytes, **options: Any) -> Dataset:
    path = folder / "data.csv"
    path.write_bytes(content)
    return load_dataset(path, **options)


def refusal(folder: Path, content: bytes) -> str:
    with pytest.raises(DatasetError) as caught:
        loaded(folder, content)
    return str(caught.value).replace(f"{folder}/", "")


def test_cells_are_strings_and_an_empty_ground_truth_is_none(tmp_path):
    dataset = loaded(tmp_path, HEADER + b's,"a, ""b""\nc",1.10,3\n,d,,\n')
    first, second = dataset.row(0), dataset.row(1)
    assert (first.user_prompt, first.ground_truth, first.extra) == (
        'a, "b"\nc', "1.10", {"level": "3"},
    )  # fmt: skip
    assert (second.system_prompt, second.ground_truth, second.extra) == ("", None, {"level": ""})
    assert dataset.rows_total == 2


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + HEADER + b"s,u,t,1\n",
        (HEADER + b"s,u,t,1\n").replace(b"\n", b"\r\n"),
        b"\n" + HEADER + b"\n\r\ns,u,t,1",
        HEADER.upper() + b"s,u,t,1\n",
    ],
    ids=["byte order mark", "CRLF", "blank lines", "upper case"],
)
def test_harmless_forms_are_read_alike(tmp_path, content):
    row = loaded(tmp_path, content).row(0)
    assert (row.system_prompt, row.user_prompt, row.ground_truth) == ("s", "u", "t")


@pytest.mark.fault("a CSV row has too many or too few cells, or a quote that is never closed")
def test_wrong_rows_are_named_by_the_line_they_begin_at(tmp_path):
    content = HEADER + b's,"two\nlines",,\ns,,,\ns,u\n\ns,"a"b,,\ns,u,,,,\ns,"open,,\n'
    assert refusal(tmp_path, content) == (
        "data.csv: 5 rows cannot be used\n"
        "  line 4: 'user_prompt' is an empty string; expected a non-empty one\n"
        "  line 5: has 2 cells; the header has 4 columns\n"
        '  line 7: not CSV: text follows a closing quote; write a quote inside a cell twice ("")\n'
        "  line 8: has 6 cells; the header has 4 columns\n"
        "  line 9: a quote that is opened here is never closed"
    )


@pytest.mark.fault("a CSV file has semicolons, two columns of one name, or another encoding")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"question,level,choices\n" + b"u,1,a\n" * 3,
            "data.csv: 'user_prompt' is missing\n  question  user_prompt   'u'\n",
        ),
        (b"a,b,a\n1,2,3\n", "data.csv:1: the column 'a' is there more than once"),
        (HEADER + b"s,caf\xe9,,\n", "data.csv:2: not UTF-8 (byte 0xe9 at column 6): save the file"),
        (HEADER.decode().encode("utf-16"), "data.csv: is not UTF-8 (byte 0xff at line 1)"),
        (b"messages\nhello\n", "data.csv:2: 'messages' is a string; expected a list"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported(tmp_path, content, sentence):
    assert sentence in refusal(tmp_path, content)


@pytest.mark.parametrize("content", [b"", b"\n\n", HEADER], ids=["empty", "blank", "header alone"])
def test_a_file_without_rows_is_empty(tmp_path, content):
    with pytest.raises(EmptyDataset, match="has no rows"):
        loaded(tmp_path, content)


def test_a_cell_may_be_long_and_the_limit_of_the_process_stays(tmp_path):
    before = csv.field_size_limit()
    row = loaded(tmp_path, HEADER + b"s," + b"x" * 300_000 + b",,\n").row(0)
    assert len(row.user_prompt) == 300_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({"limit": 2}, [0, 1]),
        ({"offset": 3, "limit": 9}, [3, 4]),
        ({"rows": "4,1-2,2"}, [1, 2, 4]),
        ({"sample": "2", "sample_seed": 1}, None),
    ],
)
def test_rows_are_selected_as_of_other_formats(tmp_path, options, taken):
    cells = [f"u{index}" for index in range(5)]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(f'{{"system_prompt":"","user_prompt":"{cell}"}}\n' for cell in cells))
    csv_rows = loaded(
        tmp_path, b"system_prompt,user_prompt\n" + "".join(f",{c}\n" for c in cells).encode(),
        **options,
    )  # fmt: skip
    assert list(csv_rows.row_indices) == list(load_dataset(path, **options).row_indices)
    assert taken is None or list(csv_rows.row_indices) == taken
    assert [csv_rows.row(i).user_prompt for i in csv_rows.row_indices] == [
        cells[i] for i in csv_rows.row_indices
    ]


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1).filter(
            lambda text: not text.isspace()
        ),
        min_size=1,
    )
)
def test_what_the_csv_module_has_written_is_read_back(tmp_path_factory, texts):
    written = io.StringIO()
    csv.writer(written).writerows([["system_prompt", "user_prompt"], *([t, t] for t in texts)])
    dataset = loaded(tmp_path_factory.mktemp("csv"), written.getvalue().encode())
    assert [dataset.row(i).user_prompt for i in dataset.row_indices] == texts


def test_another_separator_is_one_attribute_of_the_source(tmp_path, monkeypatch):
    monkeypatch.setattr(CsvSource, "separator", "\t")
    row = loaded(tmp_path, HEADER.replace(b",", b"\t") + b"s\ta, b\t2\t\n").row(0)
    assert (row.user_prompt, row.ground_truth) == ("a, b", "2")
    dataset = loaded(tmp_path, HEADER + b"s,u,,\n")
    assert dataset.row(0).user_prompt == "u"
    assert dataset.notices == ["its columns are separated by commas"]
