"""`osmosis eval CONFIG.toml`: what a config file becomes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from osmosis_cli.platform import evaluate
from tests.support.command import Osmosis

CONFIG = """\
[experiment]
rollout = "one"
entrypoint = "main.py"
model_path = "openai/gpt-5-mini"
dataset = "rows"
[evaluation]
limit = 2
n = 3
batch_size = 2
pass_threshold = 0.5
agent_workflow_timeout_s = 60
grader_timeout_s = 20.5
[env]
LOG_LEVEL = "from the config"
[secrets]
required = ["DATABASE_URL"]
"""
MAIN = """
import os
from osmosis_ai.rollout import AgentWorkflow, Grader

class Tell(AgentWorkflow):
    async def run(self, ctx):
        print("connected to", os.environ["DATABASE_URL"])
        said = os.environ["LOG_LEVEL"] + " " + os.environ["DATABASE_URL"]
        return [*ctx.prompt, {"role": "assistant", "content": said}]

class Right(Grader):
    async def grade(self, ctx):
        said = ctx.sample.messages[-1]["content"]
        ctx.set_reward(1.0 if said.startswith("from the config") else 0.0)
"""
SECRET = "postgres://not-to-be-seen:5432/anywhere"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("rollouts/one", "configs/eval", "datasets", ".git"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "rollouts/one/main.py").write_text(MAIN)
    (tmp_path / "configs/eval/one.toml").write_text(CONFIG)
    row = {"system_prompt": "", "user_prompt": "Say it.", "ground_truth": "x"}
    (tmp_path / "datasets/rows.jsonl").write_text((json.dumps(row) + "\n") * 4)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Became:
    """Stands where the command replaces itself: keeps what it was about to become."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.environment: Mapping[str, str] = {}

    def __call__(self, words: list[str], environment: Mapping[str, str]) -> None:
        self.words, self.environment = words, environment


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> Became:
    became = Became()
    monkeypatch.setattr(evaluate, "_become", became)
    return became


FROM_CONFIG = {
    "--no-env-file",  # it was read by this process
    "--agent=rollouts/one/main.py",
    "--data=datasets/rows.jsonl",
    "--model=openai/gpt-5-mini",
    "--n=3",
    "--pass-threshold=0.5",
    "--batch-size=2",
    "--limit=2",
    "--agent-timeout=60.0",
    "--grader-timeout=20.5",
}


def test_the_values_of_the_file_become_options(
    osmosis: Osmosis, became: Became, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    assert osmosis("eval", "configs/eval/one.toml") == (0, "", "")
    assert became.words[:4] == [sys.executable, "-m", "osmosis_cli", "eval"]
    assert set(became.words[4:]) == FROM_CONFIG
    assert became.environment["LOG_LEVEL"] == "from the config"
    assert became.environment["OSMOSIS_CONFIG_ENV"] == "LOG_LEVEL"  # the evaluation's identity
    assert "LOG_LEVEL" not in os.environ


def test_columns_rows_and_prompts_of_the_file_become_options(
    workspace: Path, osmosis: Osmosis, became: Became, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    columns = 'map = ["a=ground_truth", "b=id"]\nwhere = ["lang=en"]\nprompt_template = "@p.txt"\n'
    (workspace / "configs/eval/one.toml").write_text(CONFIG.replace("[env]", f"{columns}[env]"))
    assert osmosis("eval", "configs/eval/one.toml") == (0, "", "")
    assert set(became.words[4:]) - FROM_CONFIG == {
        "--map=a=ground_truth",
        "--map=b=id",
        "--where=lang=en",
        f"--prompt-template=@{workspace}/p.txt",
    }


def test_shards_on_a_cluster_have_the_variables_of_the_file(
    osmosis: Osmosis, became: Became, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    assert osmosis("eval", "configs/eval/one.toml", "--ray", "--ray-env", "MORE") == (0, "", "")
    assert {*became.words[4:]} - FROM_CONFIG == {
        "--ray=auto", "--ray-env=MORE", "--ray-env=LOG_LEVEL",
    }  # fmt: skip


def test_options_beat_the_file_and_the_rest_goes_on_untouched(
    osmosis: Osmosis, became: Became, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    words = [
        "--model",
        "embedded",
        "--n=5",
        "--gate",
        "mean >= 0.5",
        "--no-answers",
        "-q",
        "--json",
    ]
    osmosis.out(
        "eval", "configs/eval/one.toml", *words, "--dataset-file", "x.csv", "--", "-k", "row-1"
    )
    changed = {"--data=x.csv", "--model=embedded", "--n=5"}
    kept = {w for w in FROM_CONFIG if not w.startswith(("--data=", "--model=", "--n="))}
    more = {"--gate=mean >= 0.5", "--no-answers", "--quiet", "--json"}
    *own, dashes, flag, value = became.words[4:]
    assert set(own) == changed | kept | more
    assert (dashes, flag, value) == ("--", "-k", "row-1")


@pytest.mark.parametrize("words", [["--rows", "@last.json"], ["--sample=10%"]])
def test_other_ways_to_say_which_rows_replace_the_files_limit(
    osmosis: Osmosis, became: Became, words: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    assert osmosis("eval", "configs/eval/one.toml", *words)[0] == 0
    given = {"=".join(words)}
    assert set(became.words[4:]) == FROM_CONFIG - {"--limit=2"} | given


def test_a_key_travels_in_the_environment_alone(
    osmosis: Osmosis, became: Became, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    err = osmosis.error("eval", "configs/eval/one.toml", "--api-key", "sk-not-to-be-seen", status=0)
    assert err.count("warning: --api-key") == 1
    assert "sk-not-to-be-seen" not in " ".join(became.words)
    assert f"--api-key-env={evaluate.KEY_VARIABLE}" in became.words
    assert became.environment[evaluate.KEY_VARIABLE] == "sk-not-to-be-seen"


def test_env_beats_the_environment_which_beats_the_file_of_secrets(
    osmosis: Osmosis, became: Became, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LOG_LEVEL", "from the environment")
    monkeypatch.setenv("BOTH", "from the environment")
    monkeypatch.setenv("OSMOSIS_TOKEN", "of-the-platform")
    (workspace / "secrets.env").write_text(
        f"# a comment\nexport DATABASE_URL='{SECRET}'\nBOTH=file\nLOG_LEVEL=file\nPLAIN=a$HOME\n"
    )
    osmosis.out("eval", "configs/eval/one.toml", "--secrets-file", "secrets.env")
    found = became.environment
    assert found["DATABASE_URL"] == SECRET
    assert found["BOTH"] == "from the environment"
    assert found["LOG_LEVEL"] == "from the config"
    assert found["PLAIN"] == "a$HOME"
    assert "OSMOSIS_TOKEN" not in found


def test_the_file_of_secrets_beats_the_nearest_env_file(
    osmosis: Osmosis, became: Became, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("DATABASE_URL", "ONE", "TWO", "LOG_LEVEL"):
        monkeypatch.setenv(name, "")  # to be removed again after the test
        monkeypatch.delenv(name)
    (workspace / ".env").write_text("DATABASE_URL=env\nONE=env\nTWO=env\nLOG_LEVEL=env\n")
    (workspace / "secrets.env").write_text(f"DATABASE_URL={SECRET}\nTWO=secrets\nno value\n")
    status, _, err = osmosis("eval", "configs/eval/one.toml", "--secrets-file", "secrets.env")
    assert status == 0
    assert err.splitlines() == [
        "osmosis: .env sets DATABASE_URL, ONE, TWO, LOG_LEVEL",
        "warning: --secrets-file secrets.env: line 3 is no NAME=value, and is left out",
    ]
    found = became.environment
    names = ("DATABASE_URL", "ONE", "TWO", "LOG_LEVEL")
    assert [found[name] for name in names] == [SECRET, "env", "secrets", "from the config"]


@pytest.mark.parametrize(
    ("words", "ended", "message"),
    [
        (
            [],
            4,
            "configs/eval/one.toml names secrets that are not set in the environment: "
            "DATABASE_URL; export them, or give --secrets-file FILE",
        ),
        (
            ["--secrets-file", "empty.env"],
            4,
            "configs/eval/one.toml names secrets that are not set in the environment and not in "
            "empty.env: DATABASE_URL; export them",
        ),
        (
            ["--secrets-file", "gone.env"],
            4,
            "--secrets-file: gone.env cannot be read: No such file or directory",
        ),
        (["-n", "3"], 2, "No such option '-n'. Did you mean --n? Options of pytest go"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_run(
    osmosis: Osmosis, became: Became, workspace: Path, words: list[str], ended: int, message: str
):
    (workspace / "empty.env").write_text("DATABASE_URL\n")
    status, out, err = osmosis("eval", "configs/eval/one.toml", *words)
    assert (status, out) == (ended, "")
    assert message in err
    assert became.words == []


def test_with_another_model_the_key_of_the_files_model_is_not_needed(
    osmosis: Osmosis, became: Became, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("DATABASE_URL", SECRET)
    file = workspace / "configs/eval/one.toml"
    file.write_text(CONFIG.replace('["DATABASE_URL"]', '["DATABASE_URL", "OPENAI_API_KEY"]'))
    status, _, err = osmosis("eval", "configs/eval/one.toml")
    assert (status, became.words) == (4, [])
    assert ": OPENAI_API_KEY; export them" in err
    assert osmosis("eval", "configs/eval/one.toml", "--model", "embedded")[0] == 0
    monkeypatch.delenv("DATABASE_URL")
    status, _, err = osmosis("eval", "configs/eval/one.toml", "--model", "embedded")
    assert status == 4 and ": DATABASE_URL; export them" in err


def test_a_wrong_config_is_reported_as_by_check(osmosis: Osmosis, became: Became, workspace: Path):
    (workspace / "configs/eval/one.toml").write_text(CONFIG.replace("n = 3", "n = 0"))
    status, _, err = osmosis("eval", "configs/eval/one.toml")
    assert (status, became.words) == (4, [])
    assert "line 8: evaluation.n: must be an integer, 1 or more and 10,000 at most, not 0" in err


@pytest.mark.parametrize("files", [[], ["rows.jsonl", "rows.csv"]])
def test_the_dataset_must_be_one_file(
    osmosis: Osmosis, became: Became, workspace: Path, files: list[str]
):
    (workspace / "datasets/rows.jsonl").unlink()
    for name in files:
        (workspace / "datasets" / name).write_text("")
    status, _, err = osmosis("eval", "configs/eval/one.toml")
    there = "more than one file" if files else "no file"
    assert (status, became.words) == (4, [])
    assert f"there is {there} of the dataset 'rows' in datasets/ or data/" in err
    assert "--dataset-file=FILE" in err


def test_the_dataset_may_be_where_workspaces_of_03_have_it(
    osmosis: Osmosis, became: Became, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    (workspace / "data").mkdir()
    (workspace / "datasets/rows.jsonl").rename(workspace / "data/rows.jsonl")
    assert osmosis("eval", "configs/eval/one.toml") == (0, "", "")
    assert {*became.words[4:]} - FROM_CONFIG == {"--data=data/rows.jsonl"}


def test_the_help_shows_how_it_is_typed(osmosis: Osmosis):
    out = osmosis.out("eval", "configs/eval/one.toml", "--help")
    assert out.startswith("Usage: osmosis eval CONFIG.toml [OPTIONS] [-- PYTEST_ARGS]...\n")
    assert "--secrets-file" in out


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ((), ".osmosis/evals/one"),
        (("--name", "second"), ".osmosis/evals/second"),
        (("-o", "elsewhere"), "elsewhere"),
        (("-o", "elsewhere", "--name", "second"), "elsewhere/second"),
    ],
)
def test_run_is_the_same_with_results_in_a_folder(
    osmosis: Osmosis,
    became: Became,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    folder: str,
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    more = ("--rows", "3,7,10-20", "--fresh", "--max-in-flight", "8", "-y")
    assert osmosis("eval", "run", *more, *words, "configs/eval/one.toml") == (0, "", "")
    assert Path(folder).is_dir()
    assert set(became.words[4:]) == FROM_CONFIG - {"--batch-size=2", "--limit=2"} | {
        "--batch-size=8",
        "--fresh",
        "--rows=3,7,10-20",
        f"--metrics={folder}/metrics.json",
        f"--output={folder}/report.json",
    }
    assert Path(folder, "config.toml").read_text() == CONFIG


def test_a_config_that_is_not_there_leaves_no_folder_of_results(osmosis: Osmosis, workspace: Path):
    assert osmosis("eval", "run", "configs/eval/two.toml")[0] == 4
    assert not (workspace / ".osmosis").exists()


def test_the_two_names_of_the_batch_size_contradict_each_other(osmosis: Osmosis, workspace: Path):
    words = ("--max-in-flight", "3", "--batch-size", "2")
    error = osmosis.error("eval", "run", "configs/eval/one.toml", *words, status=4)
    assert "--max-in-flight and --batch-size are the same: give one of them" in error


def test_an_environment_of_its_own_needs_a_project_and_uv(
    osmosis: Osmosis, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", SECRET)
    words = ("eval", "run", "configs/eval/one.toml", "--isolated")
    err = osmosis.error(*words, status=4)
    assert "--isolated: rollouts/one/pyproject.toml is not there; leave --isolated out" in err
    project = workspace / "rollouts/one/pyproject.toml"
    project.write_text("[project\n")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        patch.setenv("PATH", str(workspace))
        assert "needs uv, which is not installed" in osmosis.error(*words, status=4)
    assert "uv cannot make the environment of rollouts/one/pyproject.toml" in osmosis(*words)[2]
    assert not (workspace / ".osmosis/evals").exists()


@pytest.mark.parametrize("name", ["..", "../other", "a/b", "/tmp/x"])
def test_a_name_of_results_leaves_not_their_folder(osmosis: Osmosis, workspace: Path, name: str):
    status, _, err = osmosis("eval", "run", "--name", name, "configs/eval/one.toml")
    assert (status, f"--name {name!r}: expected the name" in err) == (4, True)
    assert not list(workspace.glob("**/metrics.json"))


@pytest.mark.slow
def test_it_evaluates_with_the_variables_of_the_file_and_shows_no_secret(workspace: Path):
    words = ["run", "configs/eval/one.toml", "--model=embedded", "--json", "--", "-rP", "-n0"]
    quick = "-p no:hypothesispytest -p no:anyio"
    done = subprocess.run(
        [sys.executable, "-m", "osmosis_cli", "eval", *words],
        cwd=workspace,
        env={**os.environ, "DATABASE_URL": SECRET, "PYTEST_ADDOPTS": quick},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["config"]["n_runs"], report["config"]["pass_threshold"]) == (3, 0.5)
    assert [len(row["runs"]) for row in report["rows"]] == [3, 3]
    assert report["summary"]["eval_fns"]["reward"]["mean"] == 1.0
    assert "connected to ***" in done.stderr
    metrics = json.loads((workspace / ".osmosis/evals/one/metrics.json").read_text())
    assert metrics["summary"]["reward_stats"]["mean"] == 1.0
    kept = [file for file in workspace.rglob("*") if file.is_file() and ".git" not in file.parts]
    texts = [done.stdout, done.stderr, *(file.read_text("utf-8", "replace") for file in kept)]
    assert SECRET not in "".join(texts)
