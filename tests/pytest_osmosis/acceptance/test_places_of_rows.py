"""The line of a row's item: editors, JUnit and failures name where the row stands in its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_osmosis.dataset.dataset import load_dataset
from tests.support.modes import each_mode
from tests.support.project import Project

HEAD = "user_prompt,ground_truth"
FILES = {
    "plain.jsonl": '{P "one"}\n{P "two"}\n{P "three"}\n',
    "blanks.jsonl": '\ufeff\n{P "one"}\r\n \n\n{P "two"}\n{P "three"}',
    "cells.csv": f'{HEAD}\none,1\n"two\nis\n\nlong",2\n\nthree,"3\n"\n',
    "windows.csv": f'\ufeff{HEAD}\r\n\r\none,1\r\n"two\r\nlong",2\r\nthree,3\r\n',
    "named.csv": 'sep=;\nuser_prompt;ground_truth\n"one\n";1\ntwo;2\nthree;3\n',
    "tabs.tsv": 'user_prompt\tground_truth\n\none\t"1"\ntwo\t2\nthree\t"3\n',
    "quoted.tsv": 'user_prompt\tground_truth\n"one\n"\t1\ntwo\t2\nthree\t3\n',
}
"""`{P` stands for what a row of JSON begins with."""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    text = text.replace("{P", '{"system_prompt": "", "ground_truth": "x", "user_prompt":')
    path.write_bytes(text.encode())
    return path


def lines_of(path: Path) -> list[int]:
    """Count by hand: which physical lines have the first word of each row."""
    lines = path.read_bytes().split(b"\n")
    words = (b"one", b"two", b"three")
    return [next(at for at, line in enumerate(lines, 1) if word in line) for word in words]


@pytest.mark.parametrize("name", FILES)
def test_a_row_begins_at_the_line_that_an_editor_shows(tmp_path: Path, name: str):
    path = written(tmp_path, name, FILES[name])
    expected = lines_of(path)
    for options in ({}, {"validate": False}):
        dataset = load_dataset(path, **options)
        assert [dataset.line(row) for row in dataset.row_indices] == expected
    for options, taken in (({"offset": 1}, [1, 2]), ({"rows": "0,2"}, [0, 2])):
        dataset = load_dataset(path, **options)
        assert [dataset.line(row) for row in taken] == [expected[row] for row in taken]


def test_a_format_that_has_no_lines_of_rows_has_none(tmp_path: Path):
    rows = [{"system_prompt": "", "user_prompt": "one", "ground_truth": "1"}] * 2
    (tmp_path / "data.json").write_text(json.dumps(rows, indent=1))
    assert load_dataset(tmp_path / "data.json").line(1) is None


LISTENER = """
def pytest_configure(config):
    global in_worker
    in_worker = hasattr(config, "workerinput")

def pytest_collection_modifyitems(items):
    tell("item", items)

def pytest_runtest_logreport(report):
    if report.when == "call" and not in_worker:
        tell("report", [report])

def tell(kind, found):
    with open("noted", "a") as file:
        for each in found:
            print(kind, each.nodeid, *each.location[:2], sep="|", file=file)
"""


@each_mode
def test_items_reports_and_junit_name_the_line_in_every_process(project: Project, workers: int):
    """The second file is outside of the root directory, and a part of its rows is taken."""
    root = project.path / "root"
    for name in ("agent.py", "rewards.py"):
        project.write(f"root/{name}", (project.path / name).read_text())
    project.write("conftest.py", LISTENER)
    project.write("root/pytest.ini", "[pytest]\n")
    first = written(root, "blanks.jsonl", FILES["blanks.jsonl"])
    second = written(project.path, "cells.csv", FILES["cells.csv"])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        session = project.run(
            *(
                "--confcutdir=..",
                "--osmosis-data=../cells.csv",
                "--osmosis-rows=1-2",
                "--batch-size=2",
            ),
            *("--junitxml=../out.xml", "-ojunit_family=xunit1", "--tb=line"),
            workers=workers,
            data="blanks.jsonl",
            output=None,
        )
    assert session.outcomes == {"failed": 4}, session.out
    truth = {
        f"{file}::row-{row}[run-0]": (file, lines_of(path)[row])
        for file, path in (("blanks.jsonl", first), ("../cells.csv", second))
        for row in (1, 2)
    }
    noted = [line.split("|") for line in (root / "noted").read_text().splitlines()]
    expected = sorted([nodeid, file, str(line - 1)] for nodeid, (file, line) in truth.items())
    assert sorted(words[1:] for words in noted if words[0] == "report") == expected
    collected = sorted(words[1:] for words in noted if words[0] == "item")
    assert collected == sorted(expected * max(1, workers))
    places = [
        f"{file}:{line}: {nodeid.partition('::')[2]}: " for nodeid, (file, line) in truth.items()
    ]
    shown = session.section("FAILURES")
    assert all(line.startswith(place) for line, place in zip(shown[:4], places, strict=True))
    cases = {
        (case.attrib["file"], int(case.attrib["line"])) for case in session.junit.iter("testcase")
    }
    assert cases == {(file, line - 1) for file, line in truth.values()}


def test_a_failed_run_says_where_its_row_is_and_a_test_stays_where_it_is(project: Project):
    written(project.path, "cells.csv", FILES["cells.csv"])
    project.write("conftest.py", LISTENER)
    project.write(
        "test_it.py",
        """
import pytest

@pytest.mark.osmosis(agent="agent:agent_loop", data="cells.csv")
def test_it(rollout):
    assert not rollout.messages

@pytest.mark.osmosis(agent="agent:agent_loop", data=[{"user_prompt": "own"}])
def test_own(rollout):
    assert not rollout.messages
""",
    )
    session = project.run(agent=None, data=None, eval_fn=None)
    rows = [line.split()[1] for line in session.lines if line.startswith("  row  ")]
    assert rows == ["cells.csv:2", "cells.csv:3", "cells.csv:8"]
    noted = [line.split("|")[2:] for line in (project.path / "noted").read_text().splitlines()]
    assert {tuple(words) for words in noted} == {("test_it.py", "3"), ("test_it.py", "7")}
