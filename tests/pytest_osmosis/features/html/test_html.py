"""The HTML report: one page that loads nothing and in which every text is only text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from osmosis_ai.messages import text_of
from osmosis_cli.eval.viewer.pages import beside
from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.features.breakdown.results import broken_down
from pytest_osmosis.features.html import page_assets
from pytest_osmosis.features.html import report as html
from pytest_osmosis.features.html.charts import charts_of
from pytest_osmosis.features.html.page_data import packed
from pytest_osmosis.reports.formats import no_sections
from pytest_osmosis.run_result import RolloutRecord, RunId
from pytest_osmosis.suite_results import EvalResult, RowData
from tests.pytest_osmosis.reports.test_gate_section import FAILED
from tests.support.made_results import EXACT, NASTY, info, result_of, suite_of
from tests.support.report_page import ReportPage, page_of


def rendered(*args, **kwargs) -> ReportPage:
    return ReportPage(html.render(*args, **kwargs))


def conversations(result: EvalResult, said: str = "What is it?", frames: str = ""):
    """Read a conversation of each run of a result."""
    runs = {run.run_id: run for suite in result.suites for row in suite.rows for run in row.runs}

    def read(run: RunId) -> RolloutRecord:
        messages = [{"role": "user", "content": said}, {"role": "assistant", "content": "391"}]
        return RolloutRecord(runs[run], frames, messages, "391", calls=[{"prompt_tokens": 3}])

    return read


def test_it_loads_nothing_and_runs_nothing_but_its_own_script():
    page = rendered(result_of(suite_of([[0.0, 1.0]])))
    links = [a["href"] for _, a in page.elements if "href" in a]
    assert links and all(link.startswith("#") for link in links if link)
    names = {name for _, attributes in page.elements for name in attributes}
    assert not names & {"src", "srcset", "action", "data", "poster", "style"}
    policy = next(a["content"] for tag, a in page.elements if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy and "connect-src" not in policy


def test_its_policy_names_its_script_and_its_style_by_their_digests():
    page = html.render(result_of(suite_of([[0.0, 1.0]])))
    for kind, pattern in (("script", r'<script type="module">(.*?)</script>'),
                          ("style", r"<style>(.*?)</style>")):  # fmt: skip
        [text] = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page


def test_every_file_of_the_page_is_in_it_and_no_name_is_there_twice():
    there = {path.name for path in page_assets.FOLDER.iterdir()}
    assert there == {"page.html", "figures.html", *page_assets.STYLES, *page_assets.MODULES}
    script = page_assets.script().text
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", script, re.MULTILINE)
    assert sorted(names) == sorted(set(names))


def test_text_of_models_is_only_text():
    usual = result_of(suite_of([[0.0]]))
    nasty = result_of(suite_of([[0.0]], answer=NASTY, name=NASTY))
    plain = rendered(usual, conversations=conversations(usual))
    found = rendered(nasty, conversations=conversations(nasty, NASTY))
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in plain.elements]
    assert not any(name.startswith("on") for _, a in found.elements for name in a)
    assert found.suites[0]["name"] == found.runs[0]["answer"] == NASTY
    assert found.read(0, 0)["messages"][0]["content"] == NASTY


def test_rows_have_their_question_truth_columns_and_runs():
    result = result_of(suite_of([[1.0, 0.5], ["503 from there", None]]))
    suite = result.suites[0]
    data = RowData("What is 17 * 23?", "391", {"level": 3, "kind": None})
    rows = (replace(suite.rows[0], data=data), suite.rows[1])
    page = rendered(replace(result, suites=(replace(suite, rows=rows),)))
    [found] = page.suites
    assert found["columns"] == ["level", "kind"]
    first, second = found["rows"]
    assert (first["question"], first["truth"], first["values"]) == (
        "What is 17 * 23?", "391", ["3", ""],
    )  # fmt: skip
    assert [run["outcome"] for run in first["runs"]] == ["passed", "below"]
    assert [run["error"] for run in second["runs"]] == ["503 from there"]
    assert "question" not in second


def test_the_summary_can_be_read_without_a_script():
    page = rendered(result_of(suite_of([[1.0], [0.0], ["503 from there"]])))
    for part in ("1 of 3 runs passed", "1 passed", "1 below", "1 error", "mean", EXACT,
                 "1 run without a score", "row-1"):  # fmt: skip
        assert part in page.text


def test_a_low_score_is_below_and_an_agents_error_is_its_own_outcome():
    suite = suite_of([[1.0], [0.0], [0.0], [0.0]])
    crashed = [
        replace(row.runs[0], success=False, scores={}, error="boom", error_type=error_type)
        for row, error_type in zip(suite.rows[2:], ("agent", "timeout"), strict=True)
    ]
    rows = (
        *suite.rows[:2],
        *(replace(row, runs=(run,)) for row, run in zip(suite.rows[2:], crashed, strict=True)),
    )
    gated = replace(suite, rows=rows, verdicts=(FAILED,))
    page = rendered(result_of(gated))
    outcomes = [run["outcome"] for row in page.suites[0]["rows"] for run in row["runs"]]
    assert outcomes == ["passed", "below", "raised", "timeout"]
    for part in ("1 passed", "1 below", "1 raised", "1 timeout"):
        assert part in page.text


def test_most_of_many_rows_that_changed_are_folded():
    before, after = (
        suite_of([*[[score] * 5] * 12, [1.0] * 4 + [1.0 - score]]) for score in (1.0, 0.0)
    )
    page = html.render(beside(result_of(before), result_of(after), "before.json"))
    shown, _, folded = page.partition("<details>")
    assert "8 more rows" in folded
    words = ["regressed</span>", "changed</span>"]  # what chance explains is last, and never open
    assert [[part.count(word) for word in words] for part in (shown, folded)] == [[5, 0], [7, 1]]


def test_what_has_no_room_is_left_out_and_the_page_says_so(monkeypatch, tmp_path):
    result = result_of(suite_of([[1.0], [0.0], [1.0]]))
    monkeypatch.setattr(html, "PAGE_SIZE", 0)
    html.write(result, tmp_path / "page.html", conversations=conversations(result))
    page = page_of(tmp_path / "page.html")
    assert "The conversations of 3 runs" in page.text
    assert page.conversations == []
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600  # its answers


def test_conversations_are_read_one_by_one_those_of_failed_runs_first(monkeypatch, tmp_path):
    result = result_of(suite_of([[1.0], [0.0], ["503"]]))
    html.write(result, tmp_path / "page.html", conversations=conversations(result))
    page = page_of(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
    assert [run["at"] for run in page.runs] == [[0, 2], [0, 1], [0, 0]]
    assert page.read(0, 0)["calls"] == [{"prompt_tokens": 3}]


def test_no_more_is_read_than_there_is_room_for():
    result = result_of(suite_of([[1.0]] * 200))
    runs = [row.runs[0] for row in result.suites[0].rows]
    read = []

    def conversation(run: RunId) -> RolloutRecord:
        read.append(run)
        return RolloutRecord(runs[run.row_index], messages=[{"role": "user", "content": "a"}])

    found = packed(runs, conversation, no_sections, room=10)
    assert (found.left_out, found.places, found.parts) == (200, {}, [])
    assert len(read) == 64


def test_frames_are_those_of_the_item_without_the_conversation():
    result = result_of(suite_of([["boom"]]))
    frames = "Traceback (most recent call last):\n  File 'agent.py'\nLookupError: drawer"
    printed = f"{frames}\n\n  user       What?\n\n  0 turns"
    sections = {RunId("data.jsonl", 0, 0): printed}
    page = rendered(result, sections.get, conversations(result, frames=frames))
    assert page.read(0, 0)["frames"] == frames
    page = rendered(result, sections.get, lambda run: None)
    assert page.read(0, 0)["frames"] == printed


def test_changes_against_a_baseline_stand_beside_each_other(baseline_page):
    [suite] = baseline_page.suites
    assert [suite[word] for word in ("regressed", "improved", "changed")] == [[1], [0], []]
    assert [run["answer"] for run in suite["rows"][0]["other"]] == ["391"] * 5
    for part in (
        "Rows: 1 regressed, 1 improved",
        "5/5 → 0/5, p of its runs 0.008",
        "Against the baseline",
    ):
        assert part in baseline_page.text


@pytest.fixture
def baseline_page() -> ReportPage:
    from pytest_osmosis.analysis.score_table import score_table_of
    from pytest_osmosis.features.comparison.baseline import baseline_of, compared

    before, now = suite_of([[0.0] * 5, [1.0] * 5]), suite_of([[1.0] * 5, [0.0] * 5])
    report = compared(now, score_table_of(now), baseline=baseline_of(before, "x"), confidence=0.95)
    return rendered(result_of(replace(now, sections={"baseline": report}, companion=before)))


def test_what_a_run_took_is_of_the_runs_that_say_it():
    quick, slow, silent = suite_of([[1.0, 1.0, 1.0]]).runs
    runs = [quick, replace(slow, duration_ms=1450), replace(silent, tokens=None)]
    text = rendered(result_of(aggregate(info(n=3), runs, selected=3))).text
    assert "368" in text and "184 a run" in text
    runs = runs[:2]
    text = rendered(result_of(aggregate(info(n=2), runs, selected=2))).text
    assert "0.95 s" in text and "longest 1.45 s" in text


def test_charts_say_in_words_what_they_show():
    [chart] = charts_of(suite_of([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]))
    assert chart.scores is None  # the table of figures says it
    [chart] = charts_of(suite_of([[1.0, 0.5, 1.0], [1.0, 1.0, 1.0]]))
    assert chart.scores is not None and chart.rows is not None and chart.curve is not None
    assert chart.scores.summary == "1 run at 0.5, 5 runs at 1"
    assert [bar.state for bar in chart.scores.bars] == ["below", "passed"]
    assert chart.rows.summary == "1 row passed 2 of 3 times, 1 row passed 3 of 3 times"
    assert [line.name for line in chart.curve.lines] == ["pass@k", "pass^k"]
    assert chart.curve.summary.startswith("pass@1 0.833")


def test_many_different_scores_are_put_into_bars_of_equal_width():
    [chart] = charts_of(suite_of([[number / 99] for number in range(100)]))
    assert chart.scores is not None and chart.rows is None and chart.curve is None
    assert [bar.count for bar in chart.scores.bars] == [5] * 20
    assert chart.scores.bars[0].label == "0" and chart.scores.bars[-1].label == "1"
    assert not charts_of(suite_of([["503"]]))
    assert charts_of(suite_of([[1.5e308, -1.5e308, *map(float, range(30))]]))


def test_rows_of_many_runs_share_bars_but_for_none_and_all_passed():
    scores = [[0.0] * 100, [1.0] * 100, [1.0] * 99 + [0.0], [1.0] * 2 + [0.0] * 98]
    [chart] = charts_of(suite_of(scores))
    assert chart.rows is not None
    assert chart.rows.summary == (
        "1 row passed 0 of 100 times, 1 row passed 1 .. 3 of 100 times, "
        "1 row passed 97 .. 99 of 100 times, 1 row passed 100 of 100 times"
    )
    assert sum(bar.count for bar in chart.rows.bars) == 4


def test_a_value_of_a_column_is_a_link_where_the_page_can_choose_its_rows():
    suite = suite_of([[1.0], [0.0], [0.0]])
    levels = ("a b", None, "c" * 500)
    data = [RowData("q", "391", {"level": level}) for level in levels]
    rows = tuple(replace(row, data=data[row.row_index]) for row in suite.rows)
    columns = ["level", "ground_truth"]
    suite = broken_down(replace(suite, rows=rows), columns, confidence=None)
    text = html.render(result_of(suite))
    assert "<h4>by ground_truth</h4>" in text
    links = re.findall(r'href="#runs\?suite=1&amp;by=(\w+)&amp;value=(.*?)"', text)
    assert [(name, value[:3]) for name, value in links] == [
        ("level", "a+b"), ("level", ""), ("level", "ccc"),
    ]  # fmt: skip


def test_it_says_where_it_ran_and_survives_half_characters(tmp_path: Path):
    environment = {
        "command_line": "pytest --osmosis-n 5", "versions": {"python": "3.11"},
        "platform": "Linux", "git": {"commit": "ab12", "dirty": True},
    }  # fmt: skip
    result = result_of(suite_of([[0.0]], answer="\ud800 \x1b[31m"), environment=environment)
    html.write(result, tmp_path / "page.html", no_sections, conversations(result, "\ud800 \x1b"))
    page = page_of(tmp_path / "page.html")
    assert "pytest --osmosis-n 5" in page.text
    assert "ab12 and changes" in page.text
    assert "\x1b" not in page.text
    assert json.dumps(page.read(0, 0)["messages"][0]["content"]) == json.dumps("\ud800 \x1b")
    assert text_of(page.runs[0]["answer"]) == "\ufffd \x1b[31m"
