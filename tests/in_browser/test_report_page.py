"""The HTML report as people use it: the example's, a large one, a comparison, a hostile one."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from osmosis_cli.eval.viewer.library import Library, key_of
from osmosis_cli.eval.viewer.pages import beside
from osmosis_cli.eval.viewer.server import Viewer
from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.features.breakdown.results import broken_down
from pytest_osmosis.features.comparison.baseline import compare_suites
from pytest_osmosis.features.html import report as html
from pytest_osmosis.run_result import RolloutRecord, RunId, RunResult
from pytest_osmosis.suite_results import EvalResult, RowData, SuiteResult
from tests.support.kept_evaluation import add, kept
from tests.support.made_results import EXACT, NASTY, info, result_of, suite_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "calculator"
PHONE = {"width": 375, "height": 800}
DESK = {"width": 1280, "height": 900}
CONTROLS = "a\x00b\x1b[31m\u202etxt.exe\u2066\U000e0041"
HOSTILE = f"{NASTY}</script></style></textarea><svg onload=alert(2)>{CONTROLS}<!--"


def with_rows(suite: SuiteResult, answer=None) -> SuiteResult:
    """The suite with questions, ground truths, two columns, and answers."""
    rows = []
    for row in suite.rows:
        i = row.row_index
        data = RowData(f"What is 17 * {i}?", str(17 * i), {"level": i % 3, "kind": "product"})
        runs = tuple(replace(run, answer=answer(i, run)) if answer else run for run in row.runs)
        rows.append(replace(row, data=data, runs=runs))
    return replace(suite, rows=tuple(rows))


def conversations(result: EvalResult, said=lambda run: "What is it?"):
    """Read a conversation with a tool call, made up for each run."""
    runs = {run.run_id: run for suite in result.suites for row in suite.rows for run in row.runs}

    def read(run: RunId) -> RolloutRecord:
        call = {"function": {"name": "multiply", "arguments": f'{{"a": 17, "b": {run.row_index}}}'}}
        messages = [
            {"role": "user", "content": said(run)},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": '{"product": 391}'},
            {"role": "assistant", "content": runs[run].answer},
        ]
        return RolloutRecord(runs[run], "", messages, calls=[{"prompt_tokens": 31}] * 2)

    return read


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the example, as a session writes it."""
    folder = tmp_path_factory.mktemp("example") / "calculator"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".osmosis", "__pycache__"))
    words = (
        "--osmosis-agent=server:agent_loop --osmosis-data=test_data.jsonl "
        "--osmosis-eval-fn=rewards:compute_reward --n=5 --batch-size=16 --osmosis-model=embedded "
        "--osmosis-html=report.html -q -n0 -p no:cacheprovider"
    )
    command = [sys.executable, "-m", "pytest", *words.split(), "--osmosis-gate=pass@5 >= 0.9"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return (folder / "report.html").as_uri()


def ready(page):
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def names(page) -> list[str]:
    """The rows of the table, in their order."""
    return page.locator("#body tr:not(.gap) th a").all_inner_texts()


def count(page) -> str:
    return page.inner_text("#count")


def test_the_examples_page_can_be_sorted_filtered_and_read(example, open_page):
    page = ready(open_page(example, viewport=DESK))
    assert "1 of 1 gate passed" in page.inner_text("h1")
    assert page.inner_text(".outcomes .value") == "91 passed 9 below"
    assert page.locator("svg[role=img], svg[role=group]").count() == 2  # no scores: they are 0 or 1
    assert names(page)[:3] == ["row-19", "row-15", "row-3"]  # the worst first
    assert (len(names(page)), names(page)[-1]) == (20, "row-17")
    assert page.evaluate("document.querySelector('#runs').offsetTop") < 250

    page.click("text=6 of 20 rows mixed")
    page.wait_for_function("document.querySelector('#outcome').value === 'mixed'")
    assert count(page) == "30 of 100 runs, 6 of 20 rows"
    page.select_option("#outcome", "")

    head = page.locator("[data-sort='score:rewards:compute_reward']")
    head.click()
    assert names(page)[0] == "row-19"
    assert page.locator("[aria-sort=ascending]").count() == 1
    head.click()
    assert names(page)[-1] == "row-19"

    page.select_option("#outcome", "below")
    assert count(page) == "9 of 100 runs, 6 of 20 rows"
    page.fill("#words", "144 divide")
    assert names(page) == ["row-3[run-1]"]
    page.fill("#words", "no such text")
    assert page.locator("#none").is_visible()
    page.fill("#words", "")

    page.click("#body a:text-is('row-3[run-1]')")
    page.wait_for_selector(".messages")
    detail = page.inner_text("#detail")
    for part in ("row-3[run-1]", "Divide 144 by 12.", "→ divide", '"a": 144', "Ground truth", "12",
                 "The result is 2.", "test_data.jsonl::row-3[run-1]"):  # fmt: skip
        assert part in detail, part
    query = "?outcome=below&sort=score%3Arewards%3Acompute_reward&down=yes"
    assert page.url.endswith(f"#row-3/run-1{query}")
    page.click("#detail a:text-is('run-0')")
    page.wait_for_selector("#detail-title:has-text('row-3[run-0]')")
    held = "[...CSS.highlights.get('held')].map(String)"
    assert page.evaluate(held) == ["12"]  # the ground truth, found in the answer


def test_a_link_opens_its_run_and_the_keyboard_goes_on_from_there(example, open_page):
    page = ready(open_page(f"{example}#row-12/run-3?sort=row", viewport=DESK))
    shown = page.locator("#detail-title")
    page.wait_for_selector("#detail .messages")
    assert shown.inner_text().endswith("row-12[run-3]")
    for key, name in (("j", "row-12[run-4]"), ("j", "row-13[run-0]"), ("k", "row-12[run-4]"),
                      ("J", "row-13[run-0]"), ("K", "row-12[run-1]")):  # fmt: skip
        page.keyboard.press(key)
        assert shown.inner_text().endswith(name), key
    page.keyboard.press("Escape")
    assert not page.locator("#detail").is_visible()
    assert page.evaluate("document.activeElement.textContent") == "row-12"
    page.keyboard.press("/")
    page.keyboard.type("1250")
    assert names(page) == ["row-17"]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "row-17"
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    assert (page.input_value("#words"), count(page)) == ("", "100 of 100 runs, 20 of 20 rows")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.wait_for_selector("#help", state="hidden")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert ready(page).evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("location.hash = '#row-2/run-4'")
    page.wait_for_selector("#detail-title:has-text('row-2[run-4]')")
    page.evaluate("location.hash = '#row-99/run-4'")
    page.wait_for_selector("#missing:has-text('no run row-99/run-4')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    example, open_page, violations, scheme
):
    page = ready(open_page(example, viewport=DESK, color_scheme=scheme))
    page.click("#breakdown > summary")
    assert flaws(page, violations) == [0, 0]
    page.click("#body a:text-is('row-19')")
    page.wait_for_selector(".messages")
    assert flaws(page, violations) == [0, 0]


def test_without_a_script_the_summary_can_be_read(example, open_page):
    page = open_page(example, java_script_enabled=False)
    text = page.inner_text("body")
    for part in ("1 of 1 gate passed", "pass@5 >= 0.9", "0.910", "row-19", "need JavaScript"):
        assert part in text, part
    assert not page.locator("#tools").is_visible()


def test_a_browser_without_decompression_names_those_that_show_the_rows(example, open_page):
    page = ready(open_page(example))
    assert not page.locator("#older").is_visible()
    page.add_init_script("delete window.DecompressionStream")
    page.reload()
    page.wait_for_selector("#older")
    text = page.inner_text("body")
    for part in ("1 of 1 gate passed", "pass@5 >= 0.9", "need a newer browser", "Safari 16.4"):
        assert part in text, part
    assert not page.locator("#tools").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")


def test_all_rows_are_there_on_paper(example, open_page):
    page = ready(open_page(example, viewport=PHONE))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert len(names(page)) == 20
    assert not page.locator("#tools").is_visible()


def test_ten_thousand_runs_are_quick(tmp_path, open_page):
    dice = random.Random(7)
    words = [f"w{number:05}" for number in range(20_000)]
    scores = [[float(dice.random() < 0.7) for _ in range(5)] for _ in range(2_000)]
    suite = with_rows(suite_of(scores), lambda row, run: " ".join(dice.choices(words, k=30)))
    result = result_of(suite)
    read = conversations(result, lambda run: " ".join(dice.choices(words, k=30)))
    path = tmp_path / "page.html"
    started = time.perf_counter()
    html.write(result, path, conversations=read)
    times = {"write_s": round(time.perf_counter() - started, 2)}
    times["size_mb"] = round(path.stat().st_size / 1e6, 1)
    assert path.stat().st_size < 15_000_000

    page = ready(open_page(f"{path.as_uri()}#runs?sort=row", viewport=DESK))
    times["open_ms"] = round(page.evaluate("performance.now()"))
    assert count(page) == "10,000 of 10,000 runs, 2000 of 2000 rows"
    assert len(names(page)) < 80
    filtered = """(text) => {
        const started = performance.now();
        const words = document.getElementById("words");
        words.value = text;
        words.dispatchEvent(new Event("input", { bubbles: true }));
        document.getElementById("scroll").getBoundingClientRect();
        return performance.now() - started;
    }"""
    times["filter_ms"] = [round(page.evaluate(filtered, text)) for text in ("w012", "17 * 199", "")]
    page.evaluate(filtered, "multiply")  # a tool: it stands in conversations alone
    assert count(page).startswith("0 of ")
    asked = page.evaluate("performance.now()")
    page.check("#said")
    page.wait_for_selector("#count:has-text('10,000 of 10,000')")
    times["read_ms"] = round(page.evaluate("performance.now()") - asked)
    times["search_ms"] = [round(page.evaluate(filtered, text)) for text in ("w012", "zz", "")]
    page.evaluate("(scroll => scroll.scrollTo(0, scroll.scrollHeight))(document.all.scroll)")
    page.wait_for_selector("#body a:text-is('row-1999')")
    page.click("#body a:text-is('row-1999')")
    page.wait_for_selector(".messages")
    assert page.inner_text("#detail .call .json") == '{ "a": 17, "b": 1999 }'
    print(f"\n10,000 runs: {times}")

    page.set_viewport_size(PHONE)  # where columns are hidden, the question has their room
    assert page.evaluate("document.querySelector('#body td.long').offsetWidth") > 120
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#body tr:not(.gap)").count() == 2_000
    assert page.locator("#detail").is_visible()


def test_a_comparison_shows_what_regressed_with_both_answers(tmp_path, open_page, violations):
    def answered(wrong: int):
        return lambda row, run: f"17 times {row} is {17 * row + 10 * (row == wrong)} today."

    before = with_rows(suite_of([[1.0] * 5, [0.0] * 5, [1.0] * 5]), answered(1))
    after = with_rows(suite_of([[0.0] * 5, [1.0] * 5, [1.0] * 5]), answered(0))
    path = tmp_path / "page.html"
    html.write(beside(result_of(before), result_of(after), "before.json"), path)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    assert page.locator("#more del").all_text_contents() == ["0", "27"]
    assert page.locator("#more ins").all_text_contents() == ["10", "17"]
    assert names(page) == ["row-0", "row-2", "row-1"]  # what regressed first
    cells = [
        line.locator("td").all_inner_texts() for line in page.locator("#body tr:not(.gap)").all()
    ]
    assert [each[:1] + each[2:5] for each in cells] == [
        ["regressed", "1", "0", "-1"],
        ["", "1", "1", "0"],
        ["improved", "0", "1", "+1"],
    ]
    page.select_option("#outcome", "regressed")
    assert names(page) == ["row-0"]
    page.select_option("#outcome", "improved")
    assert names(page) == ["row-1"]
    page.select_option("#outcome", "")
    page.click("#body a:text-is('row-0')")
    page.wait_for_selector("#detail-title")
    text = page.inner_text("#detail")
    assert "Baseline passed 1" in text and "Current below 0" in text
    assert page.locator("#detail .pair del").last.inner_text() == "0"
    page.select_option("#detail .with select", label="run-3: below")
    assert "run-3 below 0" in page.inner_text("#detail")
    assert violations(page) == []


def test_both_answers_are_rendered_with_what_they_called_and_their_difference(
    tmp_path, open_page, violations
):
    def answered(euros: int, says: str):
        return lambda row, run: (
            f'{{"total": {euros}, "note": "{says}"}}' if row else f"# Total\n\n- **{euros}** euros"
        )

    rows = [[1.0] * 5] * 2
    before = with_rows(suite_of(rows), answered(17, "long " * 20))
    after = with_rows(suite_of([[0.0] * 5] * 2), answered(27, "long " * 20))
    called = {(row, run): (f"look_up({run})",) for row in (0, 1) for run in range(5)}
    report = compare_suites(after, before, "before.json", tools_of=lambda rows: called)
    html.write(
        result_of(replace(after, sections={"baseline": report})), path := tmp_path / "a.html"
    )
    page = ready(open_page(f"{path.as_uri()}#row-0/run-2", viewport=DESK))
    assert page.locator("#detail .part:has(h4:text-is('Question')) .text").inner_text()
    assert page.locator(".pair .rendered strong").all_inner_texts() == ["17", "27"]
    assert page.inner_text(".pair .calls") == "→ look_up(2)"
    differs = "[...CSS.highlights.get('differs')].map(String)"
    assert set(page.evaluate(differs)) == {"17", "27"}
    assert violations(page) == []
    page.click("button:text-is('Raw')")
    assert page.locator("#detail .pair .answer").last.inner_text() == "# Total\n\n- **27** euros"
    assert page.locator("#detail .pair ins").all_inner_texts() == ["27"]
    page.click("button:text-is('Raw')")
    page.evaluate("location.hash = '#row-1/run-0'")
    page.wait_for_selector(".pair .tree")
    assert page.locator(".pair .digits").all_inner_texts() == ["17", "27"]
    assert set(page.evaluate(differs)) == {"17", "27"}


def test_candidates_are_cells_a_row_that_can_be_sorted(tmp_path, open_page, violations):
    alike = [[1.0, 1.0]] * 9
    one = with_rows(suite_of([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], *alike]))
    other = with_rows(suite_of([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], *alike], name="data.jsonl (b)"))
    other = replace(other, info=replace(other.info, leader=one.info.name, label="b"))
    html.write(result_of(one, other), path := tmp_path / "page.html")
    page = ready(open_page(path.as_uri(), viewport=DESK))
    lines = page.locator("#cells tbody tr")
    asked = "What is 17 * {}?"
    cells = lines.first.locator("th, td")
    assert cells.all_inner_texts() == ["row-2", asked.format(2), "0/2", "2/2", "1.00"]
    assert lines.count() == 10
    page.click("text=2 more rows")
    assert lines.count() == 12
    page.click("#cells th button:has-text('row')")
    assert cells.all_inner_texts() == ["row-0", asked.format(0), "2/2", "1/2", "0.50"]
    page.click("#cells a >> nth=1")
    page.wait_for_selector("#detail-title")
    assert "#2/row-0" in page.url and violations(page) == []


def test_columns_and_eval_functions_are_filters_too(tmp_path, open_page):
    suite = with_rows(suite_of([[float(row % 4 > 0)] for row in range(12)]))
    path = tmp_path / "page.html"
    html.write(result_of(suite, with_rows(suite_of([[1.0]], name="other.jsonl"))), path)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    page.select_option("#column", label="level")
    page.select_option("#value", label="1")
    assert names(page) == ["row-4", "row-1", "row-7", "row-10"]
    page.select_option("#outcome", "below")
    assert names(page) == ["row-4"]
    page.select_option("#suite", label="other.jsonl")
    page.select_option("#outcome", "")
    assert names(page) == ["row-0"]
    page.click("#body a")
    assert page.url.endswith("#2/row-0/run-0")


def test_what_is_chosen_is_in_the_address_and_bars_choose(tmp_path, open_page, violations):
    suite = with_rows(suite_of([[0.1, 0.2, 1.0], [1.0, 1.0, 1.0], [0.9, 0.1, 0.1]]))
    asked = {"temperature": 0.7, "seed": 11, "max_turns": 10, "map": ["a=id", "b=user_prompt"]}
    suite = replace(suite, info=replace(suite.info, settings=asked))
    path = tmp_path / "page.html"
    html.write(result_of(broken_down(suite, ["level"], confidence=None)), path)
    page = ready(open_page(f"{path.as_uri()}#runs?outcome=below&by=level&value=2", viewport=DESK))
    assert (names(page), count(page)) == (["row-2"], "3 of 9 runs, 1 of 3 rows")
    assert page.input_value("#outcome") == "below"
    page.goto(f"{path.as_uri()}#more")
    page.reload()
    ready(page).click(".chart a[aria-label='0.1: 3 runs']")
    assert (names(page), count(page)) == (["row-0[run-0]", "row-2"], "3 of 9 runs, 2 of 3 rows")
    assert violations(page) == []
    page.click("#chips button")
    assert count(page) == "9 of 9 runs, 3 of 3 rows"
    page.click("#breakdown .figures a code:text-is('1')")
    assert names(page) == ["row-1"]
    page.click(".chart a[aria-label='0: 1 row']")
    assert names(page) == ["row-2"]
    page.click(".outcomes a:has-text('passed')")
    assert names(page) == ["row-0[run-2]", "row-1"]
    page.click("[data-sort=question]")
    page.click("#body a:text-is('row-1')")
    page.wait_for_url("**#row-1/run-0?outcome=passed&sort=question")
    page.reload()
    ready(page)
    assert page.input_value("#outcome") == "passed"
    assert (
        page.locator("[data-sort=question]").locator("..").get_attribute("aria-sort") == "ascending"
    )
    again = page.locator(".node code").all_inner_texts()
    assert again[0].startswith("osmosis eval -m ") and "--rows 1 --n 1" in again[0]
    assert "--temperature 0.7 --seed 11 --map a=id --map b=user_prompt" in again[0]
    assert again[1] == "pytest 'data.jsonl::row-1[run-0]'"


def test_the_question_keeps_half_of_the_width_beside_three_functions(tmp_path, open_page):
    suite = with_rows(suite_of([[0.5], [1.0]]), lambda row, run: "An answer. " * 20)
    [function] = suite.functions
    names = ("rewards:right_total", "rewards:formatted", "rewards:polite")
    functions = tuple(replace(function, name=name) for name in names)
    path = tmp_path / "page.html"
    html.write(result_of(replace(suite, functions=functions)), path)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    width = "document.querySelector('{}').offsetWidth"
    question = page.evaluate(width.format("#body td.long"))
    assert question >= page.evaluate(width.format("#table")) / 2


def test_frames_of_a_traceback_open_in_the_editor_that_is_chosen(tmp_path, open_page):
    result = result_of(suite_of([["boom"]]))
    frames = 'Traceback:\n  File "/srv/a b/agent.py", line 9, in loop\n    raise KeyError'
    path = tmp_path / "page.html"
    html.write(result, path, {RunId("data.jsonl", 0, 0): frames}.get, lambda run: None)
    page = ready(open_page(f"{path.as_uri()}#row-0/run-0", viewport=DESK))
    link = page.locator(".traceback a")
    assert link.get_attribute("href") == "vscode://file/srv/a%20b/agent.py:9"
    assert page.inner_text(".traceback") == frames
    page.click("#keys")
    page.select_option("#editor", "pycharm")
    page.reload()
    page.wait_for_selector(".traceback")
    assert link.get_attribute("href") == "pycharm://open?file=/srv/a%20b/agent.py&line=9"


def test_figures_of_a_row_are_of_all_its_runs_whatever_is_chosen(tmp_path, open_page):
    suite = with_rows(suite_of([[1.0, 0.0, "busy", "busy"], [1.0, 1.0, "busy", "busy"]]))
    unanswered = {"tokens": 0, "llm_calls": 0, "cost_usd": None}
    rows = [
        replace(row, runs=(*row.runs[:2], *(replace(run, **unanswered) for run in row.runs[2:])))
        for row in suite.rows
    ]
    path = tmp_path / "page.html"
    html.write(result_of(replace(suite, rows=tuple(rows))), path)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    spent = [["92", "0.45 s", "$0.0005"]] * 2
    for outcome in ("", "error"):
        page.select_option("#outcome", outcome)
        page.click("[data-sort='passed']")
        lines = page.locator("#body tr:not(.gap)")
        cells = [line.locator("td").all_inner_texts() for line in lines.all()]
        assert [each[-3:] for each in cells] == spent
        assert {each[0]: each[1] for each in cells} == {"1/4": "0.5", "2/4": "1"}
        assert names(page) == (["row-1", "row-0"] if not outcome else ["row-0", "row-1"])


def test_a_cost_that_is_not_0_does_not_read_as_0(tmp_path, open_page):
    suite = suite_of([[1.0], [1.0], [1.0]])
    rows = [
        replace(row, runs=(replace(row.runs[0], cost_usd=cost),))
        for row, cost in zip(suite.rows, (0.0, 2e-5, 7e-5), strict=True)
    ]
    path = tmp_path / "page.html"
    html.write(result_of(replace(suite, rows=tuple(rows))), path)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    costs = page.locator("#body tr:not(.gap) td:last-child").all_inner_texts()
    assert costs == ["$0.0000", "<$0.0001", "$0.0001"]


def test_a_score_is_shown_with_the_digits_that_tell_it(tmp_path, open_page):
    path = tmp_path / "page.html"
    html.write(result_of(suite_of([[0.99996], [12345.678], [0.1 + 0.2]])), path)
    page = ready(open_page(f"{path.as_uri()}#runs?sort=row", viewport=DESK))
    assert page.locator("#body td.score").all_inner_texts() == ["1", "12,346", "0.3"]
    for row, score in enumerate(["0.99996", "12345.678", "0.3"]):
        page.click(f"#body a:text-is('row-{row}')")
        page.wait_for_selector(f"#detail-title:has-text('row-{row}')")
        assert page.inner_text("#detail .scores td.num") == score


def test_a_recorded_score_passes_and_fails_where_it_has_a_threshold(tmp_path, open_page):
    run, *others = suite_of([[1.0, 1.0, 1.0]]).runs
    scores = {EXACT: 1.0, "turns": 3.0, "ok": 0.0}
    runs = [replace(run, scores=scores, thresholds={"ok": 0.5}), *others]
    path = tmp_path / "page.html"
    html.write(result_of(aggregate(info(n=3), runs, selected=3)), path)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    for function, found in (("turns", "0000"), ("ok", "0101"), (EXACT, "3000")):
        page.select_option("#function", function)
        for outcome, runs in zip(("passed", "below", "error", "not passed"), found, strict=True):
            page.select_option("#outcome", outcome)
            assert count(page).startswith(f"{runs} of 3 runs"), (function, outcome)


def test_an_agent_that_raised_is_found_apart_from_a_wrong_answer(tmp_path, open_page):
    suite = suite_of([[1.0], [0.0], [0.0]])
    crashed = replace(suite.rows[2].runs[0], scores={}, error="boom", error_type="agent")
    rows = (*suite.rows[:2], replace(suite.rows[2], runs=(crashed,)))
    path = tmp_path / "page.html"
    html.write(result_of(replace(suite, rows=rows)), path)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    for outcome, name in (("below", "row-1"), ("raised", "row-2")):
        page.select_option("#outcome", outcome)
        assert names(page) == [name]
    assert page.locator("#body .state").inner_text() == "✕ raised"


def test_hostile_text_of_models_does_nothing(tmp_path, open_page, violations):
    line = "x" * 1_000_000
    suite = with_rows(suite_of([[0.0], [1.0]], name=HOSTILE), lambda row, run: HOSTILE)
    rows = [replace(row, row_id=HOSTILE) for row in suite.rows[:1]] + list(suite.rows[1:])
    rows[0] = replace(rows[0], data=RowData(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}))
    result = result_of(replace(suite, rows=tuple(rows)))
    path = tmp_path / "page.html"
    said = conversations(result, lambda run: HOSTILE if run.row_index == 0 else line)
    html.write(result, path, conversations=said)
    page = ready(open_page(path.as_uri(), viewport=DESK))
    page.click("#body tr:nth-child(2) a")
    page.wait_for_selector(".messages")
    text = page.inner_text("#detail")
    assert "</script></style>" in text and "<img src=x onerror=alert(1)>" in text
    assert r"a\x00b\x1b[31m\u202etxt.exe\u2066\U000e0041" in text
    assert not re.search("[\x00\x1b\u202e\u2066\U000e0041]", page.content())
    assert (
        page.locator("img, iframe, object, svg[onload], a[href*=':']:not([href^='http'])").count()
        == 0
    )
    assert page.locator("script").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
    assert violations(page) == []
    page.keyboard.press("j")
    page.wait_for_selector("#detail button:has-text('Show all')")
    page.click("#detail button:has-text('Show all')")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


XSS = Path(__file__).with_name("xss.txt").read_text("utf-8").splitlines()
"""One hostile text a line, most of the XSS Filter Evasion Cheat Sheet of OWASP."""
ATTRIBUTES = [
    *("class", "href", "title", "rel", "target", "tabindex", "role"),
    *("aria-label", "aria-expanded", "dir", "open", "start", "type"),
]


def chat(tmp_path: Path, messages: list[dict[str, object]], truth: str = "7") -> str:
    """The page of one run with these messages."""
    suite = suite_of([[0.0]], answer=str(messages[-1]["content"]))
    row = replace(suite.rows[0], data=RowData("How many?", truth, {}))
    result = result_of(replace(suite, rows=(row,)))
    path = tmp_path / "page.html"
    html.write(result, path, conversations=lambda run: RolloutRecord(row.runs[0], "", messages))
    return f"{path.as_uri()}#row-0/run-0"


def test_hostile_text_is_text_where_conversations_are_rendered(tmp_path, open_page, violations):
    assert len(XSS) >= 100
    wraps = ("{}", "# {}", "- {}", "> {}", "**{}**", "[a]({})", "![{}](https://x.example)",
             "<{}>", "| a |\n|--|\n| {} |", "```html\n{}\n```", "`{}`")  # fmt: skip
    said = [{"role": "assistant", "content": wrap.format(text)} for text in XSS for wrap in wraps]
    said += [{"role": "tool", "content": json.dumps({text: [text] * 30})} for text in XSS]
    page = ready(open_page(chat(tmp_path, said), viewport=DESK))
    page.wait_for_selector(".messages")
    page.click("button:has-text('Expand all')")
    bad = page.evaluate(
        """(known) => [...document.querySelectorAll(".messages *")].flatMap(each => [
          ...(/^(A|BLOCKQUOTE|BUTTON|CODE|DETAILS|DIV|EM|HR|LI|OL|P|PRE|S|SPAN|STRONG|SUMMARY|TABLE|TBODY|TD|TH|THEAD|TR|UL)$/
            .test(each.tagName) ? [] : [each.tagName]),
          ...[...each.attributes].map(one => one.name).filter(name => !known.includes(name)),
          ...(each.tagName === "A" && !(/^https?:[/][/]/.test(each.getAttribute("href"))
            && each.rel.includes("noopener") && !each.href.includes("@")) ? [each.outerHTML] : []),
        ])""",
        ATTRIBUTES,
    )
    assert bad == []
    assert page.locator(".messages a").count() > 0
    shown = page.locator(".messages").inner_text()
    for text in ("<svg/onload=alert('XSS')>", "<img onerror=alert(1) src=1>"):
        assert shown.count(text) >= len(wraps) - 2, text
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
    page.click("button:has-text('Raw')")
    assert XSS[0] in page.inner_text(".messages")


MARKDOWN = """# Orders

Two are **open**, one is *lost* and `A_3` is ~~gone~~; 2*3*4 and snake_case_name stay.
See [the list](https://x.example/a_(b)) or https://x.example/c.

| order | total |
|:--|--:|
| A1 | 7.50 |

1. first
   - inner

2. second

> quoted

```python
# all of them
return "x" * 2
```
"""


def test_conversations_are_rendered_or_raw_as_the_address_says(tmp_path, open_page, violations):
    answer = {"total": 7.50, "orders": [{"id": f"A{i}", "note": "long " * 20} for i in range(9)]}
    log = "\n".join(f"line {number}" for number in range(40))
    call = {
        "function": {"name": "find", "arguments": '{"price": 7.50, "id": 12345678901234567890}'}
    }
    said = [
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": json.dumps(answer)},
        {"role": "tool", "content": log},
        {"role": "assistant", "content": MARKDOWN},
    ]
    page = ready(open_page(chat(tmp_path, said), viewport=DESK))
    page.wait_for_selector(".messages")
    assert page.locator(".message").last.inner_text().endswith("the answer above")
    shown = page.locator(".compared .rendered")
    for tag, text in (("strong", "open"), ("em", "lost"), ("s", "gone"), ("td.num", "7.50"),
                      ("ol > li > ul > li", "inner"), ("blockquote", "quoted"),
                      (".comment", "# all of them"), (".string", '"x"'),
                      (".level-1", "Orders")):  # fmt: skip
        assert shown.locator(tag).inner_text() == text, tag
    assert shown.locator("ol > li").count() == 2
    links = [each.get_attribute("href") for each in shown.locator("a").all()]
    assert links == ["https://x.example/a_(b)", "https://x.example/c"]
    assert "2*3*4 and snake_case_name" in shown.inner_text()
    assert page.inner_text(".call .json") == '{ "price": 7.50, "id": 12345678901234567890 }'
    assert page.locator("#detail").inner_text().count("How many?") == 1
    assert page.locator(".who + .soft").all_inner_texts() == ["turn 1", "turn 2"]

    text = page.inner_text(".messages")
    assert "line 2" in text and "line 3" not in text
    page.click("button:has-text('Show all 40 lines')")
    assert "line 39" in page.inner_text(".messages")
    page.click(".tree summary")
    page.wait_for_selector(".leaf")
    assert '"total": 7.5' in page.inner_text(".tree")
    page.click("button:has-text('Expand all')")
    assert page.locator(".tree:not([open])").count() == 0
    assert violations(page) == []

    page.fill(".within", "snake_case")
    assert page.locator(".message:visible").count() == 1
    assert page.inner_text(".reading output") == "1 of 5 messages"
    page.fill(".within", "")
    page.click("button:has-text('Raw')")
    assert "Two are **open**" in page.inner_text(".compared .own")
    assert page.url.endswith("#row-0/run-0?raw=yes")
    page.reload()
    ready(page).wait_for_selector(".messages")
    assert "Two are **open**" in page.inner_text(".compared .own")


@pytest.fixture
def viewer(tmp_path: Path):
    """A viewer of an evaluation that is kept, with one run that passed."""
    folder = kept(tmp_path / ".osmosis" / "runs", "d-m", done=0, started=1.7e9)
    add(folder, RunResult("d.jsonl", 0, 0, success=True, scores={"r:f": 1.0}, passed=True))
    with Viewer(Library(tmp_path), tmp_path) as viewer:
        yield viewer


def flaws(page, violations) -> list[object]:
    """By how much it is wider than a telephone and a desk, then what axe finds on either."""
    wider, found = [], []
    for size in (PHONE, DESK):
        page.set_viewport_size(size)
        wider.append(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
        found += violations(page)
    return [*wider, *found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_comparison_and_the_list_are_read_by_all(tmp_path, viewer, open_page, violations, scheme):
    runs = tmp_path / ".osmosis" / "runs"
    folder = kept(runs, "d-m@20200101-000000", done=0, started=1.5e9)
    add(
        folder, *(RunResult("d.jsonl", row, 0, success=True, scores={"r:f": 0.0}) for row in (0, 1))
    )
    page = open_page(viewer.url, viewport=DESK, color_scheme=scheme)
    assert page.locator(".trend text").all_text_contents() == ["1", "0"]
    assert flaws(page, violations) == [0, 0]
    page.click("text=Compare")
    ready(page).wait_for_selector("#body td.verdict, #body td.score", state="attached")
    heading = "d-m: 2023-11-14 22:13 against 2017-07-14 02:40"
    assert heading in page.inner_text("h1") and page.title().startswith(heading)
    page.click("#body a")
    page.wait_for_selector(".judgement")
    assert "Baseline below 0" in page.inner_text("#detail")
    assert flaws(page, violations) == [0, 0]


def test_people_mark_runs_and_evaluations(tmp_path, viewer, open_page, violations):
    page = open_page(viewer.url, viewport=PHONE)
    boxes = "[...document.querySelectorAll('{}')].map(each => each.getBoundingClientRect().left)"
    [figure], [name] = (
        page.evaluate(boxes.format(f"tbody {each}")) for each in (".figure", "tr:last-child th")
    )
    assert figure < name
    page.click(".said > details > summary")
    page.fill(".said textarea", "the first one")
    page.fill(".said input", "slow")
    assert violations(page) == []
    page.click("text=Save")
    page.wait_for_selector(".tag:text-is('slow')")
    page.fill("[name=q]", "another")
    page.wait_for_selector("#count:text-is('0 of 1')")
    assert not page.locator("tr[data-words]").is_visible()
    page.fill("[name=q]", "First one")
    page.wait_for_selector("#count:text-is('1 of 1')")
    page.keyboard.press("Enter")
    page.wait_for_url("**?q=First+one")
    page.click("main a:text-is('d-m')")
    ready(page).click("#body a")
    page.wait_for_selector(".judgement")
    page.click(".judgement button:text-is('Wrong')")
    page.wait_for_selector(".judgement >> text=kept")
    page.fill(".judgement input", "no unit")
    page.keyboard.press("Tab")
    page.wait_for_selector("[aria-pressed=true]:text-is('Wrong')")
    assert violations(page) == []
    page.reload()
    ready(page)
    assert page.input_value(".judgement input") == "no unit"
    page.keyboard.press("Escape")
    page.select_option("#outcome", "differs")
    assert names(page) == ["row-0"]
    assert "people call 0 of 1" in page.locator(".judged").get_attribute("title")
    page.goto(viewer.url)
    page.click(".said > details > summary")
    page.click(".delete > summary")
    page.click("text=Delete d-m")
    page.wait_for_selector("text=Nothing is here yet")
    assert not (tmp_path / ".osmosis" / "runs" / "d-m").exists()


def test_a_served_page_follows_the_session(tmp_path, viewer, open_page, violations):
    folder = tmp_path / ".osmosis" / "runs" / "d-m"
    lock = folder.with_name(f".{folder.name}.lock")
    lock.write_text(str(os.getpid()))
    page = open_page(viewer.url, viewport=DESK)
    assert violations(page) == []
    page.click("main a:text-is('d-m')")
    ready(page)
    assert page.url.endswith(f"/runs/{key_of(folder)}")
    assert count(page) == "1 of 1 runs"
    page.wait_for_selector("#live:text-is('live')")
    add(folder, RunResult("d.jsonl", 1, 0, success=True, scores={"r:f": 0.0}, answer="no"))
    page.wait_for_selector("#count:has-text('2 of 2 runs')")
    assert "running" in page.inner_text("h1")
    lock.unlink()
    page.wait_for_selector("#live:text-is('ended')")
    page.wait_for_selector("h1:not(:has-text('running'))")
    assert violations(page) == []
