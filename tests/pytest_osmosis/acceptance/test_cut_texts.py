"""Texts are redacted before they are cut: no output has a piece of a key."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import report_page
from tests.support.endpoints import Endpoint
from tests.support.project import Project, Session

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
def test_no_piece_of_a_key_is_left_where_texts_are_cut(keyed: Project, endpoint: Endpoint) -> None:
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


def test_no_piece_of_a_key_is_left_of_a_programs_last_words(keyed: Project) -> None:
    keyed.write("program.py", PROGRAM)
    keyed.rows("a")
    program = f"cmd:{sys.executable} program.py"
    session = keyed.run("--junitxml=out.xml", *REPORTS, agent=program)
    assert "ended with status 3:" in session.out
    assert "b" * 380 in session.out
    assert pieces_in(keyed, session) == {}
