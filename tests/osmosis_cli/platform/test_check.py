"""`osmosis eval check` and `osmosis train check`, as typed in a workspace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Osmosis
from tests.support.pushed_workspace import EVAL, TRAINING


@pytest.fixture
def osmosis(osmosis: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Osmosis:
    """The command in a workspace with a config file of each kind."""
    for folder in ("rollouts/my-rollout", "configs/eval", "configs/training", ".git"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "rollouts/my-rollout/main.py").write_text("raise SystemExit('never run')\n")
    (tmp_path / "configs/eval/one.toml").write_text(EVAL)
    (tmp_path / "configs/training/one.toml").write_text(TRAINING)
    monkeypatch.chdir(tmp_path)
    return osmosis


@pytest.mark.parametrize(
    ("group", "path"), [("eval", "configs/eval/one.toml"), ("train", "configs/training/one.toml")]
)
def test_a_good_file_is_one_line(osmosis: Osmosis, group: str, path: str):
    said = f"{path}: valid (my-rollout, openai/gpt-5-mini on my-dataset)\n"
    assert osmosis(group, "check", path) == (0, said, "")
    assert osmosis.document(group, "check", path) == {
        "files": [{"path": path, "valid": True, "warnings": []}]
    }


def test_every_problem_of_every_file_is_reported_and_the_status_is_1(osmosis: Osmosis):
    Path("configs/eval/two.toml").write_text(EVAL.replace("main.py", "gone.py"))
    Path("configs/eval/three.toml").write_text(EVAL.replace("[secrets]", "[env]\na = 1\n[secret]"))
    paths = [f"configs/eval/{name}.toml" for name in ("one", "two", "three")]
    err = osmosis.error("eval", "check", *paths)
    assert err == (
        "Error: configs/eval/two.toml: line 3: experiment.entrypoint: there is no file "
        "rollouts/my-rollout/gone.py\n"
        "configs/eval/three.toml: 3 problems\n"
        "  line 7: env.a: must be a string without line breaks and NUL characters, not an integer\n"
        "  line 7: env.a: 'a' is no name of a variable: [A-Z_][A-Z0-9_]*\n"
        "  line 8: secret: unknown key or table; did you mean 'secrets'?\n"
    )


def test_with_json_the_problems_are_one_document_on_stderr(osmosis: Osmosis):
    Path("configs/eval/two.toml").write_text(EVAL + 'requried = ["A"]\n')
    error = osmosis.failure("eval", "check", "configs/eval/two.toml")
    assert (error["code"], error["exit_code"]) == ("invalid_config", 1)
    problem = {
        "line": 8,
        "key": "secrets.requried",
        "message": "unknown key; did you mean 'required'?",
    }
    assert error["details"]["files"] == [
        {"path": "configs/eval/two.toml", "valid": False, "problems": [problem]}
    ]


def test_a_file_of_the_other_kind_is_refused(osmosis: Osmosis):
    err = osmosis.error("eval", "check", "configs/training/one.toml")
    assert "files of this kind belong in" in err
    assert "training: unknown key or table; known: experiment, " in err


def test_warnings_go_to_stderr_and_show_no_value(osmosis: Osmosis):
    key = "sk-not-to-be-seen-0123456789"
    Path("configs/eval/one.toml").write_text(EVAL + f'[env]\nTOKEN = "{key}"\n')
    status, out, err = osmosis("eval", "check", "configs/eval/one.toml")
    assert (status, out.count("\n")) == (0, 1)
    assert err.startswith("  warning: line 9: env.TOKEN: looks like a key")
    assert key not in out + err
    status, out, err = osmosis("eval", "check", "--json", "configs/eval/one.toml")
    assert key not in out + err
    assert json.loads(out)["files"][0]["warnings"][0]["key"] == "env.TOKEN"


def test_the_name_of_a_file_is_printed_escaped(osmosis: Osmosis):
    Path("configs/eval/a\x1b[2Jb.toml").write_text(EVAL)
    _, out, _ = osmosis("eval", "check", "configs/eval/a\x1b[2Jb.toml")
    assert out.startswith(r"configs/eval/a\x1b[2Jb.toml: valid")


@pytest.mark.parametrize("words", [("eval", "schema", "--config"), ("train", "schema")])
def test_the_schema_of_a_config_file_is_printed(osmosis: Osmosis, words: tuple[str, ...]):
    assert json.loads(osmosis.out(*words))["required"][0] == "experiment"


def test_a_misspelt_subcommand_gets_the_nearest_suggested(osmosis: Osmosis):
    status, _, err = osmosis("train", "chek")
    assert status == 2 and "Did you mean 'check'" in err
