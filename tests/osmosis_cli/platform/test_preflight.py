"""Pre-flight: what trying a rollout on this machine finds before it is submitted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from osmosis_ai.platform.config_file import ConfigFile, load_config
from osmosis_ai.platform.config_models import EvalConfig
from osmosis_cli.platform import preflight as module
from osmosis_cli.platform.findings import Severity
from osmosis_cli.platform.preflight import Preflight, preflight_options, try_rollout

SECRET = "sk-not-to-be-seen-anywhere"
ENV_VALUE = "not-to-be-seen-either"
CONFIG = f"""\
[experiment]
rollout = "one"
entrypoint = "main.py"
model_path = "openai/gpt-5-mini"
dataset = "rows"
[env]
PLACE = "{ENV_VALUE}"
[secrets]
required = ["DATABASE_URL"]
"""
WORKFLOW = """
from osmosis_ai.rollout import AgentWorkflow, Grader
class Tell(AgentWorkflow):
    async def run(self, ctx):
        return [*ctx.prompt, {"role": "assistant", "content": "it"}]
"""
GRADER = """
class Right(Grader):
    async def grade(self, ctx):
        ctx.set_reward(1.0)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigFile[EvalConfig]:
    for folder in ("rollouts/one", "configs/eval", ".git"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "rollouts/one/main.py").write_text(WORKFLOW + GRADER)
    (tmp_path / "configs/eval/one.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return load_config(EvalConfig, Path("configs/eval/one.toml"))


# ---- the import, in a process of its own


@pytest.mark.slow
def test_code_that_is_in_order_is_not_talked_about(file: ConfigFile[EvalConfig]):
    told: list[str] = []
    assert try_rollout(file, Preflight(), root=Path.cwd(), report=told.append) == []
    assert told == ["importing rollouts/one/main.py"]


@pytest.mark.fault("a rollout cannot be imported, hangs or ends its process when it is")
def test_what_the_code_raises_is_told_with_its_place_and_no_value_of_env(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    monkeypatch.setenv("OSMOSIS_TOKEN", SECRET)
    Path("rollouts/one/main.py").write_text(
        "import os\nprint('noise')\nos.system('echo noise')\n"
        "assert 'OSMOSIS_TOKEN' not in os.environ\n"
        "def look():\n"
        "    secret = os.environ['DATABASE_URL']\n"
        "    raise ValueError(os.environ['PLACE'] + '\\n' + secret + 'y' * 9999)\n"
        "look()\n"
    )
    [finding] = try_rollout(file, Preflight(), root=Path.cwd())
    assert (finding.severity, finding.code) == (Severity.WARNING, "import")
    assert finding.message.startswith(
        "rollouts/one/main.py cannot be imported: ValueError: *** ***yyy"
    )
    assert finding.message.endswith("yyy (rollouts/one/main.py:7)")
    assert len(finding.message) < 700


@pytest.mark.fault("a rollout cannot be imported, hangs or ends its process when it is")
def test_a_package_that_is_not_installed_here_is_not_checked(file: ConfigFile[EvalConfig]):
    Path("rollouts/one/main.py").write_text("\nimport no_such_package.part\n")
    [finding] = try_rollout(file, Preflight(strict=True), root=Path.cwd())
    assert (finding.severity, finding.code) == (Severity.NOT_CHECKED, "not_installed")
    assert str(finding) == (
        "rollouts/one/main.py:2 imports no_such_package, which is not installed here; the code "
        "was not checked: the platform installs what the rollout's pyproject.toml names"
    )


@pytest.mark.fault("a rollout cannot be imported, hangs or ends its process when it is")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "severity", "name", "told"),
    [
        ("x = (", Severity.WARNING, "import", "SyntaxError: '(' was never closed"),
        ("import os.nope", Severity.WARNING, "import", "main.py:1 imports os.nope, which its"),
        ("import os; os._exit(3)", Severity.WARNING, "import", "it ended the process (status 3)"),
        ("import os; os.abort()", Severity.WARNING, "import", "it ended the process (signal 6)"),
        ("raise SystemExit(3)", Severity.WARNING, "import", "SystemExit: 3"),
        (
            "import os; os.environ['DATABASE_URL']",
            Severity.NOT_CHECKED,
            "needs_secret",
            "DATABASE_URL is not set on this machine; export it or add it to .env",
        ),
        ("X = 1", Severity.WARNING, "no_agent", "defines no agent loop, no workflow and"),
        (WORKFLOW, Severity.WARNING, "no_grader", "defines and imports no Grader"),
        (
            WORKFLOW + "class Other(Tell): pass\n",
            Severity.WARNING,
            "no_agent",
            "has several agents (Other, Tell)",
        ),
    ],
)
def test_each_way_in_which_code_cannot_be_used(
    file: ConfigFile[EvalConfig], code: str, severity: Severity, name: str, told: str
):
    Path("rollouts/one/main.py").write_text(code)
    [finding] = try_rollout(file, Preflight(), root=Path.cwd())
    assert (finding.severity, finding.code) == (severity, name)
    assert told in str(finding)
    assert "--osmosis" not in str(finding)


@pytest.mark.fault("a rollout cannot be imported, hangs or ends its process when it is")
@pytest.mark.slow
def test_code_that_hangs_is_ended_with_its_children(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    os.mkfifo("alive")
    alive = os.open("alive", os.O_RDONLY | os.O_NONBLOCK)
    Path("rollouts/one/main.py").write_text(
        "import subprocess, time\n"
        "subprocess.Popen(['sleep', '600'], stdout=open('alive', 'w'))\ntime.sleep(600)\n"
    )
    monkeypatch.setattr(module, "IMPORT_LIMIT_S", 0.5)
    [finding] = try_rollout(file, Preflight(), root=Path.cwd())
    assert finding.message.endswith("cannot be imported: it was not done after 0.5 s")
    os.set_blocking(alive, True)
    assert os.read(alive, 1) == b""  # once no process has it open
    os.close(alive)


# ---- what is made of it


@pytest.mark.slow
def test_an_agent_that_is_no_workflow_is_a_warning_and_an_error_if_strict(
    file: ConfigFile[EvalConfig],
):
    Path("rollouts/one/main.py").write_text("async def agent(ctx): return ctx.complete([])\n")
    for chosen, severity in (
        (Preflight(), Severity.WARNING),
        (Preflight(strict=True), Severity.REFUSED),
    ):
        [finding] = try_rollout(file, chosen, root=Path.cwd())
        assert (finding.severity, finding.code) == (severity, "no_workflow")


def test_files_that_are_not_the_commits_are_told(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "_run", lambda *_: None)
    [finding] = try_rollout(file, Preflight(), root=Path.cwd(), is_commit=False)
    assert finding.message == (
        "the files here were tried, which are not those of the commit that runs"
    )


def test_nothing_is_started_where_nothing_is_to_be_checked(file: ConfigFile[EvalConfig]):
    told: list[str] = []
    assert try_rollout(file, Preflight(is_off=True), root=Path.cwd(), report=told.append) == []
    assert told == []


def test_options_that_contradict_each_other_are_refused():
    @click.command()
    @preflight_options
    def command(**values: Any) -> None:
        Preflight(**values)
        raise AssertionError

    result = CliRunner().invoke(command, ["--no-check", "--strict"])
    assert result.exit_code == 2
    assert "--no-check leaves out what --strict asks for" in result.output
