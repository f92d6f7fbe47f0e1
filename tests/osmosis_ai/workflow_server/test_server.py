from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from osmosis_ai.rollout.backend.local import LocalBackend
from osmosis_ai.rollout.server import ControllerAuth, create_rollout_server
from osmosis_ai.rollout_server.settings import ServerSettings
from osmosis_ai.rollout_server.trainer import client, delivery
from osmosis_ai.workflow_server import rollouts
from tests.osmosis_ai.rollout_server.trainer import KEY, Reply, Serve, Served, Trainer, served
from tests.osmosis_ai.workflow_server.workflows import Asking, Config, Matching, config, tidying

CONTROLLER_KEY = "a-controllers-key-0123"


class Controller(Trainer):
    """A model, and the two places that a server of workflows calls back."""

    away: int = 0
    """How many calls back are answered with 503."""
    takes_results: bool = True
    """Else all are."""

    async def _reply(self, path: str, body: dict[str, Any]) -> Reply:
        if path.startswith(("/done/", "/graded/")):
            if not self.takes_results:
                return Reply(503)
            if self.away:
                self.away -= 1
                return Reply(503)
            with self._arrived:
                self.results[path].append(body)
                self._arrived.notify_all()
            return Reply(200)
        return await super()._reply(path, body)


def asked(
    controller: Controller, rollout_id: str, wish: str = "hi", **fields: Any
) -> dict[str, Any]:
    return {
        "rollout_id": rollout_id,
        "initial_messages": [{"role": "user", "content": wish}],
        "label": "hello",
        "chat_completions_url": f"{controller.url}/v1",
        "controller_api_key": CONTROLLER_KEY,
        "completion_callback_url": f"{controller.url}/done/{rollout_id}",
        "grader_callback_url": f"{controller.url}/graded/{rollout_id}",
        "of_a_newer_controller": 1,
        **fields,
    }


@pytest.fixture
def controller() -> Iterator[Controller]:
    with Controller() as running:
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls back are repeated at once."""
    slow = client.retries
    monkeypatch.setattr(client, "retries", lambda *known: replace(slow(*known), base_s=0.01))
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE_S", 0.05)


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(key: str | None = KEY, lifespan: Any = None, **settings: Any) -> Served:
            limits: dict[str, Any] = {"local": True, "drain_s": 0.1, **settings}
            backend = LocalBackend(
                workflow=Asking,
                workflow_config=Config(concurrency={"max_concurrent": 1}),
                grader="tests.osmosis_ai.workflow_server.workflows:Matching",
            )
            app = create_rollout_server(
                backend=backend,
                lifespan=lifespan,
                settings=ServerSettings(**limits),
                api_key=key,
            )
            return stack.enter_context(served(app, key))

        yield start


def test_a_rollout_asks_the_controllers_model_and_is_reported_with_its_reward(
    serve: Serve, controller: Controller
):
    server = serve()
    for _ in range(2):  # the second one is the first again
        assert server.ask("POST", "/rollout", asked(controller, "r")).status == 202
    assert controller.result("/done/r")["status"] == "success"
    graded = controller.result("/graded/r")
    assert (graded["status"], graded["sample"]["reward"]) == ("success", 1.0)
    assert graded["sample"]["messages"][-1]["content"] == "hello"
    assert graded["sample"]["label"] == "hello"
    assert {headers["authorization"] for _, headers in controller.headers} == {
        f"Bearer {CONTROLLER_KEY}"
    }
    assert len(controller.calls) == 1
    assert server.ask("GET", "/rollout/r/status").json() == {"rollout_id": "r", "status": "success"}
    assert server.ask("GET", "/rollout/other/status").json()["status"] == "unknown"


def test_half_a_character_and_what_json_lacks_cost_no_result(serve: Serve, controller: Controller):
    server = serve()
    controller.answer = lambda body: {"choices": [{"message": {"content": "hello \ud83d"}}]}
    server.ask("POST", "/rollout", asked(controller, "r", label="hello \ud83d"))
    sample = controller.result("/graded/r")["sample"]
    assert (sample["reward"], sample["messages"][-1]["content"]) == (1.0, "hello \ud83d")
    server.ask("POST", "/rollout", asked(controller, "s", label="boundless"))
    sample = controller.result("/graded/s")["sample"]
    assert (sample["reward"], sample["metrics"]) == (0.0, {"margin": None})
    assert sample["extra_fields"] == {"steps": 3, "grader": None}


def test_another_attempt_under_an_id_runs_once_the_first_has_ended(
    serve: Serve, controller: Controller
):
    server = serve()
    again = {"grader_callback_url": f"{controller.url}/graded/again"}
    running = asked(controller, "r", "wait", agent_timeout_sec=30.0)
    assert server.ask("POST", "/rollout", running).status == 202
    refused = server.ask("POST", "/rollout", asked(controller, "r", **again))
    assert (refused.status, refused.json()["code"]) == (409, "conflict")
    server.ask("POST", "/rollout/cancel", {"all": True})
    controller.wait_for("/graded/r")
    assert server.ask("POST", "/rollout", asked(controller, "r", **again)).status == 202
    assert controller.result("/graded/again")["status"] == "success"
    unnamed = asked(controller, "s")
    del unnamed["rollout_id"]
    assert server.ask("POST", "/rollout", unnamed).status == 202
    assert len(controller.result("/graded/s")["rollout_id"]) == 32


@pytest.mark.usefixtures("impatient")
def test_a_controller_that_is_away_gets_each_result_once_it_is_back(
    serve: Serve, controller: Controller
):
    controller.away = 7  # a round is three tries
    server = serve()
    for name in ("r", "s"):  # there is one place: a result that waits for its controller has none
        assert server.ask("POST", "/rollout", asked(controller, name)).status == 202
    for name in ("r", "s"):
        assert controller.result(f"/graded/{name}")["sample"]["reward"] == 1.0
    assert {path: len(found) for path, found in controller.results.items()} == {
        "/done/r": 1, "/graded/r": 1, "/done/s": 1, "/graded/s": 1,
    }  # fmt: skip


@pytest.mark.usefixtures("impatient")
def test_results_that_the_controller_does_not_take_hold_up_new_rollouts(
    serve: Serve, controller: Controller
):
    controller.answer = lambda body: {"choices": [{"message": {"content": "x" * 20_000}}]}
    controller.takes_results = False
    server = serve(max_held_bytes=30_000, flush_s=0.1)
    for name in ("r", "s"):
        assert server.ask("POST", "/rollout", asked(controller, name)).status == 202
        while server.ask("GET", f"/rollout/{name}/status").json()["status"] != "success":
            pass
    refused = server.ask("POST", "/rollout", asked(controller, "t"))
    assert (refused.status, refused.json()["code"]) == (429, "backlog")
    controller.takes_results = True
    controller.wait_for("/graded/r", "/graded/s")
    while (again := server.ask("POST", "/rollout", asked(controller, "t"))).status == 429:
        pass
    assert again.status == 202


@pytest.mark.parametrize(
    ("fields", "completion", "grading", "said", "category"),
    [
        (
            {"wish": "raise"},
            "failure", "failure", "LookupError: no such drawer", "agent_error",
        ),
        (
            {"wish": "give up"},
            "failure", "failure", "TimeoutError", "timeout",
        ),
        ({"wish": "leave"}, "failure", "failure", "the workflow called sys.exit(3)", "agent_error"),
        (
            {"label": "leave", "grader_timeout_sec": 60.0},
            "success", "failure", "the grader called sys.exit(4)", "agent_error",
        ),
        (
            {"wish": "wait", "agent_timeout_sec": 0.05},
            "failure", "failure", "the workflow timed out after 0.05 s", "timeout",
        ),
        (
            {"label": "ungraded"},
            "success", "failure", "Matching.grade set no reward: call ctx.set_reward(x)",
            "validation_error",
        ),
    ],
    ids=["raises", "gives up", "leaves", "grader leaves", "too slow", "no reward"],
)  # fmt: skip
def test_a_failure_is_reported_and_says_why(
    serve: Serve,
    controller: Controller,
    fields: dict[str, Any],
    completion: str,
    grading: str,
    said: str,
    category: str,
):
    serve().ask("POST", "/rollout", asked(controller, "r", **fields))
    assert controller.result("/done/r")["status"] == completion
    graded = controller.result("/graded/r")
    assert (graded["status"], graded["err_message"]) == (grading, said)
    assert graded["err_category"] == category


def test_a_workflow_that_swallows_its_cancellation_is_left_behind_and_the_log_says_where(
    serve: Serve,
    controller: Controller,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(rollouts, "CLEAN_UP_S", 0.05)
    server = serve()
    server.ask("POST", "/rollout", asked(controller, "r", "swallow", agent_timeout_sec=0.05))
    assert controller.result("/graded/r")["err_message"] == "the workflow timed out after 0.05 s"
    server.ask("POST", "/rollout", asked(controller, "s", "swallow"))
    while server.ask("GET", "/rollout/s/status").json()["status"] != "running":
        pass
    server.ask("POST", "/rollout/cancel", {"all": True})
    assert controller.result("/graded/s")["err_message"] == "the rollout was cancelled"
    server.ask("POST", "/rollout", asked(controller, "t"))
    assert controller.result("/graded/t")["status"] == "success"
    assert "the workflow of rollout r did not end although it was cancelled" in caplog.text
    assert "workflows.py" in caplog.text and " in run > " in caplog.text
    assert "asyncio" not in [record.name for record in caplog.records]


def test_a_workflow_that_is_cancelled_twice_may_clean_up(serve: Serve, controller: Controller):
    server = serve()
    server.ask("POST", "/rollout", asked(controller, "r", "tidy up"))
    assert tidying.wait(60)
    for _ in range(2):
        reply = server.ask("POST", "/rollout/cancel", {"all": True}).json()
        assert reply["dispositions"]["r"] == "cancelled_running"
    assert controller.result("/graded/r")["err_message"] == "the rollout was cancelled"
    assert not tidying.is_set()


def test_a_failure_is_reported_and_logged_without_the_key(
    serve: Serve,
    controller: Controller,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("SEARCH_API_KEY", "the-key-of-a-tool-77")
    serve().ask("POST", "/rollout", asked(controller, "r", "leak"))
    assert controller.result("/done/r")["err_message"] == "PermissionError: refused: *** and ***"
    controller.wait_for("/graded/r")
    assert "PermissionError: refused: *** and ***" in caplog.text
    assert CONTROLLER_KEY not in caplog.text
    assert "the-key-of-a-tool-77" not in caplog.text


def test_rollouts_wait_for_a_place_and_can_be_cancelled(serve: Serve, controller: Controller):
    server = serve()
    for name in ("a1", "a2"):
        reply = server.ask("POST", "/rollout", asked(controller, name, "wait"))
        assert reply.status == 202
    assert server.ask("GET", "/rollout/a1/status").json()["status"] == "running"
    assert server.ask("GET", "/rollout/a2/status").json()["status"] == "queued"
    concurrency = {"max_concurrent": 1, "running": 1, "queued": 1}
    assert server.ask("GET", "/health", headers={}).json()["concurrency"] == concurrency
    full = server.ask("POST", "/rollout", asked(controller, "a3"))
    assert (full.status, full.headers["retry-after"]) == (429, "5")
    for unclear in ({"ids": ["x"], "all": True}, {"prefix": ""}, {"prefix": None}, {"all": False}):
        assert server.ask("POST", "/rollout/cancel", unclear).status == 422
    assert server.ask("GET", "/rollout/a1/status").json()["status"] == "running"
    cancelled = server.ask("POST", "/rollout/cancel", {"prefix": "a"}).json()
    assert cancelled == {"dispositions": {"a1": "cancelled_running", "a2": "cancelled_queued"}}
    for name in ("a1", "a2"):
        callback = controller.result(f"/done/{name}")
        assert (callback["status"], callback["err_message"]) == (
            "failure",
            "the rollout was cancelled",
        )
        assert controller.result(f"/graded/{name}")["status"] == "failure"
    again = server.ask("POST", "/rollout/cancel", {"ids": ["a1", "other"]}).json()
    assert again == {"dispositions": {"a1": "not_found", "other": "not_found"}}


def test_rollouts_wait_for_a_place_also_where_the_server_is_started_again(controller: Controller):
    places = Config(concurrency={"max_concurrent": 1})
    app = create_rollout_server(
        backend=LocalBackend(workflow=Asking, workflow_config=places),
        settings=ServerSettings(local=True, drain_s=0.1),
        api_key=KEY,
    )
    for time in ("first", "second"):
        with served(app, KEY) as server:
            for name in (f"{time}-runs", f"{time}-waits"):
                wanted = asked(controller, name, "wait", grader_callback_url=None)
                assert server.ask("POST", "/rollout", wanted).status == 202
            server.ask("POST", "/rollout/cancel", {"all": True})
            reply = controller.result(f"/done/{time}-waits")["err_message"]
            assert reply == "the rollout was cancelled"


def test_a_shutdown_reports_what_it_cuts_off(controller: Controller, serve: Any):
    entered = []

    @asynccontextmanager
    async def lifespan(app: Any):
        entered.append("start")
        yield
        entered.append("end")

    settings = ServerSettings(local=True, drain_s=0.05)
    backend = LocalBackend(workflow=Asking, workflow_config=config, grader=Matching)
    app = create_rollout_server(backend=backend, lifespan=lifespan, settings=settings, api_key=KEY)
    mounting = Starlette(routes=[Mount("/workflow", app)], lifespan=app.lifespan)
    for name, served_app, path in (("r", app, ""), ("s", mounting, "/workflow")):
        entered.clear()
        with served(served_app) as server:
            server.ask("POST", f"{path}/rollout", asked(controller, name, "wait"))
        assert controller.result(f"/done/{name}")["err_message"] == "the server is shutting down"
        assert entered == ["start", "end"]


def test_a_shutdown_says_how_many_calls_back_nobody_has_taken(
    controller: Controller, caplog: pytest.LogCaptureFixture
):
    controller.takes_results = False
    settings = ServerSettings(local=True, drain_s=0.1, flush_s=0.1)
    backend = LocalBackend(workflow=Asking, workflow_config=config, grader=Matching)
    with served(create_rollout_server(backend=backend, settings=settings, api_key=KEY)) as server:
        assert server.ask("POST", "/rollout", asked(controller, "r")).status == 202
        while server.ask("GET", "/rollout/r/status").json()["status"] != "success":
            pass
    assert "results_undelivered results=2" in caplog.messages


def test_who_asks_needs_the_key_and_a_whole_body_and_no_address_inside_is_called(
    serve: Serve, controller: Controller
):
    server = serve(local=False)
    body = asked(controller, "r")
    assert server.ask("POST", "/rollout", body, headers={}).status == 401
    assert server.ask("GET", "/health", headers={}).status == 200
    for wrong in (b"{", [], {"rollout_id": "r"}, {"rollout_id": " "}):
        assert server.ask("POST", "/rollout", wrong).status == 422
    refused = server.ask("POST", "/rollout", body)
    assert refused.status == 422
    said = refused.json()["error"]
    assert said.startswith("chat_completions_url does not lead to a public address")
    assert "OSMOSIS_ALLOWED_TRAINERS" in said
    assert CONTROLLER_KEY not in refused.body.decode()
    allowed = serve(local=False, allowed_trainers=(controller.url,))
    assert allowed.ask("POST", "/rollout", body).status == 202
    controller.wait_for("/graded/r")


def test_the_key_is_the_environments_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OSMOSIS_SERVER_API_KEY", KEY)
    backend = LocalBackend(workflow=Asking)
    with served(create_rollout_server(backend=backend), KEY) as server:
        assert server.ask("GET", "/rollout/r/status").status == 200
        assert server.ask("GET", "/rollout/r/status", headers={}).status == 401
    auth = ControllerAuth(api_key=CONTROLLER_KEY)
    assert CONTROLLER_KEY not in repr(auth)
    assert auth.as_bearer_headers() == {"Authorization": f"Bearer {CONTROLLER_KEY}"}
    assert ControllerAuth().as_bearer_headers() is None


def test_what_is_no_workflow_is_refused_when_the_backend_is_made():
    with pytest.raises(TypeError, match="needs as workflow a class of AgentWorkflows"):
        LocalBackend(workflow=Matching)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'Asking' names no object"):
        LocalBackend(workflow="Asking")
    with pytest.raises(TypeError, match="needs a LocalBackend, not <class"):
        create_rollout_server(backend=LocalBackend)  # type: ignore[arg-type]
