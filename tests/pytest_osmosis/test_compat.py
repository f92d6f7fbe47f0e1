"""Private names of pytest: each may be gone, and an evaluation still ends right."""

from __future__ import annotations

import pytest

from pytest_osmosis import compat
from tests.support.project import Project

IMPORTED = (
    "ReprExceptionInfo", "xml_key", "TerminalReporter", "NodeId", "Expression",
    "catch_warnings_for_item", "determine_setup",
)  # fmt: skip
TEST = """
import pytest

@pytest.fixture(scope="module")
def prepared():
    yield

def test_it(prepared):
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*IMPORTED, *compat.ATTRIBUTES])
def test_an_evaluation_ends_right_without_a_private_name(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
):
    project.rows("a", {"user_prompt": "b", "ground_truth": "x"}, "c")
    project.write("test_before.py", TEST)
    found = compat._attribute
    if name in IMPORTED:
        monkeypatch.setattr(compat, name, None)
    monkeypatch.setattr(
        compat, "_attribute", lambda owner, asked: None if asked == name else found(owner, asked)
    )
    junit = ["--junitxml=junit.xml"] if name in ("xml_key", "TerminalReporter", "NodeId") else []
    words = ["-m", "osmosis"] if name == "Expression" else []
    session = project.run(
        "--osmosis-gate=mean[rewards:exact] >= 0.5", *junit, *words, "test_before.py", "data.jsonl"
    )
    assert session.ret == 0, session.out
    assert [(run["outcome"], run["scores"]) for run in session.runs] == [
        ("passed", {"rewards:exact": 1.0}),
        ("below", {"rewards:exact": 0.0}),
        ("passed", {"rewards:exact": 1.0}),
    ]
    assert "rewards:exact" in session.out
