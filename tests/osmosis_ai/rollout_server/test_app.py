from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.models.openai import OpenAIModel
from osmosis_ai.rollout import ModelLLM, create_app, run_rollout
from osmosis_ai.rollout.testing import request
from osmosis_ai.rollout_server.settings import ServerSettings, settings_from
from tests.osmosis_ai.rollout_server.agents import Asking
from tests.osmosis_ai.rollout_server.trainer import KEY, Serve, Trainer, served, text_answer


def test_making_an_application_loads_neither_uvicorn_nor_a_loop():
    code = (
        "from osmosis_ai.rollout import create_app, RolloutAgentLoop\n"
        "import sys\n"
        "class A(RolloutAgentLoop):\n"
        "    name = 'a'\n"
        "    def get_tools(self, request): return []\n"
        "    async def run(self, ctx): ...\n"
        "app = create_app(A())\n"
        "print(*(set(sys.modules) & {'uvicorn', 'starlette', 'httptools', 'asyncio', 'ssl'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [(Asking, r"create_app\(Asking\(\)\)"), (3, "not int"), (None, "not NoneType")],
)
def test_what_is_no_agent_is_refused_at_once(agent: object, sentence: str):
    with pytest.raises(TypeError, match=sentence):
        create_app(agent)  # type: ignore[arg-type]


def test_an_application_shows_no_key():
    app = create_app(Asking(), api_key=KEY)
    assert KEY not in repr(app) + repr(app.options)
    with pytest.raises(ValueError, match="api_key") as refused:
        create_app(Asking(), api_key="dash – key")
    assert "dash" not in str(refused.value)


def test_settings_come_from_the_environment():
    found = settings_from({"OSMOSIS_ALLOWED_TRAINERS": "http://a:1, https://b "})
    assert found.allowed_trainers == ("http://a:1", "https://b")
    with pytest.raises(ValueError, match="not a trainer's origin"):
        settings_from({"OSMOSIS_ALLOWED_TRAINERS": "trainer"})


def test_hooks_run_in_the_loop_of_the_agent(trainer: Trainer):
    loops: list[object] = []

    class Noting(Asking):
        async def run(self, ctx: object) -> object:
            loops.append(asyncio.get_running_loop())
            return await super().run(ctx)  # type: ignore[arg-type]

    async def begin() -> None:
        loops.append(asyncio.get_running_loop())

    def end() -> None:
        loops.append(asyncio.get_running_loop())

    settings = ServerSettings(local=True)
    app = create_app(Noting(), settings=settings, api_key=KEY, on_startup=begin, on_shutdown=end)
    with served(app) as running:
        running.init("r", trainer)
        trainer.result("r")
    assert len(loops) == 3
    assert len(set(map(id, loops))) == 1


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        ({"max_concurrent": "5"}, TypeError, "must be a whole number, not '5'"),
        ({"max_concurrent": 2.5}, TypeError, "must be a whole number, not 2.5"),
        ({"drain_s": True}, TypeError, "must be a number, not True"),
        ({"drain_s": float("inf")}, ValueError, "must be more than 0, not inf"),
        ({"allowed_trainers": "https://x.example"}, TypeError, "must be a tuple, not 'https"),
    ],
)
def test_a_setting_of_a_wrong_type_is_refused_before_the_first_request(
    wrong: dict[str, Any], kind: type[Exception], said: str
):
    with pytest.raises(kind, match=f"{next(iter(wrong))} {said}"):
        ServerSettings(**wrong)
    for limit in ({"max_concurrent": 0}, {"record_ttl_seconds": -1}):
        with pytest.raises(ValueError, match="more than 0"):
            create_app(Asking(), **limit)  # type: ignore[arg-type]


def test_a_hook_that_fails_keeps_the_server_from_starting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_SECRET", "a-password-of-28-characters")

    def broken() -> None:
        raise RuntimeError(f"no database at me:{os.environ['DATABASE_SECRET']}@db")

    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "lifespan.startup"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def live() -> None:
        app = create_app(Asking(), on_startup=broken)
        await app({"type": "lifespan"}, receive, send)  # type: ignore[arg-type]

    asyncio.run(live())
    shown = "RuntimeError: no database at me:***@db"
    assert sent == [{"type": "lifespan.startup.failed", "message": shown}]


def test_traces_hold_the_conversation_and_no_key_even_where_the_agent_logs_it(
    serve: Serve, trainer: Trainer, tmp_path: Path
):
    served = serve(debug_dir=tmp_path)
    served.init("r", trainer, api_key="the-trainers-own-key-99", metadata={"do": "log_key"})
    trainer.result("r")
    [path] = tmp_path.glob("*/r.jsonl")
    assert abs(int(path.parent.name) - time.time()) < 3600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["rollout_started", "note", "rollout_ended"]
    assert lines[1]["request"] == "***"
    assert lines[2]["final_messages"][-1]["content"] == "hello"
    assert "the-trainers-own-key-99" not in path.read_text()


def answer(body: dict[str, object]) -> dict[str, object]:
    """Calls a tool first, then answers; the same whoever asks."""
    messages = body["messages"]
    assert isinstance(messages, list)
    if len(messages) > 1:
        return text_answer("4")
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
    return {
        "choices": [
            {"message": {"role": "assistant", "content": None, "tool_calls": [call]}},
        ]
    }


class Tooling(Asking):
    """Answers one tool call, then gives the model's answer."""

    async def run(self, ctx):  # type: ignore[no-untyped-def]
        messages = list(ctx.request.messages)
        while True:
            found = await ctx.chat(messages, temperature=0.5)
            messages.append(found.message)
            if not found.has_tool_calls:
                return ctx.complete(messages, reward=1.0)
            for call in found.tool_calls:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "4"})


def test_an_agent_says_the_same_to_a_trainer_as_in_an_evaluation(serve: Serve, trainer: Trainer):
    trainer.answer = answer
    serve(Tooling()).init("r", trainer)
    remote = trainer.result("r")

    async def local() -> list[dict[str, object]]:
        model = OpenAIModel(
            model="default", base_url=f"{trainer.url}/v1", api_key=None, pool_size=1
        )
        asked = request("question of r")
        result = await run_rollout(Tooling(), asked, ModelLLM(model))
        await model.aclose()
        return result.final_messages

    assert remote["final_messages"] == asyncio.run(local())
    half = len(trainer.calls) // 2
    assert [call["messages"] for call in trainer.calls[:half]] == [
        call["messages"] for call in trainer.calls[half:]
    ]
