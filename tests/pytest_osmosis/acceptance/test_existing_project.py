"""An existing Osmosis project, unmodified and from its own directory: server, tools, rewards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.embedded import EmbeddedEndpoint, start_embedded
from tests.support.modes import each_mode

PROJECT = Path(__file__).parents[2] / "existing_project"
EVAL_FNS = [f"rewards:{name}" for name in ("compute_reward", "exact_match", "conversation_quality")]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddedEndpoint]:
    """An OpenAI-compatible endpoint whose model calls tools and gets everything right."""
    with start_embedded("perfect") as endpoint:
        yield endpoint


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A copy of the project, and sessions in it."""
    shutil.copytree(PROJECT, pytester.path, dirs_exist_ok=True)
    return pytester


def command(endpoint: EmbeddedEndpoint, *more: str) -> list[str]:
    return [
        "--osmosis-agent=server:agent_loop",
        "--osmosis-data=test_data.jsonl",
        *(f"--eval-fn={name}" for name in EVAL_FNS),
        f"--osmosis-model={endpoint.model}",
        f"--osmosis-base-url={endpoint.base_url}",
        "--osmosis-output=results.json",
        *more,
    ]


def report(project: pytest.Pytester) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.path / "results.json").read_text())
    return found


@each_mode
def test_it_runs_unmodified(project: pytest.Pytester, endpoint: EmbeddedEndpoint, workers: int):
    result = project.runpytest_inprocess(*command(endpoint, f"-n{workers}", "-Werror"))
    result.assert_outcomes(passed=5)
    assert result.ret == 0
    whole = report(project)
    assert {name: whole["summary"]["eval_fns"][name]["mean"] for name in EVAL_FNS} == dict.fromkeys(
        EVAL_FNS, 1.0
    )
    for row in whole["rows"]:
        [run] = row["runs"]
        assert run["tool_calls"] >= 1
        assert run["llm_calls"] >= 2
        assert run["tokens"] > 0
        assert run["finish_reason"] == "stop"
    assert whole["rows"][3]["runs"][0]["answer"].endswith("#### 12.5")


@pytest.mark.fault("the model calls tools without end, or hundreds at once")
def test_a_turn_limit_ends_it_in_order(project: pytest.Pytester, endpoint: EmbeddedEndpoint):
    more = ("--osmosis-max-turns=1", "--pass-threshold=0.5", "-n0")
    project.runpytest_inprocess(*command(endpoint, *more)).assert_outcomes(failed=5)
    for row in report(project)["rows"]:
        [run] = row["runs"]
        assert run["success"] is True
        assert run["scores"] == dict(zip(EVAL_FNS, (0.0, 0.0, 0.5), strict=True))
