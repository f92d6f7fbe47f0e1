"""`osmosis eval report`: a saved report in other forms."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from pytest_osmosis.features.html import report as html
from pytest_osmosis.features.markdown import report as markdown
from pytest_osmosis.features.table import REPORTS
from pytest_osmosis.reports.saved_report import read_saved
from tests.support import report_page
from tests.support.endpoints import Endpoint
from tests.support.project import Project


def ran(*words: str) -> Result:
    return CliRunner().invoke(cli, ["eval", "report", *words])


def streams(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Return what the command writes to stdout and to stderr."""
    capsys.readouterr()
    assert run(cli, ["eval", "report", *words]) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


@pytest.fixture
def saved(pytester: pytest.Pytester) -> Iterator[Project]:
    """A session's report, with a baseline, gates and conversations beside it."""
    with Endpoint() as endpoint:
        yield evaluated(Project(pytester, endpoint))


def evaluated(project: Project) -> Project:
    project.endpoint.answers = lambda ask: ask.row
    asked = [{"user_prompt": each, "ground_truth": each, "level": each * 2} for each in "abc"]
    project.rows(*asked)
    gates = ("--osmosis-gate=mean >= 0.9", "--osmosis-gate=cost_usd <= 1")
    project.run(output="before.json", n="2")
    project.endpoint.answers = lambda ask: "wrong" if ask.row == "b" else ask.row
    session = project.run(
        "--osmosis-fresh", "--osmosis-baseline=before.json", "--osmosis-html=then.html",
        "--osmosis-markdown=then.md", "--osmosis-runs-table=then.csv", *gates, n="2",
    )  # fmt: skip
    assert session.ret == 1
    return project


def test_every_report_but_the_one_that_is_read_can_be_asked_for():
    shown = ran("--help").output
    forms = [form for each in REPORTS for form in each.forms]
    assert [form for form in forms if f"  --{form} FILE" not in shown] == ["output"]
    assert "Write the table of runs here, as .csv." in shown


@pytest.mark.slow
def test_what_is_rendered_later_is_what_was_shown_then(
    saved: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(saved.path)
    written = ("--html=now.html", "--markdown=now.md", "--csv=now.csv")
    done = ran("out.json", *written)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "HTML report: now.html", "Markdown report: now.md", "table of runs: now.csv",
    ]  # fmt: skip

    page, text = report_page.text_of(Path("now.html")), Path("now.md").read_text()
    for shown in (page, text):
        for part in ("row-1", "wrong", "gates failed", "before.json"):
            assert part in shown
    now, before = (report_page.page_of(Path(name)) for name in ("now.html", "then.html"))
    assert {row["question"] for row in now.suites[0]["rows"]} == set("abc")
    for key in ("columns", "regressed", "improved", "changed", "functions", "against"):
        assert now.suites[0][key] == before.suites[0][key]
    for found in (now, before):
        other = found.suites[0]["rows"][1]["other"]
        assert [(run["answer"], run["outcome"]) for run in other] == [("b", "passed")] * 2
    assert now.read(1, 0)["messages"] == before.read(1, 0)["messages"]
    then = Path("then.md").read_text().splitlines()
    left_out = [line for line in then if line.strip() and line not in text.splitlines()]
    assert [line for line in left_out if "data" not in line and "command" not in line] == []

    rows, kept = rows_of("now.csv"), rows_of("then.csv")
    for name in (
        "outcome",
        "score[rewards:exact]",
        "user_prompt",
        "ground_truth",
        "answer",
        "level",
    ):
        assert [row[name] for row in rows] == [row[name] for row in kept]

    shown = ran("out.json").stdout.splitlines()
    assert next(line for line in shown if line.startswith("gate ")).endswith("FAILED")
    assert any(line.startswith("lowest rows: row-1 0/2") for line in shown)
    assert json.loads(ran("out.json", "--html=now.html", "--json").stdout)["written"] == [
        "now.html"
    ]
    printed = streams(capsys, "out.json", "--markdown=-", "--csv=now.csv")
    assert printed == (text, "table of runs: now.csv\n")
    assert not Path("-").exists()


@pytest.mark.slow
def test_a_table_has_the_columns_of_rows_that_the_dataset_still_holds(
    saved: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(saved.path)
    monkeypatch.setenv("JUDGE_API_KEY", "bb-of-a-judge")
    data = Path("data.jsonl")
    data.write_text(data.read_text().replace('"bb"', '"bb-of-a-judge"'))
    _, changed = streams(capsys, "out.json", "--csv=now.csv")
    assert changed == "columns of the dataset are left out of 1 row: data.jsonl has changed since\n"
    assert [row["level"] for row in rows_of("now.csv")] == ["aa", "aa", "", "", "cc", "cc"]
    digests = json.loads(Path("out.json").read_text())
    digests["rows"][1]["digest"] = sha256(data.read_bytes().splitlines()[1]).hexdigest()[:12]
    Path("out.json").write_text(json.dumps(digests))
    assert streams(capsys, "out.json", "--csv=now.csv")[1] == ""
    assert rows_of("now.csv")[2]["level"] == "***"
    data.unlink()
    gone = json.loads(ran("out.json", "--csv=now.csv", "--json").stdout)
    assert gone["notes"] == [f"columns of the dataset are left out: {data.resolve()}: no such file"]
    assert [row["user_prompt"] for row in rows_of("now.csv")] == list("aabbcc")


def rows_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(name).read_text().splitlines()))


@pytest.mark.slow
def test_without_its_conversations_it_has_the_figures(
    saved: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(saved.path)
    Path("out.trajectories.jsonl").unlink()
    found = read_saved(Path("out.json"))
    assert {found.sections(run.run_id) for run in found.result.runs} == {None}
    assert "rewards:exact" in html.render(found.result) + markdown.render(found.result)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["none.json"], 1, "none.json: cannot be read: No such file"),
        (["bad.json"], 1, "bad.json: not an evaluation's report"),
        (["bad.json", "--csv=runs.txt"], 1, "bad.json: not an evaluation's report"),
    ],
)
def test_what_is_no_report_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, said: str
):
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("{}")
    done = ran(*words)
    assert (done.exit_code, said in done.output) == (status, True), done.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--csv=runs.txt", "name a file that ends in .csv"),
        ("--html=out.json", "this is the report that is read"),
        ("--html=x --markdown=./x", "this is the file of --html too, which would be overwritten"),
        ("--csv=runs.csv --html=runs.csv", "--html 'runs.csv': this is the file of --csv too"),
        ("--html=out.trajectories.jsonl", "this has its conversations"),
        ("--html=data.jsonl", "this is the dataset, which would be overwritten"),
        ("--html=- --markdown=-", "--markdown -: standard output takes one document"),
        ("--html=- --json", "--html -: standard output takes one document"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(
    saved: Project, monkeypatch: pytest.MonkeyPatch, option: str, said: str
):
    monkeypatch.chdir(saved.path)
    done = ran("out.json", *option.split())
    assert done.exit_code == 2
    assert said in done.output
