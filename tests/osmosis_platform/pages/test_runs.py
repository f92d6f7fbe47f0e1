"""The pages of runs: the list with its trends, one run, its report, stopping it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from osmosis_ai.secret import Redactor, Secret
from osmosis_platform.database.models import LogLine, now
from osmosis_platform.execution import outcome, tail
from osmosis_platform.execution.run_figures import metrics_of
from osmosis_platform.execution.run_folder import RunFolder
from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.score_table import score_table_of
from pytest_osmosis.reports.json_reader import checked
from pytest_osmosis.reports.json_writer import document_of
from tests.support.made_results import NASTY, result_of, suite_of
from tests.support.platform_server import Account, PlatformServer
from tests.support.platform_server import submission as body
from tests.support.submitted_runs import run_of

from .conftest import Browser


def finished(
    platform: PlatformServer, account: Account, name: str, *rows: float | list[Any], **more: Any
) -> str:
    """Add a finished run whose rows have these scores, or lists of them."""
    scores = [row if isinstance(row, list) else [row] for row in rows]
    report = document_of(result_of(suite_of(scores, answer=NASTY)))
    return platform.add_run(
        account=account,
        name=name,
        status="finished",
        started_at=now(),
        completed_at=now(),
        metrics=metrics_of(checked(report)),
        report=report,
        **more,
    )


def names_of(page: str) -> list[str]:
    """The runs of a list, in its order."""
    return re.findall(r'<th scope="row"><a [^>]*>(\w+)-run</a>', page)


def test_the_list_shows_each_run_that_there_is_and_the_trend_of_its_config(
    browser: Browser, platform_server: PlatformServer
):
    assert "osmosis eval submit" in browser.get("runs").text
    assert "osmosis train submit" in browser.get("runs?kind=training").text
    finished(platform_server, browser.account, "first-run", 1.0, 0.0)
    finished(platform_server, browser.account, "second-run", 1.0, 1.0)
    platform_server.add_run(
        account=browser.account,
        name="third-run",
        status="running",
        metrics={"overview": {"total_samples": 8, "completed_samples": 3, "passed": 2}},
    )
    page = browser.get("runs").text
    assert names_of(page) == ["third", "second", "first"]
    assert "3 of 8 rollouts done, 2 passed" in page
    assert "of the last 2 finished runs, the oldest first: 50.0%, 100.0%" in page
    assert "+50.0 points since the run before: may be chance" in page
    assert "9.5% to 90.5%" in page  # Agresti-Coull, one of two rows
    assert "-run</a>" not in browser.get("runs?kind=training").text
    assert "-run</a>" not in browser.get("runs?offset=50").text
    headers = browser.account.headers
    run = browser.client.get("/api/cli/eval-runs/third-run", headers=headers).json()["eval_run"]
    url = f"{platform_server.url}/w/{browser.account.workspace}/runs/third-run"
    assert run["platform_url"] == url
    assert "<h1>third-run" in browser.client.get(url).text


def test_the_list_is_filtered_searched_and_sorted(
    browser: Browser, platform_server: PlatformServer
):
    usual = {"rollout": "r", "entrypoint": "main.py", "model_path": "m", "dataset": "d"}
    scores = {"low": (0.0, 0.0, 0.0), "high": (1.0, 1.0, 1.0), "half": (1.0, 0.0, 1.0)}
    for name, rows in scores.items():
        changed = {"model_path": "big_one" if name == "half" else "m", "dataset": f"of-{name}"}
        sent = {"experiment_config": {**usual, **changed}}
        finished(platform_server, browser.account, f"{name}-run", *rows, submission=sent)
    sent = {"experiment_config": usual}
    platform_server.add_run(account=browser.account, name="new-run", submission=sent)
    for query, names in {
        "": "new half high low", "outcome=passed": "high", "outcome=failed&model=m": "low",
        "outcome=pending": "new", "by=nobody": "", "q=BIG_": "half", "q=g_o": "half", "q=%25": "",
        f"by={browser.account.user}&rollout=r&dataset=of-half": "half", "sort=pass":
        "low half high new", "sort=-pass": "high half low new", "sort=run": "half high low new",
        "q=run+of-": "half high low", "sort=no-column": "new half high low",
    }.items():  # fmt: skip
        assert names_of(browser.get(f"runs?{query}").text) == names.split(), query
    page = browser.get("runs?model=m&sort=-pass").text
    assert "<option selected>m</option>" in page
    assert 'aria-sort="descending"><a href="?model=m&amp;sort=pass">' in page
    config = browser.get("runs").text.partition('<h3><a href="')[2].partition('"')[0]
    assert names_of(browser.get(config.replace("&amp;", "&")).text) == ["half"]


def test_a_fall_is_coloured_only_where_it_is_shown(
    browser: Browser, platform_server: PlatformServer
):
    finished(platform_server, browser.account, "good-run", *[1.0] * 30)
    finished(platform_server, browser.account, "less-run", *[1.0] * 28, 0.0, 0.0)
    shown = "<small>-6.7 points since the run before: may be chance</small>"
    assert shown in browser.get("runs").text
    finished(platform_server, browser.account, "bad-run", *[0.0] * 30)
    assert '<small class="down">-93.3 points since the run before<' in browser.get("runs").text


def test_a_run_shows_its_figures_its_config_and_its_log_without_markup_of_others(
    browser: Browser, platform_server: PlatformServer
):
    run_id = platform_server.add_run(
        account=browser.account,
        name="red-run",
        status="failed",
        results={"error": NASTY, "commit_sha": "4f1c" * 10},
        interruptions=2,
        submission={
            "experiment_config": dict.fromkeys(
                ("rollout", "entrypoint", "model_path", "dataset", "branch"), NASTY
            ),
            "evaluation_config": {"limit": 7},
            "env_config": {"LEVEL": "the-value-of-a-variable"},
            "secrets": {"required": ["SOME_KEY"]},
        },
    )
    platform_server.add_log(run_id, f"{NASTY}\x1b[31m", level="error", step=NASTY[:30])
    for text in (browser.get("runs/red-run").text, browser.get("runs").text):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "\x1b" not in text
    page = browser.get(f"runs/{run_id}").text
    for shown in ("limit</dt><dd>7<", "LEVEL", "SOME_KEY", "<dd>2 times: ", "limit = 7"):
        assert shown in page
    repository = browser.account.repository
    commit = f'<a href="https://github.com/{repository}/commit/{"4f1c" * 10}" title="{"4f1c" * 10}"'
    assert commit in page
    assert "the-value-of-a-variable" not in page
    assert "Rows</h2>" not in page
    saved = browser.get("runs/red-run/log.txt")
    assert saved.headers["content-disposition"] == 'attachment; filename="red-run.log"'
    assert saved.headers["content-type"].startswith("text/plain")


def test_a_long_log_is_shown_from_its_end_in_pages_and_folded_by_step(
    browser: Browser, platform_server: PlatformServer
):
    run_id = platform_server.add_run(account=browser.account, name="long-run", status="stopped")
    with platform_server.database.writing() as session:
        lines = (LogLine(run_id=run_id, message=f"line {number}.") for number in range(205))
        session.add_all(lines)
    page = browser.get("runs/long-run").text
    assert "line 204." in page
    assert "line 4." not in page
    before = page.partition("?before=")[2].partition("#")[0]
    earlier = browser.get(f"runs/long-run?before={before}").text
    assert "line 4." in earlier
    assert "line 5." not in earlier
    assert "Earlier lines" not in earlier
    run_id = platform_server.add_run(account=browser.account, name="done-run", status="finished")
    for number, step in enumerate(["clone", "clone", "build", "run"]):
        more = {"level": "warning" if step == "build" else "info", "step": step}
        at = now() + timedelta(seconds=20 * number)
        platform_server.add_log(run_id, "a line", timestamp=at, **more)
    page = browser.get("runs/done-run").text
    steps = re.findall(r'<details data-step="(\w+)"( open)?>', page)
    assert steps == [("clone", ""), ("build", " open"), ("run", " open")]
    assert "<b>clone</b> <small>2 lines, 40 s</small>" in page
    assert "<b>run</b> <small>1 line</small>" in page


def test_a_report_is_a_document_in_a_sandbox_and_a_file_to_keep(
    browser: Browser, platform_server: PlatformServer
):
    run_id = finished(platform_server, browser.account, "good-run", 1.0, 0.0)
    report = browser.get("runs/good-run/report")
    policy = report.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "allow-same-origin" not in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert report.headers["x-frame-options"] == "DENY"
    assert "<script>alert" not in report.text
    assert "1 of 2" in report.text or "50" in report.text
    document = browser.get("runs/good-run/report.json")
    assert document.json() == run_of(platform_server, run_id).report
    assert "attachment" in document.headers["content-disposition"]
    assert "attachment" in browser.get("runs/good-run/report.html").headers["content-disposition"]
    platform_server.add_run(account=browser.account, name="bare-run")
    for file in ("report", "report.json", "report.html"):
        assert browser.get(f"runs/bare-run/{file}").status_code == 404
    platform_server.set_run(run_id, report={"schema_version": 1}, status="failed")
    assert browser.get("runs/good-run/report").status_code == 422
    assert "is not one that this version reads" in browser.get("runs/good-run").text


def test_the_rows_of_a_run_are_in_its_page_the_worst_first(
    browser: Browser, platform_server: PlatformServer
):
    scores: list[list[Any]] = [[1.0, 1.0], [0.0, 1.0], ["overloaded"] * 2, *[[1.0, 1.0]] * 60]
    run_id = finished(platform_server, browser.account, "rows-run", *scores)
    path = RunFolder.of_run(platform_server.settings.data, run_id).conversations
    path.parent.mkdir(parents=True)
    asked = [{"role": "user", "content": f"What is it? {NASTY}"}]
    line = {"suite": "x", "row_index": 1, "run_index": 0, "messages": asked, "ground_truth": "7up"}
    path.write_text(json.dumps(line) + "\n")

    def rows_of(query: str) -> list[int]:
        page = browser.get(f"runs/rows-run{query}").text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        return [int(index) for index in re.findall(r"<summary><code>row-(\d+)<", page)]

    assert rows_of("") == [2, 1, 0, *range(3, 50)]
    assert rows_of("?from=50") == [*range(50, 63)]
    assert rows_of("?rows=error") == rows_of("?find=OVERLOADED") == [2]
    assert rows_of("?rows=below") == rows_of("?find=7UP") == [1]
    assert rows_of("?rows=mixed") == [1]
    assert rows_of("?find=nothing+like+it") == []
    page = browser.get("runs/rows-run").text
    assert "1 of 2 runs passed" in page
    assert "What is it? &lt;script&gt;" in page
    assert 'report#row-1/run-0" target="_blank" rel="noopener"' in page
    assert page.count('<span class="badge bad">failed</span>') == 1  # one verdict
    assert "123 of 126 runs passed" in page
    platform_server.set_run(run_id, metrics={"overview": {"completed_samples": 50_001}})
    assert "Rows of more than 50,000 runs are only in" in browser.get("runs/rows-run").text


def test_rows_are_shown_while_they_come(browser: Browser, platform_server: PlatformServer):
    overview = {"total_samples": 8, "completed_samples": 5, "passed": 3}
    run_id = platform_server.add_run(
        account=browser.account, name="live-run", status="running", started_at=now(),
        metrics={"overview": overview, "rows": [[3, 0, 2], [1, 3, 3]], "remaining_s": 84.0},
    )  # fmt: skip
    page = browser.get("runs/live-run").text
    assert f'data-live="/w/{browser.account.workspace}/runs/live-run"' in page
    assert page.index("<code>row-3</code>") < page.index("<code>row-1</code>")
    assert '<span class="figure">3/3</span>' in page
    assert 'data-counts="84.0" data-by="-1">1 min 24 s<' in page
    assert 'data-every="15"' not in browser.get("runs").text
    ended = {"status": "finished", "completed_at": now() - timedelta(minutes=1)}
    platform_server.set_run(run_id, **ended)
    assert "data-live=" not in browser.get("runs/live-run").text
    assert 'data-every="15"' in browser.get("runs").text


def test_a_run_is_submitted_again_by_who_may(
    browser: Browser, viewer: Browser, platform_server: PlatformServer
):
    account = browser.account
    submission = {**body(evaluation_config={"limit": 2}), "secrets": {"required": ["A_KEY"]}}
    finished(platform_server, account, "old-run", 1.0, submission=submission)
    assert "Run again" not in viewer.get("runs/old-run").text
    assert viewer.post("runs/old-run/again").status_code == 403
    refused = browser.post("runs/old-run/again")
    assert (refused.status_code, "there is no secret A_KEY" in refused.text) == (422, True)
    platform_server.add_secret("A_KEY", account=account)
    page = browser.get(browser.post("runs/old-run/again").headers["location"]).text
    assert "Submitted again" in page
    run = run_of(platform_server, re.findall(r"<dt>id</dt><dd>(\w+)", page)[0])
    assert (run.submission, run.status, run.name != "old-run") == (submission, "pending", True)


def test_conversations_are_not_sent_line_by_line(
    browser: Browser, platform_server: PlatformServer, monkeypatch: pytest.MonkeyPatch
):
    run_id = finished(platform_server, browser.account, "empty-lines", 1.0)
    folder = RunFolder.of_run(platform_server.settings.data, run_id)
    folder.folder.parent.mkdir(exist_ok=True)
    folder.make()
    folder.conversations.write_bytes(b"\n" * 3_000_000)
    sent: list[int] = []
    send = StreamingResponse.stream_response

    async def counted(self: StreamingResponse, to: Send) -> None:
        async def one(message: Message) -> None:
            sent.append(len(message.get("body", b"")))
            await to(message)

        await send(self, one)

    monkeypatch.setattr(StreamingResponse, "stream_response", counted)
    path = "/api/cli/eval-runs/empty-lines/conversations"
    assert len(browser.client.get(path, headers=browser.account.headers).content) == 3_000_000
    assert sum(sent) == 3_000_000
    assert len(sent) < 10


def test_a_run_has_a_title_that_lists_show_and_search(
    browser: Browser, platform_server: PlatformServer
):
    run_id = platform_server.add_run(
        account=browser.account, name="red-run", status="running", results={"commit_sha": "4f1c"}
    )
    assert browser.post("runs/red-run/title", title=NASTY.partition("\n")[0][:100]).is_redirect
    assert "<script>alert" not in browser.get("runs").text + browser.get("runs/red-run").text
    assert browser.post("runs/red-run/title", title="Brief").is_redirect
    assert run_of(platform_server, run_id).results == {"commit_sha": "4f1c", "title": "Brief"}
    assert 'title="red-run">Brief</a>' in browser.get("runs?q=brief&sort=run").text
    assert "<h1>Brief" in browser.get("runs/red-run").text
    assert browser.post("runs/red-run/title", title="two\nlines").status_code == 422
    browser.post("runs/red-run/title", title=" ")
    assert "<h1>red-run" in browser.get("runs/red-run").text


def test_a_report_has_the_conversations_as_they_were_taken_and_is_there_without_them(
    browser: Browser, platform_server: PlatformServer, monkeypatch: pytest.MonkeyPatch
):
    messages = [{"role": "user", "content": "What is it? sk-0123456789abcdef"}]
    line = {"suite": "datasets/d.jsonl", "row_index": 1, "run_index": 0}
    line |= {"messages": messages, "ground_truth": "7"}
    written = {
        "whole-run": json.dumps({**line, "suite": "../datasets/d.jsonl"}) + "\n",
        "odd-run": "no line of a conversation\n",
        "link-run": None,
        "long-run": "one\n" + "sk-0123456789" * 10,
    }
    for name, text in written.items():
        run_id = finished(platform_server, browser.account, name, 1.0, 0.0)
        folder = RunFolder.of_run(platform_server.settings.data, run_id)
        folder.folder.parent.mkdir(exist_ok=True)
        folder.make()
        beside = folder.report.with_name("report.trajectories.jsonl")
        if text is None:
            beside.symlink_to(platform_server.settings.data / "secret.key")
        else:
            beside.write_text(text)
        if name == "long-run":
            monkeypatch.setattr(tail, "LINE", 100)
            monkeypatch.setattr(tail, "BLOCK", 10)
        outcome.take_conversations(folder, Redactor([Secret("sk-0123456789abcdef")]))
        assert beside.exists() == (text is None)
    document, odd, link, long = (browser.get(f"runs/{run}/report").text for run in written)
    assert all('id="conversations">' in text for text in (document, odd, link, long))
    assert "What is it? ***" in conversations_of(document)
    assert {conversations_of(odd), conversations_of(link), conversations_of(long)} == {""}

    def downloaded(name: str) -> httpx.Response:
        path = f"/api/cli/eval-runs/{name}/conversations"
        return browser.client.get(path, headers=browser.account.headers)

    answers = [*map(downloaded, written)]
    assert answers[0].headers["content-type"] == "application/x-ndjson"
    assert answers[0].json() == {
        **line,
        "messages": [{**messages[0], "content": "What is it? ***"}],
    }
    assert answers[1].text == "no line of a conversation\n"
    assert (answers[2].status_code, answers[2].json()["code"]) == (404, "no_conversations")
    assert "whole-run has" not in answers[2].text
    assert answers[3].text == "one\n"


def conversations_of(page: str) -> str:
    """Unpack the conversations of a report's page."""
    packed = page.partition('<script type="text/plain" id="conversations">')[2]
    parts = map(base64.b64decode, packed.partition("</script>")[0].split())
    return "".join(zlib.decompress(part).decode() for part in parts)


@pytest.mark.parametrize("kind", ["evaluation", "training"])
def test_a_run_is_stopped_once_and_then_deleted_by_who_may(
    browser: Browser, viewer: Browser, platform_server: PlatformServer, kind: str
):
    run_id = platform_server.add_run(kind, account=browser.account, name="a-run", status="running")
    stop, delete = "Stop this run", "Delete this run"

    def offered(to: Browser) -> tuple[bool, bool]:
        page = to.get("runs/a-run").text
        assert ("what the trainer has left" in page) == (delete in page and kind == "training")
        return stop in page, delete in page

    assert (offered(browser), offered(viewer)) == ((True, False), (False, False))
    for action in ("stop", "delete"):
        assert viewer.post(f"runs/a-run/{action}").status_code == 403
    refused = browser.post("runs/a-run/delete")
    assert (refused.status_code, "is running: stop it first" in refused.text) == (409, True)
    assert run_of(platform_server, run_id).status == "running"
    stopped = browser.post("runs/a-run/stop")
    assert (stopped.status_code, run_of(platform_server, run_id).status) == (303, "stopped")
    assert "What was finished is kept." in browser.get(stopped.headers["location"]).text
    platform_server.set_run(run_id, status="finished", completed_at=now())
    again = browser.post("runs/a-run/stop")
    assert (again.status_code, "has ended already" in again.text) == (409, True)
    assert (offered(browser), offered(viewer)) == ((False, True), (False, False))
    assert viewer.post("runs/a-run/delete").status_code == 403
    deleted = browser.post("runs/a-run/delete")
    more = "&kind=training" if kind == "training" else ""
    assert deleted.headers["location"].endswith(f"/runs?done=deleted{more}")
    assert "Deleted." in browser.get(deleted.headers["location"]).text
    assert browser.get("runs/a-run").status_code == 404


def test_odd_queries_are_no_failure_and_a_page_says_nothing_of_its_address(
    browser: Browser,
):
    for query in ("done=<b>hacked", "done=x", "kind=<b>hacked", "by=<b>hacked&offset=-1"):
        page = browser.get(f"runs?{query}").text
        assert "<b>hacked" not in page
        assert ("hacked" in page) == query.startswith("by")  # as a value of the filter
    for offset in ("-1", "9" * 30, "x", "٣"):
        assert browser.get(f"runs?offset={offset}").status_code == 200


def test_the_verdict_is_that_of_the_gates(browser: Browser, platform_server: PlatformServer):
    suite = suite_of([[1.0], [0.0], [1.0]])
    table = score_table_of(suite)
    gates = [evaluate(parse_gate(text), table) for text in ("mean >= 0.5", "errors == 0")]
    report = document_of(result_of(replace(suite, verdicts=tuple(gates))))
    platform_server.add_run(
        account=browser.account, name="gated-run", status="finished", started_at=now(),
        completed_at=now(), metrics=metrics_of(checked(report)), report=report,
    )  # fmt: skip
    page = browser.get("runs/gated-run").text
    assert '<span class="badge good">passed</span>\n</span></h1>' in page
    assert "2 of 2 gates passed" in page
    assert "<dt>Passed · not passed</dt>" in page
    assert '<span class="below">1</span>' in page and '<rect class="below"' in page
    assert "<code>mean &gt;= 0.5</code> <span>0.6667" in page
    finished(platform_server, browser.account, "plain-run", 1.0, 0.0)
    plain = browser.get("runs/plain-run").text
    assert '<span class="badge bad">failed</span>\n</span></h1>' in plain
    assert "1 of 2 runs passed" in plain
    assert "<dt>Passed · not passed</dt>" in plain


def test_two_runs_are_compared_row_by_row(browser: Browser, platform_server: PlatformServer):
    old = body(env_config={"LEVEL": "the-old-one"}, evaluation_config={"n": 1})
    new = body(env_config={"LEVEL": "the-new-one"})
    finished(platform_server, browser.account, "old-run", 1.0, 1.0, 0.0, 1.0, submission=old)
    finished(platform_server, browser.account, "new-run", 1.0, 0.0, 1.0, 0.0, submission=new)
    assert 'form="compare" name="run" value="old-run"' in browser.get("runs").text
    sides = [("Baseline", "old-run"), ("Current", "new-run")]
    for ticked in ("run=old-run&run=new-run", "run=new-run&run=old-run"):
        shown = browser.get(f"compare?{ticked}").text
        assert re.findall(r"<h2>(\w+): <a [^>]*>(.*)</a>", shown) == sides
    page = browser.get("compare?run=new-run&baseline=old-run").text
    assert "over 4 rows that both have" in page
    assert "Rows: 3 changed<" in page
    assert "<small>1/1 → 0/1</small>" in page
    assert 'report#row-1" target="_blank"' in page
    assert "variable LEVEL</th><td>one value</td><td>another value" in page
    assert "n</th><td>1</td><td>–" in page
    assert "the-old-one" not in page
    assert '<th scope="row">rollout' not in page  # the same on both sides
    assert ">-0.250<" in page
    assert "<script>alert" not in page
    assert "no difference" in browser.get("compare?run=new-run&baseline=new-run").text
    platform_server.add_run(account=browser.account, name="bare-run")
    for query, status in (
        ("run=new-run&baseline=bare-run", 404),
        ("run=new-run&baseline=unknown", 404),
        ("run=new-run", 422),
        ("run=old-run&run=new-run&run=old-run", 422),
        ("", 422),
    ):
        refused = browser.get(f"compare?{query}")
        message = "Tick two runs" in refused.text
        assert (refused.status_code, message) == (status, status == 422), query


def test_a_training_run_shows_its_log_and_no_figures_of_evaluations(
    browser: Browser, platform_server: PlatformServer
):
    run_id = platform_server.add_run("training", account=browser.account, name="train-run")
    platform_server.add_log(run_id, "the trainer has begun")
    assert "train-run</a>" in browser.get("runs?kind=training").text
    page = browser.get("runs/train-run").text
    assert "the trainer has begun" in page
    assert "Training run of" in page
    for absent in ("pass@1", "Rows</h2>", "Compare with"):
        assert absent not in page
