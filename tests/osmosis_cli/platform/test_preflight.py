"""Pre-flight: what trying a rollout on this machine finds before it is submitted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from osmosis_ai.platform.config_file import ConfigFile, load_config
from osmosis_ai.platform.config_models import EvalConfig, TrainingConfig
from osmosis_cli.platform import preflight as module
from osmosis_cli.platform.findings import Finding, Severity
from osmosis_cli.platform.preflight import (
    Ended,
    Preflight,
    TriedRollout,
    preflight_options,
    run_row,
    try_rollout,
)

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
ROWS = Preflight(run_row=True)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigFile[EvalConfig]:
    for folder in ("rollouts/one", "configs/eval", "datasets", ".git"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "rollouts/one/main.py").write_text(WORKFLOW + GRADER)
    (tmp_path / "configs/eval/one.toml").write_text(CONFIG)
    row = {"system_prompt": "", "user_prompt": "Say it."}
    (tmp_path / "datasets/rows.jsonl").write_text((json.dumps(row) + "\n") * 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return load_config(EvalConfig, Path("configs/eval/one.toml"))


class FakeRollout(TriedRollout):
    """Gives what it was given instead of starting a process."""

    answers: list[Ended]
    words: list[list[str]]

    def run(self, words: Sequence[str], *, limit_s: float) -> Ended:
        self.words.append(list(words))
        return self.answers.pop(0)


def found_by(
    file: ConfigFile[EvalConfig],
    monkeypatch: pytest.MonkeyPatch,
    *answers: Ended | dict[str, Any],
    chosen: Preflight = ROWS,
    is_commit: bool = True,
) -> tuple[list[Finding], list[list[str]]]:
    """What is made of these answers of processes, and the words of each."""
    fake = FakeRollout.of(file, Path.cwd())
    object.__setattr__(fake, "answers", [ended(answer) for answer in answers])
    object.__setattr__(fake, "words", words := [])
    monkeypatch.setattr(TriedRollout, "of", lambda *_: fake)
    return try_rollout(file, chosen, root=Path.cwd(), is_commit=is_commit), words


def ended(answer: Ended | dict[str, Any]) -> Ended:
    return answer if isinstance(answer, Ended) else Ended(0, json.dumps(answer), "")


IMPORTED = {"is_workflow": True, "has_grader": True}


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
    [finding] = try_rollout(file, ROWS, root=Path.cwd())
    assert (finding.severity, finding.code) == (Severity.WARNING, "import")
    assert finding.message.startswith(
        "rollouts/one/main.py cannot be imported: ValueError: *** ***yyy"
    )
    assert finding.message.endswith("yyy (rollouts/one/main.py:7)")
    assert len(finding.message) < 700


@pytest.mark.fault("a rollout cannot be imported, hangs or ends its process when it is")
def test_a_package_that_is_not_installed_here_is_not_checked(file: ConfigFile[EvalConfig]):
    Path("rollouts/one/main.py").write_text("\nimport no_such_package.part\n")
    [finding] = try_rollout(file, replace(ROWS, strict=True), root=Path.cwd())
    assert (finding.severity, finding.code) == (Severity.NOT_CHECKED, "not_installed")
    assert str(finding) == (
        "rollouts/one/main.py:2 imports no_such_package, which is not installed here; the code "
        "was not checked: the platform installs what rollouts/one/pyproject.toml names"
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
    [finding] = try_rollout(file, ROWS, root=Path.cwd())
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


def test_an_agent_that_is_no_workflow_is_a_warning_and_an_error_if_strict(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    loop = {"is_workflow": False, "has_grader": False}
    [finding], _ = found_by(file, monkeypatch, loop, chosen=Preflight())
    assert (finding.severity, finding.code) == (Severity.WARNING, "no_workflow")
    [finding], _ = found_by(file, monkeypatch, loop, chosen=Preflight(strict=True))
    assert finding.severity is Severity.REFUSED


def test_files_that_are_not_the_commits_are_told(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    [finding], _ = found_by(file, monkeypatch, IMPORTED, chosen=Preflight(), is_commit=False)
    assert finding.message == (
        "the files here were tried, which are not those of the commit that runs"
    )


def test_nothing_is_started_where_nothing_is_to_be_checked(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    found, words = found_by(file, monkeypatch, chosen=Preflight(is_off=True))
    assert (found, words) == ([], [])


# ---- rows


def test_a_row_that_runs_is_named_also_when_it_does_not_pass(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    [finding], words = found_by(file, monkeypatch, IMPORTED, Ended(0, "", ""))
    assert (finding.severity, str(finding)) == (
        Severity.CHECKED,
        "1 row ran against the embedded endpoint",
    )
    assert {"--model=embedded", "--limit=1", "--n=1", "--no-journal"} <= set(words[1])
    assert {"--agent=rollouts/one/main.py", "--data=datasets/rows.jsonl"} <= set(words[1])


@pytest.mark.fault("a workflow crashes on its first row, or has a wrong signature")
def test_a_row_that_fails_is_a_warning_with_the_next_step(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    printed = "FAILED datasets/rows.jsonl::row-0[run-0] - TypeError: run() takes 1\n1 failed\n"
    [finding], _ = found_by(file, monkeypatch, IMPORTED, Ended(1, printed, ""))
    assert (finding.severity, finding.code) == (Severity.WARNING, "row_failed")
    assert str(finding) == (
        "a row fails against the embedded endpoint (TypeError: run() takes 1): `osmosis eval "
        "configs/eval/one.toml --model embedded --limit 1` shows where"
    )


def test_a_row_that_lacks_a_secret_is_not_checked(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    printed = "FAILED datasets/rows.jsonl::row-0[run-0] - KeyError: 'DATABASE_URL'\n"
    [finding], _ = found_by(file, monkeypatch, IMPORTED, Ended(1, printed, ""))
    assert (finding.severity, finding.code) == (Severity.NOT_CHECKED, "needs_secret")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Ended(4, "", "x\nERROR: --model: no such\n"), "no row could be run: --model: no such"),
        (Ended(-9, "", ""), "no row could be run: status -9"),
        (Ended(-9, "", "", False), "no row could be run: it took too long"),
    ],
)
def test_a_row_that_cannot_be_run_is_a_warning(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch, answer: Ended, message: str
):
    [finding], _ = found_by(file, monkeypatch, IMPORTED, answer)
    assert (finding.severity, finding.code) == (Severity.WARNING, "rows_not_run")
    assert finding.message == message


def test_without_a_local_dataset_that_is_told(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    Path("datasets/rows.jsonl").unlink()
    [finding], _ = found_by(file, monkeypatch, IMPORTED)
    told = "no row was run: there is no file of the dataset 'rows' in datasets/ or data/"
    assert finding.message == told


@pytest.mark.fault("a workflow crashes on its first row, or has a wrong signature")
@pytest.mark.slow
def test_a_real_row_runs_and_leaves_nothing_behind(file: ConfigFile[EvalConfig]):
    before = sorted(Path.cwd().rglob("*"))
    rollout = TriedRollout.of(file, Path.cwd())
    assert str(run_row(rollout)) == "1 row ran against the embedded endpoint"
    Path("rollouts/one/main.py").write_text((WORKFLOW + GRADER).replace("run(self, ctx)", "run()"))
    assert "(TypeError: Tell.run() takes 0 positional" in run_row(rollout).message
    assert sorted(Path.cwd().rglob("*")) == before
    Path("rollouts/one/main.py").write_text(
        "import os\n"
        + WORKFLOW
        + GRADER.replace("        ctx", "        raise KeyError(os.environ['PLACE'])\n        ctx")
    )
    assert "(`reward` raised KeyError: '***')" in run_row(rollout).message


def test_a_training_config_is_tried_the_same_way(
    file: ConfigFile[EvalConfig], monkeypatch: pytest.MonkeyPatch
):
    Path("configs/training").mkdir()
    path = Path("configs/training/one.toml")
    path.write_text(CONFIG + "[training]\nagent_workflow_timeout_s = 7\n")
    training: Any = load_config(TrainingConfig, path)
    failed = Ended(1, "FAILED rows - no", "")
    [finding], _ = found_by(training, monkeypatch, IMPORTED, failed)
    assert "osmosis eval -m rollouts/one/main.py -d datasets/..." in finding.cure


# ---- the options


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], Preflight()),
        (["--no-check"], Preflight(is_off=True)),
        (["--strict", "--preflight"], Preflight(strict=True, run_row=True)),
    ],
)
def test_options_become_what_is_tried(words: list[str], chosen: Preflight):
    seen: list[Preflight] = []

    @click.command()
    @preflight_options
    def command(**values: Any) -> None:
        seen.append(Preflight(**values))

    assert CliRunner().invoke(command, words).exit_code == 0
    assert seen == [chosen]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--no-check", "--strict"], "--no-check leaves out what the other options ask for"),
    ],
)
def test_options_that_contradict_each_other_are_refused(words: list[str], told: str):
    @click.command()
    @preflight_options
    def command(**values: Any) -> None:
        Preflight(**values)
        raise AssertionError

    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2
    assert told in result.output
