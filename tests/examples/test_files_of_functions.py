"""The examples that are single files: they run, and the commands that they name work on them."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import pytest

from osmosis_cli.rubric.config import load_rubrics
from tests.support.command import Osmosis
from tests.support.endpoints import Ask, Endpoint

EXAMPLES = Path(__file__).parents[2] / "examples"


def verdict(ask: Ask) -> str:
    return json.dumps({"score": 1, "explanation": "it does"})


@pytest.fixture
def osmosis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Osmosis:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(EXAMPLES.parent)
    return Osmosis(monkeypatch, capsys)


def test_reward_functions_score_without_a_request(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "reward_functions.py"), run_name="__main__")
    assert capsys.readouterr().out.split() == ["1.0", "0.0", "1.0", "0.5", "1.0", "1.0", "1.0"]


def test_rubric_functions_ask_the_judge_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    example = runpy.run_path(str(EXAMPLES / "rubric_functions.py"))
    for _, variable in example["JUDGES"].values():
        monkeypatch.delenv(variable, raising=False)
    assert example["main"]([]) == 2
    assert example["main"](["anthropic"]) == 1
    assert "export ANTHROPIC_API_KEY=" in capsys.readouterr().err
    with Endpoint(verdict) as judge:
        monkeypatch.setenv("OPENAI_BASE_URL", judge.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-example-0123456789")
        assert example["main"]([]) == 0
        assert example["RUBRIC"] in judge.seen[0].row
    assert capsys.readouterr().out == "openai     1\n"


def test_the_sample_data_is_judged_by_the_rubrics_beside_it(
    osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    with Endpoint(verdict) as judge:
        monkeypatch.setenv("OPENAI_BASE_URL", judge.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-example-0123456789")
        words = ("--rubric", "support_followup", "--data", "examples/sample_data.jsonl")
        status, out, err = osmosis("eval-rubric", *words)
        assert (status, judge.requests) == (0, 1), err
    assert "ticket-001\n  run 1   1        it does" in out
    assert "1 of 2 records are for other rubrics: skipped" in err


def test_both_files_can_be_looked_at(osmosis: Osmosis):
    rubrics = load_rubrics(EXAMPLES / "rubric_configs.yaml")
    assert [rubric.id for rubric in rubrics] == ["support_followup", "policy_grounding"]
    for name, said in (
        ("rubric_configs.yaml", "Loaded 2 rubrics from"),
        ("sample_data.jsonl", "Loaded 2 records from"),
    ):
        status, out, _ = osmosis("preview", "--path", os.path.join("examples", name))
        assert status == 0 and said in out


def test_the_agent_of_the_quick_start_answers(
    osmosis: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page = (EXAMPLES.parent / "docs" / "rollout" / "README.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "my_agent.py").write_text(code)
    row = {"system_prompt": "", "user_prompt": "What is 2 plus 40?", "ground_truth": "42"}
    (tmp_path / "test_data.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "my_agent", raising=False)
    words = ("-m", "my_agent:agent_loop", "-d", "test_data.jsonl", "--model", "embedded/perfect")
    status, out, err = osmosis("test", *words)
    assert status == 0, out + err
    assert "2 calls" in out and "The result is 42." in out
