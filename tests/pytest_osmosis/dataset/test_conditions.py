"""Rows by what a column holds: which are taken, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.dataset.conditions import parse_condition
from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.errors import DatasetError, EmptyDataset

VALUES: dict[str, list[Any]] = {
    "lang": ["en", "de", "en", "fr", None, " en "],
    "level": [1, 2.0, "1", 0.10, None, 10],
    "is_hard": [True, False, None, True, False, True],
    "meta": [{"kind": "a"}, {"kind": "b"}, {}, {"kind": "a"}, {}, {"kind": "c=d"}],
    "tags": [["x"], [], ["x", "y"], [" "], None, ["x"]],
    "answer": ["1", "", "  ", None, "4", "5"],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.jsonl"
    rows = [
        {"question": f"q{at}", **{name: values[at] for name, values in VALUES.items()}}
        for at in range(6)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    path.write_text(text.replace('"level": 0.1,', '"level": 0.10,'))
    return path


GIVEN: dict[str, Any] = {"mapping": {"user_prompt": "question", "ground_truth": "answer"}}


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        (["lang=en"], [0, 2, 5]),
        (["lang!=en"], [1, 3, 4]),
        (["lang="], [4]),
        (["lang!=", "lang!=en"], [1, 3]),
        (["level=1"], [0, 2]),
        (["level=2"], [1]),
        (["level=0.1"], [3]),
        (["level=0.10"], [3]),
        (["is_hard=true"], [0, 3, 5]),
        (["is_hard!=True"], [1, 2, 4]),
        (["meta.kind=a"], [0, 3]),
        (["meta.kind=c=d"], [5]),
        (["meta={}"], []),
        (["meta="], [2, 4]),
        (['tags=["x"]'], [0, 5]),
        (["tags[0]=x"], [0, 2, 5]),
        (["tags!="], [0, 2, 5]),
        (["ground_truth!="], [0, 4, 5]),
        (["answer="], [1, 2, 3]),
        (["user_prompt=q3"], [3]),
    ],
)
def test_rows_with_the_value_are_taken(data: Path, where: list[str], taken: list[int]):
    if not taken:
        with pytest.raises(DatasetError, match="no row is left where"):
            load_dataset(data, where=where, **GIVEN)
        return
    dataset = load_dataset(data, where=where, **GIVEN)
    assert list(dataset.row_indices) == taken
    assert [dataset.row(index).user_prompt for index in taken] == [f"q{index}" for index in taken]
    assert f"{len(taken)} of 6 rows: where {' and '.join(where)}" in dataset.notices
    again = load_dataset(data, where=where, validate=False, **GIVEN)
    assert (again.digest, list(again.row_indices)) == (dataset.digest, taken)


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({"limit": 2}, [0, 2]),
        ({"offset": 1}, [2, 5]),
        ({"offset": 1, "limit": 1}, [2]),
        ({"rows": "2,5"}, [2, 5]),
    ],
)
def test_other_selections_are_of_what_is_left(
    data: Path, options: dict[str, Any], taken: list[int]
):
    dataset = load_dataset(data, where=["lang=en"], **options, **GIVEN)
    assert list(dataset.row_indices) == taken


def test_a_sample_is_drawn_from_what_is_left(data: Path):
    drawn = [
        list(
            load_dataset(data, where=["lang=en"], sample="2", sample_seed=seed, **GIVEN).row_indices
        )
        for seed in range(20)
    ]
    assert {*map(tuple, drawn)} == {(0, 2), (0, 5), (2, 5)}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"where": ["lng=en"]}, "no row has the column 'lng' of lng=en (columns: question, lang"),
        ({"where": ["lng!=en"]}, "did you mean 'lang'?"),
        ({"where": ["meta.kid!=a"]}, "no row has the column 'meta.kid'"),
        ({"where": ["lang=xx"]}, "no row is left where lang=xx: lang is en, de, fr, null"),
        ({"where": ["lang=en"], "rows": "1"}, "row 1 is named, and left out where lang=en"),
        ({"where": ["lang=en"], "rows": "9"}, "there is no row 9"),
    ],
)
def test_a_condition_without_effect_or_rows_is_refused(
    data: Path, options: dict[str, Any], sentence: str
):
    with pytest.raises(DatasetError) as caught:
        load_dataset(data, **options, **GIVEN)
    assert sentence in str(caught.value)


def test_an_offset_past_what_is_left_says_so(data: Path):
    with pytest.raises(EmptyDataset, match="3 of 6 rows: where lang=en; an offset of 3 is past"):
        load_dataset(data, where=["lang=en"], offset=3, **GIVEN)


@pytest.mark.parametrize("text", ["lang", "=en", "!=en", "level>=2", "level<=2", "lang==en", ""])
def test_a_condition_is_a_column_and_a_value(text: str):
    with pytest.raises(ValueError, match="COLUMN=VALUE"):
        parse_condition(text)
