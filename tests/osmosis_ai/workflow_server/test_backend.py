from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from osmosis_ai.rollout import AgentWorkflow, LocalBackend
from osmosis_ai.workflow_server import backend
from osmosis_ai.workflow_server.protocol import ExecutionRequest


def test_a_workflow_that_swallows_every_cancellation_ends_and_the_log_says_where(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(backend, "CLEAN_UP_S", 0.01)
    swallowed = []
    ended = threading.Event()

    class Stubborn(AgentWorkflow):
        async def run(self, ctx: Any) -> None:
            while len(swallowed) < 2:
                try:
                    await asyncio.sleep(3600)
                except BaseException as error:
                    swallowed.append(type(error))
            ended.set()

    async def note(result: Any) -> None:
        assert result.err_message == "the workflow timed out after 0.01 s"

    request = ExecutionRequest(id="r", prompt=[], agent_timeout_sec=0.01)
    asyncio.run(LocalBackend(workflow=Stubborn).execute(request, note))
    assert ended.wait(60)  # in another thread
    assert swallowed == [asyncio.CancelledError, GeneratorExit]
    place = f"{__file__}:{Stubborn.run.__code__.co_firstlineno + 3} in run"
    assert "the workflow of rollout r did not end although it was cancelled" in caplog.text
    assert f"{place} > " in caplog.text
    assert "asyncio" not in [record.name for record in caplog.records]
