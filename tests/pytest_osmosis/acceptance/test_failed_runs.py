"""Which runs that did not pass the terminal shows, and how much of each."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support import report_page
from tests.support.endpoints import Endpoint, failure_reply, refusing_address
from tests.support.modes import each_mode
from tests.support.project import KEPT, Project, Session


@pytest.fixture
def wrong(project: Project) -> Project:
    """Twelve rows, of which the first passes."""
    project.endpoint.answers = lambda ask: "a" if ask.row == "a" else "wrong"
    project.rows(*"abcdefghijkl")
    return project


def titles(session: Session) -> list[str]:
    """The titles of the sections, in order."""
    return [line.strip("_ ") for line in session.lines if line.startswith("___")]


def after_header(session: Session) -> list[str]:
    """What stands below the header, without blank lines."""
    [at] = [at for at, line in enumerate(session.lines) if line.startswith("plugins: ")]
    return [line for line in session.lines[at + 1 :] if line]


@each_mode
def test_one_run_of_each_of_ten_rows_is_shown_in_order(wrong: Project, workers: int):
    session = wrong.run("--batch-size=8", n="2", workers=workers)
    assert titles(session) == [f"row-{row}[run-0] (2 of 2 runs failed)" for row in range(1, 11)]
    failures = session.section("FAILURES")
    assert failures[-1] == "1 more row: osmosis eval runs show agent.agent_loop-data-m"
    assert not [line for line in failures if line.startswith("[gw")]
    short = session.section("short test summary info")
    assert [line.partition(" - ")[0] for line in short] == [
        f"FAILED data.jsonl::row-{row}[run-0]" for row in range(1, 12)
    ]
    assert short[0].partition(" - ")[2].startswith("2 of 2 runs failed: rewards:exact")
    assert session.outcomes == {"passed": 2, "failed": 22}


@pytest.mark.parametrize("option", ["--tb=line", "--tb=short", "-vv", "--osmosis-html=out.html"])
def test_options_say_how_much_is_shown(wrong: Project, option: str):
    session = wrong.run(option)
    shown = session.section("FAILURES")
    if option == "--tb=line":
        below = "rewards:exact scored 0, below the threshold 1"
        assert shown == [f"data.jsonl:{row + 1}: row-{row}[run-0]: {below}" for row in range(1, 12)]
    elif option == "--tb=short":
        assert shown[1:5] == [
            "rewards:exact scored 0, below the threshold 1", "",
            "  user       b", "  assistant  wrong",
        ]  # fmt: skip
        assert len(titles(session)) == 10
    elif option == "-vv":
        assert titles(session) == [f"row-{row}[run-0]" for row in range(1, 12)]
    else:
        assert shown[-1] == "1 more row: out.html"


@pytest.mark.slow
def test_runs_with_one_and_the_same_error_have_one_section(project: Project):
    project.rows("give up", "raise", "a", "give up", "raise")
    project.write("test_unit.py", "def test_unit():\n    assert 1 == 2\n")
    session = project.plain(*project.options("-n0", "data.jsonl", "test_unit.py"))
    assert titles(session) == [
        "row-0[run-0] (the same in 1 more run)", "row-1[run-0] (the same in 1 more run)",
        "test_unit",
    ]  # fmt: skip
    for question in ("give up", "raise"):  # without a call there is no conversation
        assert f"  user       {question}" in session.lines
    assert session.outcomes == {"passed": 1, "failed": 5}
    assert session.section("short test summary info")[-1].startswith("FAILED test_unit.py")


def test_ten_sections_are_shown_of_errors_and_failures_together(wrong: Project):
    wrong.endpoint.answers = lambda ask: (
        failure_reply(f"no {ask.row}") if ask.row in "abcdefg" else "wrong"
    )
    session = wrong.run()
    assert titles(session) == [f"row-{row}[run-0]" for row in (*range(5), *range(7, 12))]
    where = "osmosis eval runs show agent.agent_loop-data-m"
    assert session.section("ERRORS")[-1] == f"2 more rows: {where}"
    assert session.section("FAILURES")[-1].strip() != f"0 more rows: {where}"


@each_mode
def test_what_no_run_survives_is_said_once_in_few_lines(wrong: Project, workers: int):
    options = ("--batch-size=16", "--osmosis-gate=errors == 0")
    with refusing_address() as netloc:
        session = wrong.run(
            *options, n="5", output=None, workers=workers, base_url=f"http://{netloc}/v1"
        )
    lines = after_header(session)
    assert len(lines) <= 12, "\n".join(lines)
    assert "ERROR at setup" not in session.out
    assert titles(session) == []
    [at] = [at for at, line in enumerate(lines) if line.startswith("ERROR: ")]
    said = " ".join(map(str.strip, lines[at:]))
    assert "none has a score." in said
    assert "run the same command again" in said
    assert "mean" not in said and "lowest rows" not in said
    assert session.ret == 1


@each_mode
def test_a_gate_that_failed_shows_the_distance_and_the_three_lowest_rows(
    wrong: Project, workers: int
):
    session = wrong.run(
        "--batch-size=8", "--osmosis-gate=mean >= 0.9", "--osmosis-gate=scored == 1", "--color=yes",
        "--junitxml=out.xml", n="2", workers=workers,
    )  # fmt: skip
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in session.lines]
    start = next(at for at, line in enumerate(plain) if line.startswith("___"))
    shown = plain[start : next(at for at, line in enumerate(plain) if "osmosis summary" in line)]
    assert shown[0].strip("_ ") == "gate mean >= 0.9"
    assert shown[1].startswith("mean is 0.08333 (95% 0.0") and shown[1].endswith(", 0.8167 short")
    rows = [line for line in shown if line.startswith("row-")]
    assert rows == [f"row-{row}[run-0] (0 of 2 runs passed)" for row in (1, 2, 3)]
    assert [line for line in shown if line.startswith("  user ")] == [
        f"  user       {question}" for question in "bcd"
    ]
    assert f"11 rows did not pass every time: osmosis eval runs show {KEPT}" in shown
    assert "\x1b[31mFAILED\x1b[0m" in session.out and "\x1b[32mPASSED\x1b[0m" in session.out
    assert "22 below" in session.out and session.ret == 1
    [failure] = session.junit.findall(".//failure")
    assert failure.attrib["message"] == "failed: mean is 0.08333"
    assert "row-1[run-0] (0 of 2 runs passed)" in str(failure.text)


def test_two_gates_that_failed_show_a_conversation_once(wrong: Project):
    session = wrong.run("--osmosis-gate=mean >= 0.9", "--osmosis-gate=each row >= 1/2")
    shown = session.section("FAILURES")
    assert [line for line in shown if line.startswith("  user ")] == [
        f"  user       {question}" for question in "bcd"
    ]
    assert shown[-1] == "11 rows below, shown above: row-1, row-2, row-3"


@pytest.mark.slow
@each_mode
def test_a_marked_test_that_fails_shows_its_conversation(wrong: Project, workers: int):
    wrong.rows("a", "b", "c")
    wrong.write(
        "test_marked.py",
        """
import pytest

@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl", n=2)
def test_answer(rollout):
    print("printed in", rollout.row_index)
    assert rollout.solution_str == rollout.ground_truth
""",
    )
    usual = ("--osmosis-model=m", f"--osmosis-base-url={wrong.endpoint.base_url}")
    session = wrong.plain("test_marked.py", *usual, f"-n{workers}", "--osmosis-batch-size=4")
    assert titles(session) == [
        f"test_answer[row-{row}-run-0] (2 of 2 runs failed)" for row in (1, 2)
    ]
    shown = session.section("FAILURES")
    at = shown.index("E       AssertionError: assert 'wrong' == 'b'")
    said = ["  system     Answer.", "  user       b", "  assistant  wrong"]
    assert shown[shown.index(said[0]) : shown.index(said[0]) + 3] == said
    assert at < shown.index(said[0]) < shown.index("printed in 1")
    assert session.outcomes == {"passed": 2, "failed": 4}
    gated = wrong.plain("test_marked.py", *usual, "-n0", "--osmosis-gate=mean[test] >= 0.9")
    assert gated.outcomes == {"passed": 2, "below": 4, "failed": 1}
    assert "  user       b" in gated.section("FAILURES")


def test_quiet_shows_the_ends_of_long_messages(wrong: Project):
    wrong.endpoint.answers = lambda ask: "\n".join(f"{place} of {ask.row}" for place in range(20))
    session = wrong.run("-q", "-k", "row-1[")
    shown = session.section("FAILURES")
    at = shown.index("  assistant  0 of b")
    below = ["1 of b", "2 of b", "[15 lines left out]", "18 of b", "19 of b"]
    assert shown[at + 1 : at + 7] == [*(f"{'':<13}{line}" for line in below), ""]
    whole = wrong.run("-k", "row-1[").section("FAILURES")
    assert f"{'':<13}10 of b" in whole


@pytest.mark.slow
def test_forty_columns_can_be_read(wrong: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    wrong.write("judges.py", "def how_far_it_is_from_the_truth(solution_str): return 0.25\n")
    base = wrong.run(n="3", output="before.json")
    assert base.ret == 1
    session = wrong.run(
        "--eval-fn=judges:how_far_it_is_from_the_truth", "--osmosis-gate=mean[exact] >= 0.99",
        "--osmosis-gate=errors == 0", "--osmosis-baseline=before.json", "--osmosis-fresh", n="3",
    )  # fmt: skip
    lines = session.section("osmosis summary")
    assert [line for line in lines if len(line) > 40] == []
    at = lines.index("exact")
    figures = " ".join(" ".join(lines[at + 1 :]).split())
    assert figures.startswith("mean 0.083, 95% interval 0.0")
    assert "pass^3 0.083, scored 36/36" in figures
    header = [line for line in session.lines if line.startswith("osmosis: ")]
    assert max(map(len, header)) <= 40
    shown = [line for line in session.section("FAILURES") if not line.startswith("_")]
    assert any(line.startswith("mean is 0.08333") for line in shown)
    assert [line for line in shown if len(line) > 40] == []
    assert any(line.startswith("gate  mean[exact] >= 0.99") for line in lines)


@pytest.mark.slow
def test_where_the_terminal_has_ascii_alone_nothing_is_escaped(
    wrong: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    wrong.rows({"system_prompt": "word " * 50, "user_prompt": "b", "ground_truth": "c"})
    session = wrong.evaluate(*wrong.options("-n0"))
    assert "\\u" not in session.out
    assert any(line.startswith("  system ") and line.endswith(" ...") for line in session.lines)


KEY = "key-0123456789-abcdefghij-ABCDEFGHIJ-xyz"
PIECES = [KEY[at : at + 8] for at in range(len(KEY) - 8)]
AGENT = """
from agent import Agent

class Talker(Agent):
    async def run(self, ctx):
        print(ctx.request.metadata["said"])
        return await super().run(ctx)

agent_loop = Talker()
"""
PROGRAM = f"""
import sys
sys.stderr.write("a" * 20_000 + "{KEY}" + "b" * 380)
sys.exit(3)
"""
REPORTS = ["--osmosis-html=out.html", "--osmosis-markdown=out.md", "--osmosis-runs-table=out.csv"]


def pieces_in(project: Project, session: Session) -> dict[str, list[str]]:
    """The pieces of the key in everything that a session printed or wrote."""
    files = [path for path in project.path.rglob("*") if path.is_file()]
    own = {".py", ".pyc", ".jsonl"}
    outputs = [path for path in files if path.suffix not in own or ".osmosis" in path.parts]
    outputs += project.path.glob("*.trajectories.jsonl")
    texts = {str(Path(path).name): path.read_bytes().decode() for path in outputs}
    assert {"out.html", "out.json", "out.xml", "journal.jsonl"} <= texts.keys()
    texts["out.html"] = report_page.text_of(project.path / "out.html")
    texts["terminal"] = session.out + session.err
    found = {name: [piece for piece in PIECES if piece in text] for name, text in texts.items()}
    return {name: pieces for name, pieces in found.items() if pieces}


@pytest.fixture
def keyed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("JUDGE_API_KEY", KEY)
    return project


@pytest.mark.fault("a text is cut in the middle of a key")
def test_no_piece_of_a_key_is_left_where_texts_are_cut(keyed: Project, endpoint: Endpoint):
    keyed.write("talker.py", AGENT)
    cut_at = {"head": 800, "tail": 1600, "answer": 2000, "line": 400}
    endpoint.answers = lambda ask: "x" * (cut_at[ask.row] - 20) + KEY + "y" * 380
    keyed.rows(
        *(
            {
                "user_prompt": name,
                "system_prompt": "s" * 45 + KEY,
                "ground_truth": "t" * 380 + KEY,
                "said": "p" * (32 * 1024 - 20) + KEY + "q" * 64 * 1024 + KEY + "r" * 32 * 1020,
            }
            for name in cut_at
        )
    )
    session = keyed.run("-rA", "--junitxml=out.xml", *REPORTS, agent="talker:agent_loop")
    assert session.outcomes["failed"] == len(cut_at)
    assert "characters left out" in session.out
    assert pieces_in(keyed, session) == {}


def test_no_piece_of_a_key_is_left_of_a_programs_last_words(keyed: Project):
    keyed.write("program.py", PROGRAM)
    keyed.rows("a")
    program = f"cmd:{sys.executable} program.py"
    session = keyed.run("--junitxml=out.xml", *REPORTS, agent=program)
    assert "ended with status 3:" in session.out
    assert "b" * 380 in session.out
    assert pieces_in(keyed, session) == {}
