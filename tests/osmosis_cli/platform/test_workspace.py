"""`osmosis workspace init` and `osmosis rollout init`, and what can be done right after them."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from osmosis_ai.platform.config_file import read_config
from osmosis_ai.platform.config_models import EvalConfig, RunConfig, TrainingConfig
from osmosis_ai.workflow_server.app import RolloutServer
from tests.support.command import Osmosis
from tests.support.project import NO_NEIGHBOURS

WORKSPACE = {
    "rollouts/.gitkeep",
    "datasets/.gitkeep",
    "configs/eval/.gitkeep",
    "configs/training/.gitkeep",
    "configs/eval.schema.json",
    "configs/training.schema.json",
    ".gitignore",
}
ROLLOUT = {
    "rollouts/one/main.py",
    "rollouts/one/pyproject.toml",
    "datasets/one.jsonl",
    "configs/eval/one.toml",
    "configs/training/one.toml",
}


@pytest.fixture
def osmosis(
    osmosis: Osmosis, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Osmosis]:
    """The command in an empty directory; afterwards modules of the workspace are forgotten."""
    monkeypatch.setenv("PYTEST_ADDOPTS", NO_NEIGHBOURS)
    yield osmosis
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(pytester.path)):
            del sys.modules[name]


def written(out: str) -> set[str]:
    return set(json.loads(out)["written"])


def test_a_new_workspace_is_a_git_work_tree_with_everything_in_it(
    osmosis: Osmosis, pytester: pytest.Pytester
):
    out = osmosis.out("workspace", "init", "--json")
    assert json.loads(out)["root"] == str(pytester.path)
    assert written(out) == WORKSPACE
    assert (pytester.path / ".git").is_dir()
    ignored = (pytester.path / ".gitignore").read_text()
    assert ignored == ".osmosis/\n.env\n__pycache__/\n"


def test_repeated_it_replaces_nothing_and_adds_what_is_missing(
    osmosis: Osmosis, pytester: pytest.Pytester
):
    (pytester.path / ".gitignore").write_text("*.pyc\n.env")
    osmosis("workspace", "init")
    assert (pytester.path / ".gitignore").read_text() == "*.pyc\n.env\n.osmosis/\n__pycache__/\n"
    schema = pytester.path / "configs/eval.schema.json"
    schema.write_text("mine")
    status, out, _ = osmosis("workspace", "init")
    assert (status, out.splitlines()[0]) == (0, f"nothing is missing in {pytester.path}")
    assert schema.read_text() == "mine"


@pytest.mark.fault("Git would commit `.env` or `.osmosis` although `.gitignore` names them")
def test_what_git_would_commit_all_the_same_is_warned_about(
    osmosis: Osmosis, pytester: pytest.Pytester
):
    osmosis("workspace", "init")
    for name in (".env", ".osmosis/runs/x"):
        (pytester.path / name).parent.mkdir(parents=True, exist_ok=True)
        (pytester.path / name).write_text("")
        subprocess.run(["git", "add", "--force", name], check=True, cwd=pytester.path)
    (pytester.path / ".gitignore").write_bytes(b"caf\xe9\n.env\n!.env\n")
    status, out, err = osmosis("workspace", "init", "--json")
    assert (status, written(out)) == (0, {".gitignore"})
    assert err.splitlines() == [
        "warning: Git does not ignore .env, although .gitignore names it: a later pattern undoes "
        "it, or the file is a link",
        "warning: .osmosis is committed already: `git rm -r --cached .osmosis` takes it out",
        "warning: .env is committed already: `git rm -r --cached .env` takes it out",
    ]


def test_a_gitignore_that_cannot_be_changed_is_reported(
    osmosis: Osmosis, pytester: pytest.Pytester
):
    (pytester.path / ".gitignore").mkdir()
    err = osmosis.error("workspace", "init")
    assert err == f"Error: {pytester.path}/.gitignore cannot be changed: Is a directory\n"


def test_from_a_subfolder_the_top_of_the_work_tree_is_the_workspace(
    osmosis: Osmosis, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    subprocess.run(["git", "init", "--quiet"], check=True, cwd=pytester.path)
    (pytester.path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(pytester.path / "deep" / "er")
    assert osmosis("workspace", "init")[0] == 0
    assert (pytester.path / "rollouts").is_dir()


def test_without_git_that_is_said(
    osmosis: Osmosis, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(pytester.path))
    err = osmosis.error("workspace", "init")
    assert err == "Error: a workspace is a Git work tree, and git is not installed\n"


def test_a_new_rollout_passes_its_checks_and_runs_at_once(
    osmosis: Osmosis, pytester: pytest.Pytester
):
    osmosis("workspace", "init")
    status, out, _ = osmosis("rollout", "init", "one")
    assert status == 0
    listed = {line.strip() for line in out.splitlines()}
    assert listed >= ROLLOUT
    for group, folder in (("eval", "eval"), ("train", "training")):
        osmosis.out(group, "check", f"configs/{folder}/one.toml")
    command = next(line for line in out.splitlines() if line.startswith("  osmosis eval -m"))
    status, out, err = osmosis(*command.split()[1:])
    assert status == 0, out + err
    assert "5 passed" in out


@pytest.mark.parametrize(
    ("model", "secrets"),
    [
        ("embedded", []),
        ("embedded/wrong", []),
        ("anthropic/claude-x", ["ANTHROPIC_API_KEY"]),
        ("gpt-5", ["OPENAI_API_KEY"]),
        ("ollama/llama", []),
    ],
)
def test_model_and_limit_are_written_into_the_config_of_evaluations(
    osmosis: Osmosis, pytester: pytest.Pytester, model: str, secrets: list[str]
):
    osmosis("workspace", "init")
    out = osmosis.out("rollout", "init", "one", "--model", model, "--limit", "3")
    assert out.endswith("next:\n  osmosis eval configs/eval/one.toml\n") == (not secrets)
    config = read_config(EvalConfig, pytester.path / "configs/eval/one.toml").config
    assert (config.experiment.model_path, config.secrets.required) == (model, secrets)
    assert config.evaluation is not None
    assert (config.evaluation.limit, config.evaluation.n) == (3, None)
    training = read_config(TrainingConfig, pytester.path / "configs/training/one.toml").config
    assert training.experiment.model_path == "Qwen/Qwen3.6-35B-A3B"


def test_a_model_or_a_limit_that_is_none_is_refused(osmosis: Osmosis, pytester: pytest.Pytester):
    osmosis("workspace", "init")
    for words in (("--model", "a b"), ("--model", ""), ("--limit", "0")):
        status, out, err = osmosis("rollout", "init", "one", *words)
        assert (status, out, words[0] in err) == (2, "", True)
    assert not (pytester.path / "rollouts" / "one").exists()


@pytest.mark.parametrize(
    ("kind", "path"),
    [(EvalConfig, "configs/eval/one.toml"), (TrainingConfig, "configs/training/one.toml")],
)
def test_its_config_files_name_every_key_and_are_right_with_all_of_them(
    osmosis: Osmosis, pytester: pytest.Pytester, kind: type[RunConfig], path: str
):
    osmosis("workspace", "init")
    osmosis("rollout", "init", "one")
    file = pytester.path / path
    text = file.read_text()
    assert text.startswith(f"#:schema ../{file.parent.name}.schema.json\n")
    assert (file.parent / f"../{file.parent.name}.schema.json").exists()
    whole = re.sub(r"^# ", "", text, flags=re.MULTILINE)
    file.write_text(re.sub(r"^branch = .*", "", whole, flags=re.MULTILINE))  # or commit_sha
    assert whole != file.read_text()
    config = read_config(kind, file).config
    for name in kind.model_fields:
        section = getattr(config, name)
        if name not in ("advanced", "env"):
            assert section.model_fields_set | {"branch"} >= {*type(section).model_fields}, name


def test_its_main_file_serves_it_to_a_controller(
    osmosis: Osmosis, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    served: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr("uvicorn.run", lambda app, **values: served.append((app, values)))
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_PORT", "8123")
    osmosis("workspace", "init")
    osmosis("rollout", "init", "one")
    runpy.run_path(str(pytester.path / "rollouts/one/main.py"), run_name="__main__")
    ((app, values),) = served
    assert isinstance(app, RolloutServer)
    assert values == {"host": "0.0.0.0", "port": 8123}


def test_a_rollout_that_is_there_is_left_alone(osmosis: Osmosis, pytester: pytest.Pytester):
    osmosis("workspace", "init")
    dataset = pytester.path / "datasets" / "one.jsonl"
    dataset.write_text("mine")
    err = osmosis.error("rollout", "init", "one")
    assert err == "Error: choose another name; there already: datasets/one.jsonl\n"
    assert dataset.read_text() == "mine"
    assert not (pytester.path / "rollouts" / "one").exists()


@pytest.mark.parametrize("name", ["../x", ".", "-x", "", "é", "a\n", "x" * 101])
def test_a_name_that_is_no_folder_is_refused(osmosis: Osmosis, name: str):
    osmosis("workspace", "init")
    assert "cannot name a rollout" in osmosis.error("rollout", "init", "--", name, status=2)


def test_outside_of_a_workspace_the_next_step_is_said(osmosis: Osmosis):
    assert "is in no Git work tree" in osmosis.error("rollout", "init", "one")
