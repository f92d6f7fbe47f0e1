from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from osmosis_cli.agent.run import result_line
from pytest_osmosis.run_result import RunResult
from tests.support.command import Osmosis
from tests.support.endpoints import Endpoint
from tests.support.narrow_terminal import NarrowTerminal

AGENT = """
from osmosis_ai.rollout import RolloutAgentLoop

ADD = {"type": "function", "function": {"name": "add", "description": "Add two numbers.",
       "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}}

class Echo(RolloutAgentLoop):
    name = "echo"
    def get_tools(self, request):
        return [ADD]
    async def run(self, ctx):
        messages = list(ctx.request.messages)
        if "raise" in messages[-1]["content"]:
            raise ValueError("this row cannot be run")
        for text in ("once", "twice"):
            answer = await ctx.chat(messages)
            messages.append(answer.message)
            messages.append({"role": "user", "content": text})
        return ctx.complete(messages[:-1])

agent_loop = Echo()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project")
    (directory / "agent.py").write_text(AGENT)
    prompts = ["first", "second", "third", "please raise"]
    rows = [{"system_prompt": "Repeat.", "user_prompt": p, "ground_truth": None} for p in prompts]
    (directory / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as running:
        yield running


@pytest.fixture
def osmosis(
    osmosis: Osmosis, project: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Osmosis]:
    """`osmosis test` with an agent, its rows and a model."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    usual = ("-m", "agent:agent_loop", "-d", "data.jsonl", "--base-url", endpoint.base_url)
    osmosis.group = ("test", *usual, "--model", "echo")
    osmosis.hidden = ("Traceback",)
    yield osmosis
    sys.modules.pop("agent", None)


@pytest.fixture
def unnamed(osmosis: Osmosis) -> Osmosis:
    """The same without the name of a model."""
    osmosis.group = osmosis.group[:-2]
    return osmosis


def test_there_is_a_line_a_row_and_an_error_is_status_1(osmosis: Osmosis):
    status, out, _ = osmosis()
    lines = out.splitlines()
    assert [line.split()[:2] for line in lines[:4]] == [
        ["row-0", "COMPLETED"],
        ["row-1", "COMPLETED"],
        ["row-2", "COMPLETED"],
        ["row-3", "ERROR"],
    ]
    assert "ValueError: this row cannot be run" in lines[3]
    assert lines[-1].startswith("4 rollouts, 3 completed, 1 in error")
    assert status == 1


def test_rows_that_go_well_are_status_0(osmosis: Osmosis):
    assert "3 rollouts, 3 completed" in osmosis.out("--limit", "3", "--batch-size", "3")


def test_a_terminal_without_more_than_ascii_can_be_read(
    osmosis: Osmosis, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "odd.jsonl").write_text(
        '{"system_prompt": "", "user_prompt": "caf\\u00e9 \\u2026"}\n'
    )
    screen = NarrowTerminal(monkeypatch)
    assert osmosis("--debug", "-d", "odd.jsonl")[0] == 0
    assert any("caf\\xe9 ..." in line for line in screen.lines())


def test_a_line_fits_into_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    ended = RunResult(
        "data", 0, 0, success=True, llm_calls=2, tokens=722, duration_ms=310, answer="long " * 100
    )
    assert len(result_line("row-0", ended)) > 80
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert len(result_line("row-0", ended)) == 80
    failed = replace(ended, error="a reason " * 20, success=False)
    assert result_line("row-0", failed).endswith(("a reason " * 20).rstrip())


def test_one_json_document_holds_all_rows(osmosis: Osmosis):
    rollouts = osmosis.document("--limit", "2")["results"]
    assert [one["row_index"] for one in rollouts] == [0, 1]
    assert {one["token_usage"]["num_llm_calls"] for one in rollouts} == {2}
    error = osmosis.failure()
    assert "this row cannot be run" in error["message"]
    assert len(error["details"]["results"]) == 4


def test_a_wrong_key_ends_it_early(osmosis: Osmosis):
    status, out, _ = osmosis("--model", "fault-401")
    assert status == 1
    assert "1 rollout, 0 completed, 1 in error, 3 not run" in out


def test_the_results_are_written_to_a_file(osmosis: Osmosis, tmp_path: Path):
    path = tmp_path / "new" / "results.json"
    status, out, _ = osmosis("-o", str(path), "-q")
    assert status == 1
    rows, _, summary = out.partition("\n\n")
    assert [line.split()[:2] for line in rows.splitlines()] == [["row-3", "ERROR"]]
    assert summary.splitlines()[-1] == f"results: {path}"
    document = json.loads(path.read_text())
    assert document["summary"].items() >= {"total": 4, "passed": 3, "failed": 1}.items()
    first, *_, last = document["results"]
    assert (first["row_index"], first["success"], first["error"]) == (0, True, None)
    assert first["token_usage"]["num_llm_calls"] == 2
    assert (last["success"], "this row cannot be run" in last["error"]) == (False, True)


def test_debug_shows_the_conversations(osmosis: Osmosis):
    lines = [line.strip() for line in osmosis.out("--debug", "--limit", "1").splitlines()]
    assert "user       first" in lines and "assistant  once" in lines


def test_without_a_model_and_a_key_it_says_what_it_needs(unnamed: Osmosis):
    message = unnamed.error("--limit", "1", status=2)
    assert "name it with --model: embedded needs no key; or set OPENAI_API_KEY" in message


def test_without_a_model_a_provider_is_not_asked_and_a_function_needs_none(
    osmosis: Osmosis, project: Path
):
    (project / "own.py").write_text("def answer(question): return question\n")
    osmosis.group = ("test", "-d", "data.jsonl", "--limit", "1")
    message = osmosis.error("-m", "agent:agent_loop", status=2)
    assert "which model? name it with --model" in message
    osmosis.out("-m", "own:answer")


def test_with_openais_key_the_model_is_named_before_it_is_asked(
    unnamed: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    status, _, err = unnamed("--limit", "1", "--quiet")
    assert (status, err) == (0, "model: gpt-5-mini; --model names another\n")


WORKFLOW = """
import httpx
from osmosis_ai.rollout import AgentWorkflow, get_rollout_context

class Sum(AgentWorkflow):
    async def run(self, ctx):
        rollout = get_rollout_context()
        prompt = [{"role": "user", "content": f"{ctx.metadata['left']} {ctx.metadata['right']}"}]
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:
            reply = await client.post(
                f"{rollout.chat_completions_url}/chat/completions",
                headers={"Authorization": f"Bearer {rollout.api_key}"},
                json={"model": "any", "messages": prompt},
            )
        return [*prompt, reply.json()["choices"][0]["message"]]
"""


def test_a_workflow_is_given_the_task_of_its_row(osmosis: Osmosis, project: Path):
    (project / "main.py").write_text(WORKFLOW)
    (project / "tasks.jsonl").write_text(
        '{"metadata": {"left": 1, "right": 2}}\n{"metadata": "{\\"left\\": 3, \\"right\\": 4}"}\n'
    )
    given = ("-m", "main.py", "-d", "tasks.jsonl")
    rows = osmosis.document(*given)["results"]
    assert [row["answer"] for row in rows] == ["1 2", "3 4"]
    refused = osmosis.error(*given, "--max-turns", "3", status=2)
    assert "--max-turns cannot reach main.py, which is not given the number of turns" in refused
    (project / "half.jsonl").write_text(
        '{"metadata": {"left": 1}}\n{"metadata": {}, "user_prompt": "q"}\n'
    )
    assert "main.py would read None there" in osmosis.error(*given, "-d", "half.jsonl", status=2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-d", "nothing.jsonl"], "nothing.jsonl"),
        (["-m", "agent:agnet_loop"], "agent_loop"),
        (["--base-url", "localhost"], "--base-url"),
        (["--max-turns", "0"], "at least 1"),
        (["--interactive"], "--row N --debug runs one row and prints each message"),
        (["--rows", "1", "--limit", "1"], "--rows and --limit both say which rows"),
        (["--rows", "0-9"], "has 4 rows; there is no row 4 (the first row is 0)"),
        (["--map", "a=id", "--map", "b=id"], "--map: the columns 'a' and 'b' cannot both be id"),
        (["--map", "a"], "'a': expected COLUMN=NAME"),
        (["--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
        (["-o", "agent.py/results.json"], "-o/--output agent.py/results.json: "),
        (["--mcp", "tools"], "-m/--module and --mcp both name an agent"),
    ],
)
def test_wrong_use_is_status_2(osmosis: Osmosis, words: list[str], sentence: str):
    assert sentence in osmosis.error(*words, status=2)
