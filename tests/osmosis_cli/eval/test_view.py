"""`osmosis eval view`: pages of reports and of kept evaluations, for their owner alone."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest
from click.testing import CliRunner

from osmosis_cli.eval.viewer import server
from osmosis_cli.eval.viewer.library import Library, key_of
from osmosis_cli.eval.viewer.pages import beside, comparison_page, families
from osmosis_cli.eval.viewer.server import HOST, Viewer
from osmosis_cli.main import cli
from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.features.breakdown.results import Breakdowns, breakdown_of
from pytest_osmosis.reports import json_writer
from pytest_osmosis.reports.formats import overviews
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.storage.journal import verdict_line
from pytest_osmosis.suite_results import EvalResult, SuiteResult
from tests.support.kept_evaluation import add, kept
from tests.support.made_results import EXACT, NASTY, result_of, suite_of
from tests.support.report_page import ReportPage

SAID = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": NASTY}]


class Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes


class Visitor:
    """Asks a viewer as a browser would."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer

    @contextmanager
    def asked(
        self,
        path: str,
        *,
        method: str = "GET",
        host: str | None = None,
        site: str = "same-origin",
        body: bytes | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """An answer, while it comes in."""
        connection = http.client.HTTPConnection(HOST, self.viewer.port, timeout=30)
        connection.putrequest(method, path, skip_host=host is not None)
        if host is not None:
            connection.putheader("Host", host)
        connection.putheader("Connection", "close")
        connection.putheader("Sec-Fetch-Site", site)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        with closing(connection), connection.getresponse() as answer:
            yield answer

    def open(self, path: str, **how: Any) -> Answer:
        with self.asked(path, **how) as answer:
            return Answer(answer.status, answer.headers, answer.read())

    def get(self, path: str) -> str:
        answer = self.open(f"{self.viewer.base}/{path}")
        assert answer.status == 200, answer.body
        return answer.body.decode()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An evaluation of two rows, of which one has ended."""
    folder = kept(tmp_path / ".osmosis" / "runs", "d-m", done=1, started=1700000000.0)
    ended = RunResult("d.jsonl", 0, 0, True, scores={"r:f": 1.0}, passed=True, answer="42")
    add(folder, RolloutRecord(ended, messages=SAID, ground_truth="42"))
    return folder


@pytest.fixture
def visitor(tmp_path: Path, run: Path) -> Iterator[Visitor]:
    before, after = suite_of([[0.0], [1.0]]), suite_of([[1.0], [0.0]])
    by_level = Breakdowns((breakdown_of(after, "level", {"low": [0], "high": [1]}),))
    after = replace(after, sections={"by": by_level})
    json_writer.write(result_of(before), tmp_path / "before.json")
    json_writer.write(result_of(after), tmp_path / "after.json")
    json_writer.write(result_of(replace(after, info=after.info)), tmp_path / "again.json")
    (tmp_path / "package.json").write_text("{}")
    kept(run.parent, "d-m@20200101-000000", done=2, started=1577836800.0)
    with Viewer(Library(tmp_path), tmp_path) as viewer:
        yield Visitor(viewer)


def test_the_list_has_every_report_and_every_evaluation(visitor: Visitor, tmp_path: Path):
    page = ReportPage(visitor.get(""))
    for name in ("before.json", "after.json", "d-m", "d-m@20200101-000000", "1/2", "unfinished"):
        assert name in page.text
    assert "package.json" not in page.text
    links = {a["href"] for tag, a in page.elements if tag == "a"}
    assert f"{visitor.viewer.base}/reports/{key_of(tmp_path / 'after.json')}" in links
    assert page.count("svg") == 1  # the reports: one of the two evaluations has no score


def test_a_trend_has_a_point_for_each_evaluation_that_has_a_score(tmp_path: Path):
    for number, scores in enumerate([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]):
        suite = suite_of([scores])
        runs = [replace(run, started_at=1e9 + number) for run in suite.rows[0].runs]
        suite = replace(suite, rows=(replace(suite.rows[0], runs=tuple(runs)),))
        json_writer.write(result_of(suite), tmp_path / f"{number}.json")
    [family] = families(Library(tmp_path).entries())
    assert [entry.run.name for entry in family.entries] == ["2.json", "1.json", "0.json"]
    assert family.trend == "0.000, 0.500, 1.000"
    assert [y for _, y in family.points] == [25.0, 14.0, 3.0]
    path = tmp_path / "0.json"
    path.write_text(path.read_text().replace(EXACT, "rewards:other"))
    [family] = families(Library(tmp_path).entries())
    assert family.trend == "0.500, 1.000"
    nothing = replace(suite, rows=tuple(replace(row, runs=()) for row in suite.rows))
    newest = tmp_path / "newest.json"  # without a run, it began when it was written
    json_writer.write(result_of(nothing), newest)
    newest.write_text(newest.read_text().replace(EXACT, "rewards:third"))
    [family] = families(Library(tmp_path).entries())
    assert family.entries[0].pass_at_1 is None
    assert family.trend == "0.500, 1.000"


def test_evaluations_of_other_data_agents_or_models_have_trends_of_their_own(
    tmp_path: Path,
):
    for number, changed in enumerate(
        [{}, {"name": "b/data.jsonl"}, {"agent": "other:agent_loop"}, {"model": "x"}, {}]
    ):
        json_writer.write(result_of(suite_of([[1.0]], **changed)), tmp_path / f"{number}.json")
    trends = [each.entries for each in families(Library(tmp_path).entries())]
    found = {tuple(sorted(entry.run.name for entry in each)) for each in trends}
    assert found == {("0.json", "4.json"), ("1.json",), ("2.json",), ("3.json",)}


def test_a_report_is_shown_as_the_page_that_is_written_of_it(visitor: Visitor, tmp_path: Path):
    page = ReportPage(visitor.get(f"reports/{key_of(tmp_path / 'after.json')}"))
    assert [run["outcome"] for run in page.runs] == ["passed", "below"]
    assert "1 of 2 runs passed" in page.text


def test_an_evaluation_that_is_kept_is_shown_as_far_as_it_has_come(visitor: Visitor, run: Path):
    page = ReportPage(visitor.get(f"runs/{key_of(run)}"))
    assert [run["row_index"] for run in page.runs] == [0]
    [row] = page.suites[0]["rows"]
    assert (row["question"], row["truth"]) == ("What is it?", "42")
    said = json.loads(visitor.get(f"conversations/{key_of(run)}?suite=d.jsonl&row=0&run=0"))
    assert said["messages"] == SAID
    absent = visitor.get(f"conversations/{key_of(run)}?suite=d.jsonl&row=1&run=0")
    assert json.loads(absent) is None


def test_two_stand_beside_each_other_with_what_changed(visitor: Visitor, tmp_path: Path):
    before, after = (key_of(tmp_path / name) for name in ("before.json", "after.json"))
    page = ReportPage(visitor.get(f"compare?a={before}&b={after}"))
    assert "by level" in page.text
    [suite] = page.suites
    assert (suite["regressed"], suite["improved"]) == ([], [])
    assert (suite["changed"], suite["against"]["source"]) == ([0, 1], "before.json")
    assert suite["rows"][0]["other"][0]["outcome"] == "below"


@pytest.mark.parametrize(("apart", "digits"), [(60, 5), (5, 8)])
def test_two_of_one_evaluation_are_called_by_times_that_differ(
    tmp_path: Path, apart: int, digits: int
):
    runs = tmp_path / ".osmosis" / "runs"
    names = [f"d-m@2001090{at}-000000" for at in (1, 2)]
    for name, began in zip(names, (1e9, 1e9 + apart), strict=True):
        kept(runs, name, done=2, started=began)
    library = Library(tmp_path)
    before, after = (entry for name in names if (entry := library.get(key_of(runs / name))))
    page = ReportPage(comparison_page(library, before, after, ""))
    found = re.search(r"d-m: [\d-]+ ([\d:]+\d) against [\d-]+ ([\d:]+\d)", page.text)
    assert found is not None
    assert [len(each) for each in found.groups()] == [digits, digits]
    assert found[1] > found[2]


@pytest.mark.parametrize("others", [(), ("other.jsonl",)])
@pytest.mark.parametrize(
    ("models", "labels"),
    [
        (("calc-7b", "calc-7b"), ["calc-7b (baseline)", "calc-7b"]),
        (("small", "large"), ["small", "large"]),
    ],
)
def test_each_of_two_has_its_own_figures(
    others: tuple[str, ...], models: tuple[str, str], labels: list[str]
):
    def session(model: str, *scores: float | None) -> EvalResult:
        runs = [[score] for score in scores]
        names = ("data.jsonl", *others)
        return result_of(*(suite_of(runs, model=model, name=n, data=n) for n in names))

    then, now = session(models[0], 1.0, 1.0, 0.0), session(models[1], 1.0, 0.0, None)
    for ours, theirs, expected in (
        (now, then, [[labels[0], "0.667", "3/3"], [labels[1], "0.500", "2/2"]]),
        (result_of(*(unfinished(each) for each in now.suites)), then,
         [[labels[0], "0.667", "3/3"], [labels[1], "-", "0/0"]]),
    ):  # fmt: skip
        tables = list(overviews(beside(theirs, ours, "then.json")))
        assert len(tables) == 1 + len(others)
        for found in tables:
            title = found.table.header
            places = [title.index(name) for name in ("candidate", "mean", "scored")]
            assert [[row[at] for at in places] for row in found.table.rows] == expected


def unfinished(suite: SuiteResult) -> SuiteResult:
    return aggregate(suite.info, [], selected=suite.selected)


def test_a_session_that_works_on_it_is_followed_to_its_end(
    visitor: Visitor, run: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server, "POLL_S", 0.02)
    lock = run.with_name(f".{run.name}.lock")
    lock.write_text(str(os.getpid()))
    assert "running" in ReportPage(visitor.get(f"runs/{key_of(run)}")).text
    with visitor.asked(f"{visitor.viewer.base}/events/{key_of(run)}") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert event(answer) == "changed"
        add(run, RunResult("d.jsonl", 1, 0, success=True, scores={"r:f": 0.0}))
        assert event(answer) == "changed"
        lock.unlink()
        assert event(answer) == "ended"
        assert b"event" not in answer.read()
    page = ReportPage(visitor.get(f"runs/{key_of(run)}"))
    assert len(page.runs) == 2
    assert "running" not in page.text


def event(answer: http.client.HTTPResponse) -> str:
    """Wait for the next event."""
    while line := answer.readline().decode():
        if line.startswith("event: "):
            return line.removeprefix("event: ").strip()
    raise AssertionError("the stream has ended")


def test_it_is_there_for_its_owner_alone(visitor: Visitor, run: Path):
    viewer = visitor.viewer
    port = viewer.port
    assert viewer.url == f"http://127.0.0.1:{port}{viewer.base}/"
    inside = f"{viewer.base}/runs/{key_of(run)}"
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil:{port}"):
        assert visitor.open(inside, host=host).status == 421
    assert visitor.open(inside, host=f"localhost:{port}").status == 200
    key = key_of(run)
    for path in ("/", f"/runs/{key}", f"{viewer.base}x/", viewer.base, f"{viewer.base}/runs/none",
                 f"{viewer.base}/runs/../../journal.jsonl", f"{viewer.base}/nothing"):  # fmt: skip
        assert visitor.open(path).status == 404, path
    assert visitor.open(f"{viewer.base}/conversations/{key}?row=x").status == 400
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"):
        assert visitor.open(inside, method=method).status == 501
    headers = visitor.open(inside).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


LABEL = {"suite": "d.jsonl", "row_index": 0, "run_index": 0, "is_right": False, "note": "no unit"}


def test_what_people_say_is_kept_beside_it(visitor: Visitor, run: Path, tmp_path: Path):
    base, key = visitor.viewer.base, key_of(run)
    sent = json.dumps(LABEL).encode()
    assert visitor.open(f"{base}/labels/{key}", method="POST", body=sent).status == 200
    [label] = json.loads(visitor.get(f"labels/{key}"))
    assert label == {**LABEL, "started_at": None, "rubrics": {}}
    assert (run / "labels.json").stat().st_mode & 0o777 == 0o600
    form = urlencode({"note": "before the\nprompt changed", "tags": "slow, old"}).encode()
    done = visitor.open(f"{base}/notes/{key}", method="POST", body=form)
    assert (done.status, done.headers["Location"]) == (303, f"{base}/")
    for words, count in (("OLD prompt", 1), ("d-m", 2), ("no such", 0)):
        page = ReportPage(visitor.get(f"?{urlencode({'q': words})}"))
        assert page.count("tr") == 1 + count + (count > 1), words
        assert f"{count} of 5" in page.text
    gone = json.dumps({**LABEL, "is_right": None, "note": ""}).encode()
    visitor.open(f"{base}/labels/{key}", method="POST", body=gone)
    assert json.loads(visitor.get(f"labels/{key}")) == []
    assert "prompt changed" in (run / "labels.json").read_text()
    (run / "labels.json").write_text("[]")
    answer = visitor.open(f"{base}/labels/{key}")
    assert answer.status == 409 and b"is no file of labels" in answer.body
    assert "is no file of labels" in ReportPage(visitor.get("")).text


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"body": b"{}", "site": "cross-site"}, 403),
        ({"body": b"{}", "host": "evil.example"}, 421),
        ({}, 413),
        ({"body": b"x" * 64_001}, 413),
        ({"body": b"{"}, 400),
        ({"body": json.dumps({**LABEL, "is_right": "yes"}).encode()}, 400),
        ({"body": json.dumps({**LABEL, "started_at": {}}).encode()}, 400),
    ],
)
def test_what_another_site_or_no_page_sends_changes_nothing(
    visitor: Visitor, run: Path, how: dict[str, Any], status: int
):
    path = f"{visitor.viewer.base}/labels/{key_of(run)}"
    assert visitor.open(path, method="POST", **how).status == status
    assert not (run / "labels.json").exists()


def test_an_evaluation_is_deleted_unless_a_session_works_on_it(
    visitor: Visitor, run: Path, tmp_path: Path
):
    base = visitor.viewer.base
    lock = run.with_name(f".{run.name}.lock")
    lock.write_text(str(os.getpid()))
    answer = visitor.open(f"{base}/delete/{key_of(run)}", method="POST", body=b"")
    assert answer.status == 409 and b"d-m is in use" in answer.body
    lock.unlink()
    report = tmp_path / "after.json"
    (tmp_path / "after.json.labels").write_text(json.dumps({"note": "", "tags": [], "runs": []}))
    for path in (run, report):
        gone = visitor.open(f"{base}/delete/{key_of(path)}", method="POST", body=b"")
        assert (gone.status, path.exists()) == (303, False)
    assert not (tmp_path / "after.json.labels").exists()
    assert "after.json" not in ReportPage(visitor.get("")).text


def test_a_kept_evaluation_and_its_report_are_one(visitor: Visitor, tmp_path: Path):
    folder = kept(tmp_path / ".osmosis" / "runs", "one", done=0, started=1.0, rows=1, eval_fn=EXACT)
    [only] = suite_of([[1.0]]).runs
    add(folder, replace(only, suite="d.jsonl"))
    suite = suite_of([[1.0]])
    suite = replace(suite, info=replace(suite.info, model="m"))
    git = {"commit": "ab12cd34ef5678", "branch": "tidy", "dirty": False}
    environment = {"versions": {}, "platform": "", "command_line": "", "git": git}
    json_writer.write(result_of(suite, environment=environment), tmp_path / "one.json")
    [entry] = [each for each in visitor.viewer.library.entries() if "one.json" in each.names]
    assert entry.names == ["one", "one.json"]
    text = ReportPage(visitor.get("?q=tidy")).text
    assert "ab12cd34ef tidy" in text and "1 of 6" in text
    sent = json.dumps(LABEL).encode()
    report = key_of(tmp_path / "one.json")
    visitor.open(f"{visitor.viewer.base}/labels/{report}", method="POST", body=sent)
    assert (folder / "labels.json").exists()
    with (folder / "journal.jsonl").open("ab") as journal:
        journal.write(verdict_line(suite, {**git, "branch": "kept"}))
    assert "1 of 6" in ReportPage(visitor.get("?q=kept")).text
    visitor.open(f"{visitor.viewer.base}/delete/{key_of(folder)}", method="POST", body=b"")
    assert not (folder.exists() or (tmp_path / "one.json").exists())


def test_what_is_damaged_is_said_and_ends_nothing(visitor: Visitor, run: Path):
    (run / "journal.jsonl").write_text("damaged\n")
    answer = visitor.open(f"{visitor.viewer.base}/runs/{key_of(run)}")
    assert answer.status == 409
    assert "the first lines of the journal are lost" in answer.body.decode()
    assert "damaged" in ReportPage(visitor.get("")).text


def test_the_list_can_be_read_whatever_file_lies_there(visitor: Visitor, tmp_path: Path):
    document = json.loads((tmp_path / "after.json").read_text())
    document["rows"][0]["runs"][0]["started_at"] = 1e300
    document["rows"][1]["runs"][0]["started_at"] = 1e300
    (tmp_path / "future.json").write_text(json.dumps(document))
    os.mkfifo(tmp_path / "pipe.json")
    text = ReportPage(visitor.get("")).text
    assert "future.json" in text and "at no known time" in text
    assert visitor.open(f"{visitor.viewer.base}/compare").status == 400


def test_a_page_that_cannot_be_made_is_answered_with_a_sentence(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
):
    def fails(*arguments: object) -> str:
        raise LookupError("of some kind")

    monkeypatch.setattr(server, "index_page", fails)
    answer = visitor.open(f"{visitor.viewer.base}/")
    assert answer.status == 500
    assert answer.body == b"this page cannot be made: LookupError: of some kind\n"


def test_a_visitor_who_leaves_is_no_news(
    visitor: Visitor, run: Path, capsys: pytest.CaptureFixture[str]
):
    lock = run.with_name(f".{run.name}.lock")
    lock.write_text(str(os.getpid()))
    with visitor.asked(f"{visitor.viewer.base}/events/{key_of(run)}") as answer:
        assert event(answer) == "changed"
    with visitor.viewer:  # which is ended while another one watches
        watching = http.client.HTTPConnection(HOST, visitor.viewer.port, timeout=30)
        watching.request("GET", f"{visitor.viewer.base}/events/{key_of(run)}")
        answer = watching.getresponse()
        assert event(answer) == "changed"
    with closing(watching), pytest.raises(http.client.IncompleteRead):
        answer.read()
    assert capsys.readouterr().err == ""


def viewed(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(Viewer, "wait", lambda self: None)
    done = CliRunner().invoke(cli, ["eval", "view", *words])
    return done.exit_code, done.output


def test_the_command_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    json_writer.write(result_of(suite_of([[1.0]])), tmp_path / "a.json")
    monkeypatch.chdir(tmp_path)
    status, out = viewed(monkeypatch, "a.json", "--json")
    found = json.loads(out)
    assert (status, found["pages"]) == (0, 1)
    url = urlsplit(found["url"])
    assert url.hostname == HOST
    assert url.path.endswith(f"/reports/{key_of(tmp_path / 'a.json')}")
    assert "http://127.0.0.1:" in viewed(monkeypatch)[1]


def test_what_cannot_be_viewed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("{}")
    assert viewed(monkeypatch, "none.json") == (
        1, "Error: none.json: there is no such file or folder\n",
    )  # fmt: skip
    assert "bad.json: not an evaluation's report" in viewed(monkeypatch, "bad.json")[1]
    os.mkfifo("pipe.json")
    assert "pipe.json: is neither a file nor a folder" in viewed(monkeypatch, "pipe.json")[1]
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        status, out = viewed(monkeypatch, "--port", str(port))
    assert (status, out) == (1, f"Error: cannot listen on port {port}: Address already in use\n")
