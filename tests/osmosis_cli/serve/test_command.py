from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Osmosis
from tests.support.fake_platform import TOKEN, FakePlatform, Request

AGENT = """
from osmosis_ai.rollout import RolloutAgentLoop

class MyAgent(RolloutAgentLoop):
    name = "my-agent"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        return ctx.complete(ctx.request.messages)

class Sync(MyAgent):
    def run(self, ctx):
        return None

agent_loop = MyAgent()
sync = Sync()
"""
SEED_LINES = [
    "osmosis serve -m my_agent:agent_loop",
    "osmosis serve -m my_agent:agent_loop -p 8080",
    "osmosis serve -m my_agent:agent_loop --skip-register",
    "osmosis serve -m my_agent:agent_loop --local",
    'osmosis serve -m my_agent:agent_loop --skip-register --api-key "$MY_API_KEY"',
    "osmosis serve -m my_agent:agent_loop --no-validate",
]
MY_API_KEY = "my-own-stable-key-42"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project")
    (directory / "my_agent.py").write_text(AGENT)
    return directory


class Registrations:
    """A platform that takes registrations, and asks the server how it is before it answers."""

    def __init__(self, platform: FakePlatform) -> None:
        self.platform = platform
        self.answer: tuple[int, Any] = 201, {"id": "srv-1", "health_check_result": "ok"}
        self.health: list[int] = []
        self.arrived = threading.Event()
        platform.answers["POST", "/api/cli/rollout-server/register"] = self.take

    def take(self, request: Request) -> tuple[int, Any]:
        self.health.append(get(request.body["port"], "/health")[0])
        self.arrived.set()
        return self.answer


@pytest.fixture
def registrations(platform: FakePlatform) -> Registrations:
    return Registrations(platform)


def get(port: int, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


class Running:
    """`osmosis serve` as a process; `printed` is its standard output."""

    def __init__(self, words: list[str], cwd: Path, env: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "osmosis_cli", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=cwd,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
            )
        assert self.process.stdout is not None
        self.printed = self.process.stdout.readline() + self.process.stdout.readline()
        found = re.search(r"on http://(.+):(\d+)$", self.printed, re.M)
        assert found, self.printed + log.read_text()
        self.host, self.port = found[1], int(found[2])

    @property
    def key(self) -> str:
        found = re.search(r"API key: (osm_rollout_\S+)  \(generated", self.printed)
        assert found, self.printed
        return found[1]

    def logged(self, words: str) -> str:
        """The log, once it has these words."""
        for _ in range(6000):
            if words in self.log.read_text():
                return self.log.read_text()
            self.process.poll()
            threading.Event().wait(0.01)
        raise AssertionError(self.log.read_text())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def end(self) -> None:
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()


Serve = Callable[..., Running]


@pytest.fixture
def serve(project: Path, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(line: str, cwd: Path = project, **env: str) -> Running:
            text = line.replace("$MY_API_KEY", MY_API_KEY).replace(" -p 8080", "")
            words = [*shlex.split(text)[1:], "-p", "0"]  # nobody knows which ports are free
            environ = {"OSMOSIS_CONFIG_DIR": str(tmp_path / "nobody"), **env}
            running = Running(words, cwd, environ, tmp_path / "serve.log")
            stack.callback(running.end)
            return running

        yield start


@pytest.fixture
def osmosis(osmosis: Osmosis, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Osmosis]:
    """The command in the project, without a login, where it fails before it serves."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(project / "nobody"))
    osmosis.group = ("serve", "-m", "my_agent:agent_loop")
    osmosis.hidden = (TOKEN, "Traceback", "with space")
    yield osmosis
    sys.modules.pop("my_agent", None)


# The command lines of the documentation that the project started from.


@pytest.mark.parametrize(
    "line",
    [
        SEED_LINES[0],
        pytest.param(SEED_LINES[1], marks=pytest.mark.slow),
        pytest.param(SEED_LINES[5], marks=pytest.mark.slow),
    ],
)
def test_with_a_login_the_server_registers_itself(
    serve: Serve, registrations: Registrations, line: str
):
    running = serve(line, **registrations.platform.environment)
    assert registrations.arrived.wait(60)
    [request] = registrations.platform.requests
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["user-agent"].startswith("osmosis-cli/")
    assert registrations.health == [200]
    assert request.body == {
        "host": "127.0.0.1",
        "port": running.port,
        "agent_loop_name": "my-agent",
        "api_key": running.key,
    }
    assert running.host == "0.0.0.0"
    assert get(running.port, "/platform/health", **bearer(running.key))[0] == 200
    log = running.logged("registered platform=")
    assert running.stop() == 143
    assert TOKEN not in log
    assert running.key not in running.log.read_text()


@pytest.mark.slow
def test_skip_register_needs_no_login_and_keeps_the_key(serve: Serve):
    running = serve(SEED_LINES[2])
    assert get(running.port, "/health")[0] == 200
    assert get(running.port, "/platform/health")[0] == 401
    assert get(running.port, "/platform/health", **bearer(running.key))[0] == 200
    assert running.stop() == 143
    assert "Error" not in running.log.read_text()
    assert len(running.key) >= 32


@pytest.mark.slow
def test_local_has_neither_key_nor_login_and_is_on_loopback(serve: Serve):
    running = serve(SEED_LINES[3])
    assert running.host == "127.0.0.1"
    assert "API key: none" in running.printed
    assert get(running.port, "/health")[0] == 200
    assert get(running.port, "/platform/health")[0] == 404
    assert running.stop() == 143


@pytest.mark.slow
def test_a_key_can_be_given_and_is_not_printed(serve: Serve):
    running = serve(SEED_LINES[4])
    assert get(running.port, "/platform/health", **bearer(MY_API_KEY))[0] == 200
    assert get(running.port, "/platform/health", **bearer("another"))[0] == 401
    assert running.stop() == 143
    log = running.log.read_text()
    assert MY_API_KEY not in running.printed + log
    assert "warning: --api-key shows the key" in log


@pytest.mark.slow
def test_the_key_is_better_given_by_a_variable(serve: Serve):
    running = serve(SEED_LINES[2], OSMOSIS_SERVER_API_KEY=MY_API_KEY)
    assert get(running.port, "/platform/health", **bearer(MY_API_KEY))[0] == 200
    assert "from OSMOSIS_SERVER_API_KEY" in running.printed
    assert running.stop() == 143
    assert "warning" not in running.log.read_text()


# The rest.


@pytest.mark.slow
def test_a_failed_registration_is_a_warning(serve: Serve, registrations: Registrations):
    registrations.answer = 401, {"error": f"{TOKEN} has expired"}
    running = serve(SEED_LINES[0], **registrations.platform.environment)
    log = running.logged("registration_failed")
    assert " WARNING registration_failed" in log
    assert "has ended (*** has expired): set OSMOSIS_TOKEN to a valid token" in log
    assert "HTTP Request" not in log
    assert get(running.port, "/health")[0] == 200
    assert running.stop() == 143
    assert TOKEN not in running.log.read_text()
    assert running.key not in running.log.read_text()


def test_outside_of_a_workspace_it_serves_this_machine_and_says_how_to_register(serve: Serve):
    running = serve("osmosis serve -m my_agent:agent_loop")
    assert running.host == "127.0.0.1" and "API key: none" in running.printed
    assert "after `osmosis login` the server registers" in running.log.read_text()
    assert running.stop() == 143


@pytest.mark.slow
def test_without_validation_it_is_served_all_the_same(serve: Serve):
    running = serve("osmosis serve -m my_agent:sync --local --no-validate")
    assert get(running.port, "/health")[1]["agent_loop"] == "my-agent"


def test_in_a_workspace_without_a_login_nothing_is_served(osmosis: Osmosis, project: Path):
    (project / ".git").mkdir()
    (project / "rollouts").mkdir()
    message = osmosis.error()
    assert "run `osmosis login`, set OSMOSIS_TOKEN" in message
    assert "--skip-register" in message


def test_a_token_for_another_platform_is_not_sent(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OSMOSIS_TOKEN", TOKEN)
    monkeypatch.setenv("OSMOSIS_PLATFORM_URL", platform.url)
    assert "OSMOSIS_TOKEN_PLATFORM_URL" in osmosis.error()
    assert not platform.requests


def test_an_agent_that_fails_its_checks_is_not_served(osmosis: Osmosis):
    message = osmosis.error("-m", "my_agent:sync", "--local-debug")
    assert "run: must be `async def run(self, ctx)`" in message
    assert "--no-validate" in message


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["-m", "my_agent:agnet_loop", "--local"], 1, "agent_loop"),
        (["-m", "my_agent:agnet_loop", "--local", "--no-validate"], 1, "agent_loop"),
        (["--local", "--api-key", "some-key-123"], 2, "--skip-register"),
        (["--skip-register", "--api-key", "with space"], 2, "--api-key holds a space"),
        (["--skip-register", "--api-key", ""], 2, "--api-key is empty"),
        (["--skip-register", "--allow-trainer", "trainer"], 2, "scheme://host:port"),
        (["--skip-register", "--log", "my_agent.py"], 2, "--log"),
        (["--skip-register", "-p", "70000"], 2, "70000"),
        (["--skip-register", "--log-level", "loud"], 2, "loud"),
        (["--skip-register", "--drain", "inf"], 2, "--drain"),
        (["--skip-register", "--drain", "nan"], 2, "drain_s must be more than 0, not nan"),
        (
            ["--local", "-H", "0.0.0.0"],
            2,
            "--host 0.0.0.0 can be reached from outside|write --skip-register instead of --local",
        ),
        (
            ["--skip-register", "-H", "192.0.2.1"],
            1,
            "cannot listen on 192.0.2.1:9000|choose another with -H/--host",
        ),
    ],
)
def test_wrong_use_serves_nothing_and_says_which_option(
    osmosis: Osmosis, words: list[str], status: int, sentence: str
):
    message = osmosis.error(*words, status=status)
    assert all(part in message for part in sentence.split("|"))


def test_a_wrong_origin_in_the_environment_is_said_to_be_there(
    osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OSMOSIS_ALLOWED_TRAINERS", "https://a.example x")
    message = osmosis.error("--skip-register", status=2)
    assert "OSMOSIS_ALLOWED_TRAINERS: 'x' is not a trainer's origin" in message


def test_a_port_that_is_taken_is_said(osmosis: Osmosis):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        message = osmosis.error("--local", "-p", port)
    assert f"127.0.0.1:{port}" in message
    assert "-p/--port" in message


@pytest.mark.slow
def test_an_allowed_trainer_is_the_only_one(serve: Serve):
    running = serve(f"{SEED_LINES[3]} --allow-trainer http://127.0.0.1:9")
    for url, status in (("http://127.0.0.1:9", 202), ("http://127.0.0.1:10", 422)):
        body = {"rollout_id": f"r{status}", "server_url": url, "messages": []}
        request = urllib.request.Request(
            f"http://127.0.0.1:{running.port}/v1/rollout/init", json.dumps(body).encode()
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                assert reply.status == status
        except urllib.error.HTTPError as error:
            with error:
                assert error.code == status


@pytest.mark.slow
def test_json_says_where_the_server_is(project: Path):
    command = [sys.executable, "-m", "osmosis_cli", "serve", "-m", "my_agent:agent_loop"]
    with subprocess.Popen(
        [*command, "--skip-register", "-p", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=project,
    ) as running:
        assert running.stdout is not None
        printed = json.loads(running.stdout.readline())
        port = int(printed["url"].rpartition(":")[2])
        assert get(port, "/platform/health", **bearer(printed["api_key"]))[0] == 200
        running.send_signal(signal.SIGTERM)
        rest, errors = running.communicate(timeout=60)
    assert (running.returncode, rest) == (143, "")
    assert json.loads(errors.splitlines()[-1])["error"]["code"] == "terminated"


@pytest.mark.slow
def test_local_has_no_key_under_reload_either(serve: Serve):
    running = serve(f"{SEED_LINES[3]} --reload", OSMOSIS_SERVER_API_KEY=MY_API_KEY)
    assert "API key: none" in running.printed
    assert get(running.port, "/platform/health")[0] == 404
    assert running.stop() == 143


@pytest.mark.slow
def test_reload_serves_the_changed_agent_under_the_same_key(serve: Serve, tmp_path: Path):
    cwd = tmp_path / "reloaded"
    cwd.mkdir()
    (cwd / "my_agent.py").write_text(AGENT)
    running = serve(f"{SEED_LINES[2]} --reload", cwd)
    key = running.key
    assert get(running.port, "/platform/health", **bearer(key))[1]["agent_loop"] == "my-agent"
    (cwd / "my_agent.py").write_text(AGENT.replace("my-agent", "changed"))
    future = (cwd / "my_agent.py").stat().st_mtime + 10
    os.utime(cwd / "my_agent.py", (future, future))
    for later in range(60):  # the first look at the files may come after the change
        os.utime(cwd / "my_agent.py", (future + later, future + later))
        if "agent_loop=changed" in running.log.read_text():
            break
        threading.Event().wait(0.5)
    running.logged("agent_loop=changed")
    assert get(running.port, "/platform/health", **bearer(key))[1]["agent_loop"] == "changed"
    assert running.stop() == 143
    assert key not in running.log.read_text()


@pytest.mark.slow
def test_what_serves_under_reload_ends_with_the_process_that_reloads(serve: Serve):
    running = serve(f"{SEED_LINES[3]} --reload")
    assert get(running.port, "/health")[0] == 200
    running.process.kill()
    # It holds the other end of this pipe.
    assert running.process.communicate(timeout=60)[0] == ""
