"""Backends of projects, as osmosis-ai 0.3 takes them: `execute`, and what they override."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

import pytest

from osmosis_ai.rollout.backend import ExecutionBackend, ResultCallback
from osmosis_ai.rollout.server import create_rollout_server
from osmosis_ai.rollout.types import (
    ExecutionRequest,
    ExecutionResult,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout_server.settings import ServerSettings
from tests.osmosis_ai.rollout_server.trainer import KEY, Served, served
from tests.osmosis_ai.workflow_server.controller import Controller, asked


class Plain(ExecutionBackend):
    """Gives each rollout the reward 0.5, and does what its prompt says."""

    async def execute(  # type: ignore[override]
        self, request: ExecutionRequest, *, on_workflow_complete: ResultCallback, **more: Any
    ) -> None:
        wish = request.prompt[-1]["content"]
        if wish == "wait":
            await asyncio.sleep(3600)
        if wish == "forget":
            return
        sample = RolloutSample(reward=0.5, remove_sample=wish == "remove")
        result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample, extra_fields={"a": 1})
        await on_workflow_complete(result)
        if more["on_grader_complete"] is not None:
            graded = RolloutStatus.FAILURE if wish == "fail" else result.status
            await more["on_grader_complete"](result.model_copy(update={"status": graded}))


class Knowing(Plain):
    """Computes rewards itself, knows where its rollouts are, and cancels them."""

    capture_final_result = True  # type: ignore[assignment]
    max_concurrency = 2  # type: ignore[assignment]
    asked: Mapping[str, Any] = MappingProxyType({})

    def has_capacity(self) -> bool:
        return not self.asked

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        if rollout_id != "mine":
            return None
        return {"status": RolloutStatus.FAILURE, "reward": 0.25, "err_message": "too cold"}

    def cancel_rollouts(self, **asked: Any) -> dict[str, str]:  # type: ignore[override]
        self.asked = asked
        return {"mine": "cancelled_running"}


@pytest.fixture
def serve() -> Iterator[Callable[[ExecutionBackend], Served]]:
    with ExitStack() as stack:

        def start(backend: ExecutionBackend) -> Served:
            settings = ServerSettings(local=True, drain_s=0.1)
            app = create_rollout_server(backend=backend, settings=settings, api_key=KEY)
            return stack.enter_context(served(app, KEY))

        yield start


Serve = Callable[[ExecutionBackend], Served]


def test_a_backend_needs_only_execute(serve: Serve, controller: Controller):
    backend = Plain()
    assert (backend.max_concurrency, backend.capture_final_result) == (0, False)
    server = serve(backend)
    assert server.ask("GET", "/health", headers={}).json() == {"status": "ok"}
    unnamed = {**asked(controller, "r"), "rollout_id": None}
    assert server.ask("POST", "/rollout", unnamed).status == 202
    graded = controller.result("/graded/r")
    assert (graded["status"], graded["sample"]["reward"]) == ("success", 0.5)
    status = server.ask("GET", f"/rollout/{graded['rollout_id']}/status").json()
    assert status == {"rollout_id": graded["rollout_id"], "status": "success"}
    assert server.ask("POST", "/rollout", asked(controller, "w", "wait")).status == 202
    cancelled = server.ask("POST", "/rollout/cancel", {"ids": ["w", "x"]}).json()
    assert cancelled == {"dispositions": {"w": "cancelled_running", "x": "not_found"}}
    assert controller.result("/done/w")["err_message"] == "the rollout was cancelled"


@pytest.mark.parametrize(("wish", "status"), [("remove", "success"), ("fail", "failure")])
def test_a_controller_gets_the_reward_of_kept_and_graded_samples_only(
    serve: Serve, controller: Controller, wish: str, status: str
):
    serve(Plain()).ask("POST", "/rollout", asked(controller, "r", wish))
    graded = controller.result("/graded/r")
    assert (graded["status"], graded["sample"]["reward"]) == (status, None)


def test_a_backend_that_reports_no_result_is_a_failure_for_the_controller(
    serve: Serve, controller: Controller
):
    serve(Plain()).ask("POST", "/rollout", asked(controller, "r", "forget"))
    for place in ("/done/r", "/graded/r"):
        told = controller.result(place)
        assert (told["status"], told["err_message"]) == (
            "failure", "the backend ended without a result"
        )  # fmt: skip


def test_what_a_backend_overrides_is_what_the_server_answers(serve: Serve, controller: Controller):
    backend = Knowing()
    server = serve(backend)
    ungraded = asked(controller, "r", "fail", grader_callback_url=None)
    assert server.ask("POST", "/rollout", ungraded).status == 202
    assert controller.result("/done/r")["status"] == "success"
    # Its own result of grading counts, although no call back is about it.
    assert server.ask("GET", "/rollout/r/status").json()["status"] == "failure"
    assert server.ask("GET", "/rollout/mine/status").json() == {
        "rollout_id": "mine", "status": "failure", "reward": 0.25, "err_message": "too cold"
    }  # fmt: skip
    for name in ("mine", "other"):
        assert server.ask("POST", "/rollout", asked(controller, name, "wait")).status == 202
    cancelled = server.ask("POST", "/rollout/cancel", {"all": True}).json()
    assert backend.asked == {"ids": None, "prefix": None, "all": True}
    assert cancelled == {
        "dispositions": {"mine": "cancelled_running", "other": "cancelled_running"}
    }
    controller.wait_for("/done/other")  # the server's; the backend ends its own
    assert server.ask("POST", "/rollout", asked(controller, "s")).status == 429
    assert "/done/mine" not in controller.results
