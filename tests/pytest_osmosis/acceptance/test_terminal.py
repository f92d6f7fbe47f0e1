"""What the terminal shows: header, progress, failures and summary, at every verbosity."""

from __future__ import annotations

import re

import pytest

from tests.support.endpoints import completion, error_reply, reply
from tests.support.modes import each_mode
from tests.support.project import AGENT, Project, Session


@pytest.fixture
def ten(project: Project) -> Project:
    """Ten rows, of which some fail."""
    project.endpoint.answers = lambda ask: completion(
        "wrong" if ask.row in "bd" else ask.row,
        finish_reason="length" if ask.row == "e" else "stop",
    )
    project.rows(*"abcdefghij")
    return project


def table(session: Session) -> dict[str, dict[str, str]]:
    """The summary's table: function to column to cell."""
    lines = session.section("osmosis summary")
    [at] = [at for at, line in enumerate(lines) if line.startswith("eval function")]
    _, *columns = re.split(r"  +", lines[at])
    rows = [re.split(r"  +", line) for line in lines[at + 1 : lines.index("", at)]]
    return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in rows}


class TestHeader:
    def test_it_says_what_is_evaluated_how_and_where(self, ten: Project):
        session = ten.run("--batch-size=4", "-v", n="2", seed="11", pass_threshold="0.5")
        lines = [line for line in session.lines if line.startswith("osmosis: ")]
        digest = session.report["config"]["data_sha256"]
        assert "agent:agent_loop on data.jsonl" in lines[0]
        assert f"sha256 {digest[:8]}" in lines[0]
        assert "10 x 2 = 20 rollouts" in lines[0]
        assert "0.5" in lines[0]
        assert f"m at {ten.endpoint.netloc}, 4 in flight" in lines[1]
        assert "seed 11" in lines[1]
        assert not [line for line in lines if "key:" in line]


class TestSummary:
    def test_it_has_a_line_for_each_eval_function_the_lowest_rows_tokens_and_the_report(
        self, ten: Project
    ):
        session = ten.run("--eval-fn=rewards:length", n="3", pass_threshold="0.1")
        figures = session.report["summary"]["eval_fns"]
        shown = table(session)
        assert list(shown) == list(figures) == ["rewards:exact", "rewards:length"]
        for name, cells in shown.items():
            printed = [cells[column] for column in ("mean", "pass@1", "pass@3", "scored")]
            values = (figures[name][field] for field in ("mean", "pass_at_1", "pass_at_3"))
            assert printed == [*(f"{value:.3f}" for value in values), "30/30"]
        titles = [line.strip("= ") for line in session.lines if line.startswith("==")]
        assert titles[1:4] == ["FAILURES", "osmosis summary", "short test summary info"]
        lines = session.section("osmosis summary")
        for line in (
            "lowest rows: row-1 0/3, row-3 0/3", "30 rollouts, 450 tokens", "report: out.json",
            "3 answers were cut by length",
        ):  # fmt: skip
            assert line in lines

    @pytest.mark.parametrize(
        "args", ["", "-q", "--osmosis-html=o.html", "--osmosis-no-journal", "CI"]
    )
    def test_it_ends_with_where_to_look(
        self, ten: Project, monkeypatch: pytest.MonkeyPatch, args: str
    ):
        if args == "CI":
            monkeypatch.setenv("CI", "true")
        session = ten.run(*([args] if args.startswith("-") else []))
        lines = session.section("osmosis summary")
        assert (lines[-1] == "look at every run: osmosis eval view") is (args == "")
        assert table(session)["rewards:exact"]["mean"] == "0.800"


class TestQuiet:
    @pytest.mark.parametrize("option", ["-q", "--no-header"])
    @each_mode
    def test_nothing_but_news_comes_ahead_of_the_tests(
        self, project: Project, option: str, workers: int
    ):
        refused = error_reply(503, "no", headers={"x-should-retry": "false"})
        project.endpoint.answers = lambda ask: refused if ask.row == "b" else ask.row
        project.rows("a", "b")
        first = project.run(option, workers=workers)
        assert "osmosis: " not in first.out
        assert "rollouts\n" not in first.out.partition("osmosis summary")[0]
        again = project.run(option)
        assert [line for line in again.lines if line.startswith("osmosis: ")] == [
            "osmosis: journal .osmosis/runs/agent.agent_loop-data-m, resuming: 1 of 2 runs done"
        ]

    def test_what_was_expected_stands_in_its_column_over_all_its_lines(self, ten: Project):
        ten.rows({"user_prompt": "b", "ground_truth": "one\ntwo\n\nfour"})
        lines = ten.run().lines
        at = lines.index("  ground truth  one")
        assert [line.rstrip() for line in lines[at + 1 : at + 4]] == [
            " " * 16 + "two", "", " " * 16 + "four",
        ]  # fmt: skip


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_no_escape_is_written_where_colour_is_not_wanted(
    ten: Project, monkeypatch: pytest.MonkeyPatch, variable: str
):
    monkeypatch.setenv(variable, "dumb")
    session = ten.run("--color=auto", "-vv")
    assert "\x1b" not in session.out


@pytest.mark.slow
def test_colour_does_not_change_what_is_said(ten: Project):
    plain = ten.run("--color=no").section("osmosis summary")
    coloured = ten.run("--color=yes")
    assert "\x1b" in coloured.out
    assert [line for line in plain if line and line not in coloured.out] == []


def test_what_a_prompt_holds_does_not_reach_the_terminal_raw(project: Project):
    evil = "\x1b]0;owned\x07 \x9b31m \u202e"
    project.endpoint.answers = evil
    project.rows({"user_prompt": evil, "ground_truth": evil + "!", "id": "a\x1b[2Jb"})
    for gate in ((), ("--osmosis-gate=mean >= 0.9", "--osmosis-fresh")):
        session = project.run("-v", *gate)
        for char in "\x1b\x07\x9b\u202e":
            assert char not in session.out


@pytest.mark.slow
def test_durations_are_the_rollouts_own(project: Project):
    project.endpoint.answers = lambda ask: [0.3, reply(200, completion(ask.row))]
    project.rows("a")
    session = project.run("--durations=1", "--durations-min=0.2")
    assert any("call" in line and "data.jsonl::row-0[run-0]" in line for line in session.lines)


def test_s_lets_output_through(project: Project):
    ask = "        answer = await"
    project.write("agent.py", AGENT.replace(ask, f'        print(f"out <{{wish}}>")\n{ask}'))
    project.rows("one")
    assert "out <one>" in project.run("-s").out
