"""The files of a session: all of them, or a sentence why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_osmosis.features.table import GROUPS, REPORTS
from tests.pytest_osmosis.storage.test_atomic_write import Reader
from tests.support.project import Project

FILES = {
    "output": "r.json", "markdown": "r.md", "html": "r.html", "runs_table": "r.parquet",
}  # fmt: skip


def test_every_report_has_its_option_and_its_writer():
    assert {each.option for each in REPORTS} < {option.name for option in GROUPS["reports"]}
    assert all(callable(each.writer(None)) for each in REPORTS)


def test_where_all_rows_are_is_said_of_the_page_alone(project: Project):
    project.rows({"user_prompt": "one", "ground_truth": "other"})
    gate = "--osmosis-gate=mean >= 0.5"
    assert "osmosis eval runs show" in project.run(gate, metrics="metrics.json").out
    assert "1 row did not pass every time: page.html" in project.run(gate, html="page.html").out


@pytest.mark.fault("a report goes to `/dev/null` or into a FIFO")
def test_what_is_no_regular_file_is_written_into_by_every_report(project: Project):
    readers = {name: Reader(project.path / name) for name in ("json", "md", "page", "table")}
    project.rows("a")
    session = project.run(
        "--osmosis-markdown=md", "--osmosis-html=page", "--osmosis-runs-table=table", output="json"
    )
    assert session.ret == 0
    written = {name: reader.data().decode() for name, reader in readers.items()}
    assert json.loads(written["json"])["summary"]["total_runs"] == 1
    assert written["md"].startswith("#")
    assert "<html" in written["page"]
    assert written["table"].startswith("suite,")
    assert not list(project.path.glob("*.trajectories.jsonl"))


def test_a_file_that_cannot_be_written_any_more_fails_the_session(project: Project):
    (project.path / "gone").mkdir()
    agent = (project.path / "agent.py").read_text()
    spoil = '        import shutil; shutil.rmtree("gone", ignore_errors=True)\n'
    project.write(
        "agent.py", agent.replace("        messages = list(", f"{spoil}        messages = list(")
    )
    project.rows("one")
    gone = {option: f"gone/{name}" for option, name in FILES.items() if option != "output"}
    session = project.run(**gone)
    assert session.ret == 1
    assert [line for line in session.lines if line.startswith("ERROR: ")] == [
        f"ERROR: cannot write gone/{Path(name).name}: No such file or directory"
        for name in gone.values()
    ]
    assert session.outcomes == {"passed": 1}
    assert session.report["summary"]["complete"] is True


def test_reports_of_the_ini_file_lie_below_it(project: Project):
    project.write("pytest.ini", "[pytest]\nosmosis_html = page.html\nosmosis_runs_table = r.csv\n")
    project.rows("one")
    assert project.run().ret == 0
    assert (project.path / "page.html").exists()
    assert (project.path / "r.csv").read_text().startswith("suite,row_index,")


def test_the_quietest_session_writes_them_too(project: Project):
    project.rows("one")
    session = project.run("-qq", **FILES)
    assert "report:" not in session.out
    modes = [(project.path / name).stat().st_mode & 0o777 for name in FILES.values()]
    assert modes == [0o600] * 4  # all hold answers
