"""The page on osmosis-ai: what of its rollout is evaluated; `tests/pages` runs its commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from pytest_osmosis.user_code.load_agent import load_agent

PAGE = Path(__file__).parents[2] / "docs" / "migrate" / "osmosis-ai.md"
MAIN = "rollouts/asking/main.py"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    [text] = blocks("python")
    assert text.startswith(f"# {MAIN}\n")
    (tmp_path / MAIN).parent.mkdir(parents=True)
    (tmp_path / MAIN).write_text(text)
    (tmp_path / "rows.jsonl").write_text(blocks("json")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return tmp_path


@pytest.mark.slow
def test_its_rollout_is_found_by_its_backend(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    found = load_agent(MAIN, roots=[workspace])
    for name in [name for name in sys.modules if name == "main" or name.startswith("main_")]:
        monkeypatch.delitem(sys.modules, name)
    assert found.grading is not None
    assert found.grading.name == "Right"
    assert found.agent.workflow.config.temperature == 0.0
