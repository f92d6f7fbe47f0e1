"""`pytest configs/eval/one.toml`: the evaluation of a config file, where the environment has it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

CONFIG = """\
[experiment]
rollout = "one"
entrypoint = "main.py"
model_path = "openai/gpt-5-mini"
dataset = "rows"
[evaluation]
limit = 3
n = 2
[env]
PLACE = "from the config"
[secrets]
required = ["DATABASE_URL", "OPENAI_API_KEY"]
"""
MAIN = """
import os
from osmosis_ai.rollout import AgentWorkflow, Grader

class Tell(AgentWorkflow):
    async def run(self, ctx):
        print("connected to", os.environ["DATABASE_URL"])
        return [*ctx.prompt, {"role": "assistant", "content": os.environ["PLACE"]}]

class Right(Grader):
    async def grade(self, ctx):
        ctx.set_reward(float(ctx.sample.messages[-1]["content"] == "from the config"))
"""
SECRET = "postgres://not-to-be-seen:5432/anywhere"
FILE = "configs/eval/one.toml"
Session = Callable[..., pytest.RunResult]


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Session:
    folder = pytester.path
    for name in ("rollouts/one", "configs/eval", "datasets", ".git"):
        (folder / name).mkdir(parents=True)
    (folder / "rollouts/one/main.py").write_text(MAIN)
    (folder / FILE).write_text(CONFIG)
    row = {"system_prompt": "", "user_prompt": "Say it."}
    (folder / "datasets/rows.jsonl").write_text((json.dumps(row) + "\n") * 4)
    monkeypatch.setenv("DATABASE_URL", SECRET)
    monkeypatch.setenv("PLACE", "from the config")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OSMOSIS_SECRET_NAMES", raising=False)

    def run(*words: str) -> pytest.RunResult:
        named = any(word.startswith("--osmosis-model=") for word in words)
        return pytester.runpytest_inprocess(
            *([] if named else ["--osmosis-model=embedded"]), *words
        )

    return run


def refusal(result: pytest.RunResult) -> str:
    assert result.ret == 4
    line = next(line for line in result.stderr.lines if line.startswith("ERROR: "))
    return line.removeprefix("ERROR: ")


def test_a_named_file_is_evaluated_as_it_says_and_its_secrets_are_masked(session: Session):
    result = session(FILE, "-rP")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["osmosis: rollouts/one/main.py on datasets/rows.jsonl, 3 x 2*"])
    result.stdout.fnmatch_lines(["*connected to [*][*][*]"])
    assert SECRET not in result.stdout.str()
    assert "OSMOSIS_SECRET_NAMES" not in os.environ


STOP = """
import pytest

def pytest_runtest_logreport(report):
    if "row-1[run-0]" in report.nodeid:
        pytest.exit("enough")
"""


@pytest.mark.slow
def test_an_evaluation_that_was_cut_short_goes_on_with_the_same_values_of_env_alone(
    session: Session, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    before = pytester.makeconftest(STOP)
    assert session(FILE, "-n0").ret == 2
    before.unlink()
    resumed = session(FILE, "-n0")
    resumed.stdout.fnmatch_lines(["osmosis: journal *, resuming: * of 6 runs done"])
    pytester.makeconftest(STOP)
    assert session(FILE, "-n0", "--osmosis-fresh").ret == 2
    before.unlink()
    file = pytester.path / FILE
    file.write_text(CONFIG.replace("from the config", "from another one"))
    monkeypatch.setenv("PLACE", "from another one")
    anew = session(FILE, "-n0")
    assert "\nosmosis: starting anew: [env] of the config file has changed (PLACE); " in (
        anew.stdout.str()
    )
    anew.assert_outcomes(failed=6)
    assert "OSMOSIS_CONFIG_ENV" not in os.environ
    kept = [path.read_text() for path in pytester.path.glob(".osmosis/runs/*/journal.jsonl")]
    headers = [text.splitlines()[0] for text in kept]
    assert all('"PLACE"' in text and "from a" not in text for text in headers)


def test_options_beat_it_and_k_and_names_of_runs_select(session: Session):
    session(FILE, "--n=1", "-k", "row-3", "--osmosis-rows=1,3").assert_outcomes(
        passed=1, deselected=1
    )
    session(f"{FILE}::row-1[run-1]").assert_outcomes(passed=1)


def test_it_takes_the_place_of_an_evaluation_in_the_ini_file(
    session: Session, pytester: pytest.Pytester
):
    pytester.makeini(
        "[pytest]\nosmosis_agent = gone:agent\nosmosis_data = gone.jsonl\nosmosis_run = explicit\n"
    )
    session(FILE, "--osmosis-limit=1").assert_outcomes(passed=2)


@pytest.mark.slow
def test_workers_evaluate_it_too(session: Session):
    session(FILE, "-n2").assert_outcomes(passed=6)


def test_a_folder_is_not_searched_for_files(session: Session):
    result = session("configs/eval", "configs")
    assert result.ret == 5
    result.assert_outcomes()


@pytest.mark.fault(
    "`pytest CONFIG.toml` where the environment lacks what the file names, or beside "
    "`--osmosis-agent`"
)
@pytest.mark.parametrize(
    ("unset", "words", "message"),
    [
        (
            ["DATABASE_URL", "PLACE"],
            [FILE],
            f"{FILE}: secrets are not set in the environment: DATABASE_URL; variables do not have "
            f"the values of [env]: PLACE; export them, or run `osmosis eval {FILE}`, which sets "
            "[env]",
        ),
        (
            [],
            [FILE, "--osmosis-model=openai/gpt-5-mini"],
            f"{FILE}: secrets are not set in the environment: OPENAI_API_KEY; export them",
        ),
        (
            [],
            [FILE, "--osmosis-agent=x:y"],
            f"{FILE} and --osmosis-agent both say what is evaluated: give one of them",
        ),
        (
            [],
            [FILE, "configs/eval/two.toml"],
            f"one config file at a time can be evaluated, not {FILE}, configs/eval/two.toml",
        ),
        (
            [],
            ["configs/training/one.toml"],
            "configs/training/one.toml is of a training run; name one of configs/eval/",
        ),
        (
            [],
            ["configs/eval/two.toml"],
            "*configs/eval/two.toml: line 1: experimnt: unknown key or table; did you mean",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_one_sentence(
    session: Session,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    unset: list[str],
    words: list[str],
    message: str,
):
    for name in unset:
        monkeypatch.delenv(name)
    (pytester.path / "configs/training").mkdir()
    (pytester.path / "configs/training/one.toml").write_text(CONFIG)
    (pytester.path / "configs/eval/two.toml").write_text(CONFIG.replace("experiment", "experimnt"))
    said = refusal(session(*words))
    assert said == message or (message.startswith("*") and message[1:] in said)


def test_without_its_dataset_the_option_that_names_one_is_reported(
    session: Session, pytester: pytest.Pytester
):
    (pytester.path / "datasets/rows.jsonl").rename(pytester.path / "other.jsonl")
    assert "there is no file of the dataset 'rows' in datasets/ or data/" in (
        said := refusal(session(FILE))
    )
    assert "--osmosis-data=FILE" in said
    session(FILE, "--osmosis-data=other.jsonl", "--n=1").assert_outcomes(passed=3)
