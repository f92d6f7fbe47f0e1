"""The calculator example: its parts by themselves, and as its README runs it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from osmosis_ai.embedded import start_embedded
from osmosis_ai.models.openai import OpenAIModel
from osmosis_ai.rollout import ModelLLM, RolloutRequest, RolloutResult, run_rollout, tool_schemas

EXAMPLE = Path(__file__).parents[2] / "examples" / "calculator"
ROWS = [json.loads(line) for line in (EXAMPLE / "test_data.jsonl").read_text().splitlines()]
MODULES = ("server", "tools", "rewards")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The example's modules, imported as from its own directory and forgotten afterwards."""
    monkeypatch.syspath_prepend(EXAMPLE)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def example(pytester: pytest.Pytester) -> pytest.Pytester:
    """A copy of the example, and a session in it."""
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    return pytester


async def rolled(agent: Any, persona: str, **request: Any) -> list[RolloutResult]:
    """One rollout of each row against a persona."""
    requests = [requested(index, row, **request) for index, row in enumerate(ROWS)]
    tools = tool_schemas(agent, requests[0])
    with start_embedded(persona) as endpoint:
        model = OpenAIModel(
            model=endpoint.model, base_url=endpoint.base_url, api_key=None, pool_size=20
        )
        try:
            runs = [run_rollout(agent, each, ModelLLM(model, tools=tools)) for each in requests]
            return await asyncio.gather(*runs)
        finally:
            await model.aclose()


def requested(index: int, row: dict[str, str], **more: Any) -> RolloutRequest:
    messages = [
        {"role": "system", "content": row["system_prompt"]},
        {"role": "user", "content": row["user_prompt"]},
    ]
    return RolloutRequest.for_eval(rollout_id=f"eval-{index}-run-0", messages=messages, **more)


def test_the_dataset_has_twenty_rows_of_rising_difficulty():
    assert len(ROWS) == 20
    assert all(
        set(row) == {"system_prompt", "user_prompt", "ground_truth", "level"} for row in ROWS
    )
    steps = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    levels = [steps.index(row["level"].split()[0]) for row in ROWS]
    assert levels == sorted(levels)


def test_scores_tell_a_right_answer_from_a_close_and_a_wrong_one(modules: Any):
    rewards = modules["rewards"]
    said = ["The result is 391.\n#### 391", "It is 391.0", "#### 390", "no idea"]
    assert [rewards.compute_reward(text, "391") for text in said] == [1.0, 1.0, 0.0, 0.0]
    assert [rewards.exact_match(text, "391") for text in said] == [1.0, 0.0, 0.0, 0.0]
    partial = [rewards.partial_match(text, "391") for text in said]
    assert partial == [1.0, 1.0, pytest.approx(390 / 391), 0.0]


def test_a_tool_call_that_is_wrong_is_answered_with_an_error(modules: Any):
    def result(name: str, arguments: str) -> str:
        call = {"id": "c1", "function": {"name": name, "arguments": arguments}}
        message = asyncio.run(modules["tools"].execute_tool_call(call))
        assert (message["role"], message["tool_call_id"]) == ("tool", "c1")
        return message["content"]

    assert result("divide", '{"a": 7, "b": 2}') == "3.5"
    assert result("add", '{"a": "7", "b": 2}') == "9"
    for name, arguments in [
        ("divide", '{"a": 1, "b": 0}'),
        ("power", '{"a": 1, "b": 0}'),
        ("add", '{"a": 1}'),
        ("add", '{"a": 1, "b": []}'),
        ("add", '{"a": 1'),
    ]:
        assert result(name, arguments).startswith("Error")


def test_every_row_can_be_solved_with_the_tools(modules: Any):
    rewards = modules["rewards"]
    results = asyncio.run(rolled(modules["server"].agent_loop, "perfect"))
    for row, result in zip(ROWS, results, strict=True):
        assert result.status == "COMPLETED"
        said = result.final_messages[-1]["content"]
        truth = row["ground_truth"]
        assert rewards.compute_reward(said, truth, row) == 1.0
        assert rewards.exact_match(said, truth, row) == 1.0
        quality = rewards.conversation_quality(result.final_messages, truth, row)
        assert asyncio.run(quality) == 1.0
        assert result.metrics is not None
        assert result.metrics.num_tool_calls >= 1


def test_a_model_that_uses_no_tools_has_lower_conversation_quality(modules: Any):
    [result, *_] = asyncio.run(rolled(modules["server"].agent_loop, "chatty"))
    quality = modules["rewards"].conversation_quality(result.final_messages, "12", {})
    assert asyncio.run(quality) == pytest.approx(1 / 3)


def test_a_model_that_never_answers_meets_the_turn_limit(modules: Any):
    results = asyncio.run(rolled(modules["server"].agent_loop, "perfect", max_turns=1))
    for result in results:
        assert result.finish_reason == "max_turns"
        assert sum(message["role"] == "assistant" for message in result.final_messages) == 1


COMMAND = [
    "--osmosis-agent=server:agent_loop",
    "--osmosis-data=test_data.jsonl",
    "--eval-fn=rewards:compute_reward",
]


@pytest.mark.slow
def test_the_default_model_is_interesting_and_the_same_under_xdist(
    example: pytest.Pytester,
):
    scores = []
    for options in (["--batch-size=16", "-n0"], ["--batch-size=16", "-n2"]):
        example.runpytest_inprocess(
            *COMMAND, "--n=5", "--osmosis-model=embedded", "--osmosis-output=out.json", *options
        )
        report = json.loads((example.path / "out.json").read_text())
        scores.append([run["scores"] for row in report["rows"] for run in row["runs"]])
        summary = report["summary"]["eval_fns"]["rewards:compute_reward"]
        assert 0.7 < summary["pass_at_1"] < summary["pass_at_3"] < summary["pass_at_5"] <= 1.0
    assert scores[0] == scores[1]
