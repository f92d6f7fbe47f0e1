"""README and docs agree with the code: options exist, samples are what they claim to be."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from pytest_osmosis.options import OPTIONS

from . import faults

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FLAGS = {option.flag_name for option in OPTIONS}
INI_NAMES = {option.ini_name for option in OPTIONS}

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.S | re.M)


@each_page
def test_an_option_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"--osmosis-[a-z][a-z-]*[a-z]", page.read_text("utf-8")))
    assert named <= FLAGS | {"--osmosis-n"}


@each_page
def test_an_ini_line_that_a_page_shows_is_known(page: Path) -> None:
    for block in blocks(page, "toml"):
        assert set(re.findall(r"^(osmosis_\w+) *=", block, re.M)) <= INI_NAMES


@each_page
def test_python_and_json_samples_parse(page: Path) -> None:
    for block in blocks(page, "python"):
        ast.parse(block)
    for block in blocks(page, "json"):
        if page.name == "report.md":
            json.loads(block)
        else:
            [json.loads(line) for line in block.splitlines()]


def test_every_page_is_linked_from_the_index() -> None:
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text("utf-8")
    pages = {str(page.relative_to(docs).with_suffix("")) for page in docs.rglob("*.md")}
    assert pages - {"index"} == set(re.findall(r"^([a-z][\w/-]*)$", index, re.M))


def test_the_page_of_faults_is_that_of_their_table_and_tests() -> None:
    assert list(faults.missing()) == []
    rows = [row for rows in faults.FAULTS.values() for row in rows]
    assert [row.what for row in rows if bool(row.tests) == bool(row.untested)] == []
    assert faults.PAGE.read_text("utf-8") == faults.page(), "run python -m tests.faults"
