"""The Markdown report: its order, and that nobody's text becomes markup."""

from __future__ import annotations

import html
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.score_table import score_table_of
from pytest_osmosis.escaping import escape_control_chars
from pytest_osmosis.features.comparison.compare import compare
from pytest_osmosis.features.markdown import report as markdown
from pytest_osmosis.run_result import EMBEDDED_ENDPOINT, RunId
from tests.support.made_results import NASTY, result_of, suite_of


def test_verdicts_come_first_then_figures_then_changes_then_the_lowest_rows():
    suite = suite_of([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    before = score_table_of(suite_of([[1.0, 1.0]] * 3))
    gates = [parse_gate("pass@1 >= 0.9"), parse_gate("errors <= 0")]
    tally = score_table_of(suite)
    suite = replace(
        suite,
        verdicts=tuple(evaluate(gate, tally) for gate in gates),
        sections={"baseline": compare(tally, before)},
    )
    text = markdown.render(result_of(suite))
    parts = [
        "## ❌ Evaluation: 1 of 2 gates failed",
        "| ❌ failed | <code>pass&#64;1 &#62;= 0.9</code> |",
        "| ✅ passed | <code>errors &#60;= 0</code> |",
        "| <code>rewards:exact</code> | 0.500 |",
        "#### Against the baseline",
        "over 3 rows: no significant difference",
        "Rows: 2 changed\n",
        "| metric |",
        "3 rows with fewer than 3 runs on a side can show nothing",
        "#### Lowest rows",
        "<code>row-2</code> 0 of 2 runs passed",
        "<code>row-1</code> 1 of 2 runs passed",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "- changed" not in text


def test_without_gates_the_runs_are_the_headline():
    assert "## ✅ Evaluation: 2 of 2 runs passed\n" in markdown.render(
        result_of(suite_of([[1.0], [1.0]]))
    )
    failed = markdown.render(result_of(suite_of([[1.0], [0.0], ["503"], [None]])))
    assert "## ❌ Evaluation: 1 of 3 runs passed, 1 not run\n" in failed
    assert "1 run without a score, left out of every figure: provider overloaded 1" in failed


def test_a_host_stands_beside_the_model_where_there_is_one():
    assert "\ncalc-7b at localhost&#58;8000: agent" in markdown.render(result_of(suite_of([[1.0]])))
    embedded = suite_of([[1.0]], model="embedded", endpoint=EMBEDDED_ENDPOINT)
    assert "\nembedded: agent" in markdown.render(result_of(embedded))


def test_an_eval_function_that_did_not_change_takes_one_line():
    suite = suite_of([[1.0], [0.0]])
    tally = score_table_of(suite)
    text = markdown.render(result_of(replace(suite, sections={"baseline": compare(tally, tally)})))
    assert "<code>rewards:exact</code> over 2 rows: no difference" in text
    assert "| difference |" not in text


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_escaped_text_reads_as_it_was_and_holds_nothing_active(text: str):
    escaped = markdown.escaped(text)
    assert html.unescape(escaped) == " ".join(escape_control_chars(text).split())
    assert not re.search(r"[\\`*_{}\[\]<>()|!~@$^\"']|&(?!#\d+;)|(?<!&)#|://|\n", escaped)


@given(st.text(alphabet="`~a\n", max_size=40))
def test_a_fence_cannot_be_closed_from_within(text: str):
    fence, *lines, last = markdown.fenced(text)
    assert fence == f"{last}text"
    assert set(last) == {"`"}
    assert not any(line.strip().startswith(last) for line in lines)


def test_text_of_models_stays_within_its_fence_or_its_cell():
    suite = suite_of([[0.0]], answer=NASTY)
    sections = {RunId("data.jsonl", 0, 0): f"scored 0\n  assistant  {NASTY}"}
    text = markdown.render(result_of(suite), sections.get)
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert outside != text
    assert "script" not in outside
    assert "onerror" not in outside
    assert outside.count("<details>") == outside.count("</details>") == 1


def test_at_most_ten_rows_and_three_runs_of_each_are_shown():
    text = markdown.render(result_of(suite_of([[0.0] * 5] * 14)))
    assert text.count("<summary><code>row-") == 10
    assert text.count("```text") == 30
    assert "and 4 more that did not pass every time" in text


def test_a_report_too_large_for_github_leaves_the_rows_out(monkeypatch):
    monkeypatch.setattr(markdown, "SIZE_LIMIT", 1_000)
    text = markdown.render(result_of(suite_of([[0.0] * 3] * 9)))
    assert "rewards:exact" in text
    assert "Lowest rows" not in text


def test_several_suites_have_titles_of_their_own():
    text = markdown.render(result_of(suite_of([[1.0]], name="a.jsonl"), suite_of([[1.0]])))
    assert "### a.jsonl\n" in text
    assert "### data.jsonl\n" in text
