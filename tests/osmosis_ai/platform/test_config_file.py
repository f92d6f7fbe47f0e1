"""Config files: what is taken, and every rule with the sentence that tells of it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.platform import workspace
from osmosis_ai.platform.config_file import ConfigError, load_config, read_config
from osmosis_ai.platform.config_models import (
    EvalConfig,
    RunConfig,
    TrainingConfig,
    json_schema,
)

EVAL = """\
[experiment]
rollout = "my-rollout" # Rollout directory under rollouts/
entrypoint = "main.py" # Entrypoint relative to rollout dir
model_path = "openai/gpt-5-mini" # LiteLLM-style model name for the evaluation policy
dataset = "my-platform-dataset" # Platform dataset name from `osmosis dataset list`
# commit_sha = "0123abc" # Pin code to a specific commit

[evaluation]
# Optional. Omit values to use platform defaults.
# limit = 200 # First N rows; omit for random 10% sample
# n = 1 # Evaluation attempts per row
# batch_size = 1 # Rows evaluated per batch
# pass_threshold = 1.0 # Minimum passing score
# agent_workflow_timeout_s = 450 # Agent workflow timeout per row
# grader_timeout_s = 150 # Grader timeout per row

# [env]
# LOG_LEVEL = "INFO" # Non-secret literal env var

[secrets]
required = ["OPENAI_API_KEY"]
"""
"""The config file of an evaluation as the documentation prints it."""

TRAINING = """\
[experiment]
rollout = "my-rollout" # Rollout directory under rollouts/
entrypoint = "main.py" # Entrypoint file name
model_path = "Qwen/Qwen3.6-35B-A3B" # Supported base model
dataset = "my-dataset" # Platform dataset name
# commit_sha = "0123abc" # Pin code to a commit

[training]
# lr = 1e-6 # Learning rate
# total_epochs = 1 # Training epochs
# n_samples_per_prompt = 8 # Rollout samples per prompt
# rollout_batch_size = 32 # Rollout batch size
# max_prompt_length = 8192 # Max prompt tokens
# max_response_length = 8192 # Max response tokens
# agent_workflow_timeout_s = 450 # Agent timeout per row
# grader_timeout_s = 150 # Grader timeout per row

[sampling]
# rollout_temperature = 1.0 # Sampling temperature
# rollout_top_p = 1.0 # Top-p sampling

[checkpoints]
# eval_interval = 10 # Evaluate every N rollouts
# checkpoint_save_freq = 20 # Save checkpoint every N rollouts

# [advanced]
# backend_field = "as support says"

# [env]
# LOG_LEVEL = "INFO" # Non-secret literal env var

# [secrets]
# required = ["OPENAI_API_KEY"] # Optional for training
"""
EXPERIMENT = {"rollout": "my-rollout", "entrypoint": "main.py"}


def uncommented(text: str) -> str:
    """The example with every optional value in it."""
    return re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE)


def read(tmp_path: Path, text: str | bytes, kind: type[RunConfig] = EvalConfig) -> RunConfig:
    path = tmp_path / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_config(kind, path).config


def problems(tmp_path: Path, text: str | bytes, kind: type[RunConfig] = EvalConfig) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text, kind)
    return [str(problem) for problem in raised.value.problems]


# ---- what is taken, and what is sent of it


def test_the_documented_evaluation_is_taken_as_it_stands(tmp_path: Path):
    assert read(tmp_path, EVAL).payload() == {
        "experiment_config": {
            **EXPERIMENT,
            "model_path": "openai/gpt-5-mini",
            "dataset": "my-platform-dataset",
        },
        "evaluation_config": {},
        "secrets": {"required": ["OPENAI_API_KEY"]},
    }


def test_the_documented_evaluation_is_taken_with_its_optional_values(tmp_path: Path):
    payload = read(tmp_path, uncommented(EVAL)).payload()
    assert payload["experiment_config"]["commit_sha"] == "0123abc"
    assert payload["evaluation_config"] == {
        "limit": 200,
        "n": 1,
        "batch_size": 1,
        "pass_threshold": 1.0,
        "agent_workflow_timeout_s": 450,
        "grader_timeout_s": 150,
    }
    assert payload["env_config"] == {"LOG_LEVEL": "INFO"}


def test_a_branch_is_sent_and_stands_in_the_place_of_a_commit(tmp_path: Path):
    text = EVAL.replace("# commit_sha =", 'branch = "feature/x-1"\n# commit_sha =')
    experiment = read(tmp_path, text).payload()["experiment_config"]
    assert experiment["branch"] == "feature/x-1"
    assert problems(tmp_path, text.replace("# commit_sha", "commit_sha")) == [
        "line 7: experiment.commit_sha: must be left out where branch says what runs, not '0123abc'"
    ]


def test_the_documented_training_run_is_taken_as_it_stands(tmp_path: Path):
    assert read(tmp_path, TRAINING, TrainingConfig).payload() == {
        "experiment_config": {
            **EXPERIMENT,
            "model_path": "Qwen/Qwen3.6-35B-A3B",
            "dataset": "my-dataset",
        },
        "training_config": {},
        "sampling_config": {},
        "checkpoints_config": {},
    }


def test_the_documented_training_run_is_taken_with_its_optional_values(tmp_path: Path):
    payload = read(tmp_path, uncommented(TRAINING), TrainingConfig).payload()
    assert payload["training_config"] == {
        "lr": 1e-6,
        "total_epochs": 1,
        "n_samples_per_prompt": 8,
        "rollout_batch_size": 32,
        "max_prompt_length": 8192,
        "max_response_length": 8192,
        "agent_workflow_timeout_s": 450,
        "grader_timeout_s": 150,
    }
    assert payload["sampling_config"] == {"rollout_temperature": 1.0, "rollout_top_p": 1.0}
    assert payload["checkpoints_config"] == {"eval_interval": 10, "checkpoint_save_freq": 20}
    assert payload["advanced_config"] == {"backend_field": "as support says"}
    assert payload["env_config"] == {"LOG_LEVEL": "INFO"}
    assert payload["secrets"] == {"required": ["OPENAI_API_KEY"]}


def test_unknown_keys_of_advanced_are_sent_as_they_are(tmp_path: Path):
    text = EVAL + '[advanced]\na = [1, {b = "x"}]\nc = {d = true, e = 1.5}\n'
    sent = read(tmp_path, text).payload()["advanced_config"]
    assert sent == {"a": [1, {"b": "x"}], "c": {"d": True, "e": 1.5}}


@pytest.mark.parametrize("names", ["[]", '["A", "A1_", "OPENAI_API_KEY"]'])
def test_secrets_may_be_an_empty_list(tmp_path: Path, names: str):
    text = EVAL.replace('["OPENAI_API_KEY"]', names)
    assert read(tmp_path, text).payload()["secrets"] == {"required": json.loads(names)}


@pytest.mark.parametrize("name", ["A", "_", "_A", "A1", "__"])
def test_names_of_variables(tmp_path: Path, name: str):
    text = EVAL + f'[env]\n{name} = ""\n'
    assert read(tmp_path, text).payload()["env_config"] == {name: ""}


# ---- every rule

NO_LINE = "must be one line of text without spaces around it"
TOP_P = "must be a number above 0, and 1 at most"
COUNT = "must be an integer, 1 or more"
BOUNDED = f"{COUNT} and 10,000 at most"
BRANCH = "must be the name of a branch, as git takes it"
DIRECTORY = "must be the name of a directory in rollouts/"
ENV_VALUE = "must be a string without line breaks and NUL characters"
JSON_VALUE = "must be something that JSON can hold: no date, no time, no nan, no inf"
HEX = "must be 7 to 40 hexadecimal digits of a commit"


def changed(key: str, value: str) -> str:
    """The example with another value for a key; None of it is left where the value is empty."""
    text = uncommented(EVAL)
    line = f"{key} = {value}" if value else ""
    found = re.sub(rf"^{key} = .*$", lambda _: line, text, flags=re.MULTILINE)
    assert found != text
    return found


def line_of(key: str) -> int:
    return uncommented(EVAL).split(f"\n{key} = ")[0].count("\n") + 2


VALUES: list[tuple[str, str, str]] = [
    ("rollout", "5", f"experiment.rollout: {DIRECTORY}, not 5"),
    ("rollout", '""', f"experiment.rollout: {DIRECTORY}, not ''"),
    ("rollout", '"."', f"experiment.rollout: {DIRECTORY}, not '.'"),
    ("rollout", '".."', f"experiment.rollout: {DIRECTORY}, not '..'"),
    ("rollout", '"../x"', f"experiment.rollout: {DIRECTORY}, not '../x'"),
    ("rollout", '"/x"', f"experiment.rollout: {DIRECTORY}, not '/x'"),
    ("rollout", '"a/b"', f"experiment.rollout: {DIRECTORY}, not 'a/b'"),
    ("rollout", r'"a\\b"', rf"experiment.rollout: {DIRECTORY}, not 'a\b'"),
    ("rollout", r'"a\u0000"', rf"experiment.rollout: {DIRECTORY}, not 'a\x00'"),
    ("rollout", '"x "', f"experiment.rollout: {DIRECTORY}, not 'x '"),
    ("rollout", "[1]", f"experiment.rollout: {DIRECTORY}, not an array"),
    ("entrypoint", "true", f"experiment.entrypoint: {NO_LINE}, not a boolean"),
    ("entrypoint", '""', f"experiment.entrypoint: {NO_LINE}, not ''"),
    ("model_path", "{}", f"experiment.model_path: {NO_LINE}, not a table"),
    ("model_path", r'"a\nb"', rf"experiment.model_path: {NO_LINE}, not 'a\nb'"),
    ("model_path", r'"\u001b[31m"', rf"experiment.model_path: {NO_LINE}, not '\x1b[31m'"),
    ("dataset", "1.5", f"experiment.dataset: {NO_LINE}, not 1.5"),
    ("dataset", "2020-01-01", f"experiment.dataset: {NO_LINE}, not a date or time"),
    ("commit_sha", '"HEAD~1"', f"experiment.commit_sha: {HEX}, not 'HEAD~1'"),
    ("commit_sha", '"012345"', f"experiment.commit_sha: {HEX}, not '012345'"),
    ("commit_sha", f'"{"a" * 41}"', f"experiment.commit_sha: {HEX}, not '{'a' * 41}'"),
    ("commit_sha", r'"0123abc\n"', rf"experiment.commit_sha: {HEX}, not '0123abc\n'"),
    ("limit", "0", f"evaluation.limit: {COUNT}, not 0"),
    ("limit", '"5"', f"evaluation.limit: {COUNT}, not '5'"),
    ("limit", "true", f"evaluation.limit: {COUNT}, not a boolean"),
    ("limit", "5.0", f"evaluation.limit: {COUNT}, not 5.0"),
    ("limit", "9" * 40, f"evaluation.limit: {COUNT}, not an integer of 40 digits"),
    ("n", "-1", f"evaluation.n: {BOUNDED}, not -1"),
    ("n", "10001", f"evaluation.n: {BOUNDED}, not 10001"),
    ("batch_size", "0", f"evaluation.batch_size: {BOUNDED}, not 0"),
    ("batch_size", "10001", f"evaluation.batch_size: {BOUNDED}, not 10001"),
    ("pass_threshold", "nan", "evaluation.pass_threshold: must be a finite number, not nan"),
    ("pass_threshold", "-inf", "evaluation.pass_threshold: must be a finite number, not -inf"),
    ("pass_threshold", "true", "evaluation.pass_threshold: must be a finite number, not a boolean"),
    (
        "agent_workflow_timeout_s",
        "0",
        "evaluation.agent_workflow_timeout_s: must be a number above 0, not 0",
    ),
    ("grader_timeout_s", "-1.5", "evaluation.grader_timeout_s: must be a number above 0, not -1.5"),
    ("grader_timeout_s", "inf", "evaluation.grader_timeout_s: must be a number above 0, not inf"),
    ("LOG_LEVEL", "5", f"env.LOG_LEVEL: {ENV_VALUE}, not an integer"),
    ("LOG_LEVEL", '["x"]', f"env.LOG_LEVEL: {ENV_VALUE}, not an array"),
    ("LOG_LEVEL", r'"a\u0000"', f"env.LOG_LEVEL: {ENV_VALUE}"),
    ("LOG_LEVEL", r'"a\nb"', f"env.LOG_LEVEL: {ENV_VALUE}"),
    (
        "LOG_LEVEL",
        f'"{"x" * 200_000}"',
        "env.LOG_LEVEL: too long: a program is started with values of up to 131,071 bytes with "
        "their name",
    ),
    ("required", '"A"', "secrets.required: must be an array of strings, not a string"),
    (
        "required",
        "[5]",
        "secrets.required: entry 1: must be the name of a secret, as [A-Z][A-Z0-9_]*, not an "
        "integer",
    ),
    ("required", '["_A"]', "secrets.required: '_A' is no name of a secret: [A-Z][A-Z0-9_]*"),
    ("required", '["a"]', "secrets.required: 'a' is no name of a secret: [A-Z][A-Z0-9_]*"),
    ("required", r'["A\n"]', "secrets.required: entry 1 is no name of a secret: [A-Z][A-Z0-9_]*"),
    ("required", '["A", "A"]', "secrets.required: 'A' is named twice"),
    (
        "required",
        '["LOG_LEVEL"]',
        f"secrets.required: 'LOG_LEVEL' is in [env] (line {line_of('LOG_LEVEL')}) too; keep it in "
        "one of them",
    ),
]


@pytest.mark.parametrize(("key", "value", "sentence"), VALUES, ids=lambda part: str(part)[:30])
def test_a_wrong_value_is_reported_with_its_line(
    tmp_path: Path, key: str, value: str, sentence: str
):
    assert problems(tmp_path, changed(key, value)) == [f"line {line_of(key)}: {sentence}"]


@pytest.mark.parametrize(
    "name", ["", "a b", "-x", "/x", "x/", "a..b", "a:b", "a*", "a^", "a~1", "a//b", "a@{1}"]
)
def test_a_branch_is_a_name_that_can_be_no_other_ref(tmp_path: Path, name: str):
    text = EVAL.replace("# commit_sha", f'branch = "{name}"\n# commit_sha')
    assert problems(tmp_path, text) == [f"line 6: experiment.branch: {BRANCH}, not '{name}'"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a", "'a'"), ("1A", "'1A'"), ("A-B", "'A-B'"), ('""', "''"), (r'"A\n"', r"'A\n'"),
     ('"É"', "'É'"), ('"A B"', "'A B'")],
)  # fmt: skip
def test_a_wrong_name_of_a_variable(tmp_path: Path, name: str, shown: str):
    text = EVAL + f'[env]\n{name} = "x"\n'
    key = f"env.{shown[1:-1]}" if shown != "''" else "env"
    message = f"{key}: {shown} is no name of a variable: [A-Z_][A-Z0-9_]*"
    assert problems(tmp_path, text) == [f"line {EVAL.count(chr(10)) + 2}: {message}"]


WHOLE: list[tuple[str, str | bytes, list[str]]] = [
    ("empty", "", [
        "the table [experiment] is missing",
        "the table [secrets] is missing; an evaluation names its secrets: write [secrets] and "
        "required = [...], which is empty where none is needed",
    ]),
    ("no secrets", EVAL.split("[secrets]", maxsplit=1)[0], [
        "secrets: the table [secrets] is missing; an evaluation names its secrets: write [secrets] "
        "and required = [...], which is empty where none is needed",
    ]),
    ("secrets without required", EVAL.replace("required", "#"), [
        "line 20: secrets.required: missing; write the names of the secrets, or required = []",
    ]),
    ("no dataset", EVAL.replace("dataset =", "#"), [
        f"line 1: experiment.dataset: missing; {NO_LINE}",
    ]),
    ("key misspelt", EVAL.replace("rollout =", "rolout ="), [
        "line 2: experiment.rolout: unknown key; did you mean 'rollout'?",
    ]),
    ("key unlike any", EVAL.replace("[evaluation]", "[evaluation]\nzzz = 1"), [
        "line 9: evaluation.zzz: unknown key; known: limit, n, batch_size, pass_threshold, "
        "agent_workflow_timeout_s, grader_timeout_s, map, where, prompt_template, cluster",
    ]),
    ("columns, rows and prompt", EVAL.replace(
        "[evaluation]", "[evaluation]\nmap = 'a=b'\nwhere = []\nprompt_template = ' '"
    ), [
        "line 9: evaluation.map: must be an array of strings, with one at least, not 'a=b'",
        "line 10: evaluation.where: must be an array of strings, with one at least, not an array",
        "line 11: evaluation.prompt_template: must be a text that is not blank, not ' '",
    ]),
    ("key that is a number", EVAL.replace("[evaluation]", '[evaluation]\n"²" = 1'), [
        "line 9: evaluation.²: unknown key; known: limit, n, batch_size, pass_threshold, "
        "agent_workflow_timeout_s, grader_timeout_s, map, where, prompt_template, cluster",
    ]),
    ("key of another table", EVAL.replace("[evaluation]", '[evaluation]\ncommit_sha = "0123abc"'), [
        "line 9: evaluation.commit_sha: unknown key; it belongs into [experiment]",
    ]),
    ("key above all tables", 'limit = 5\n' + EVAL, [
        "line 1: limit: unknown key or table; it belongs into [evaluation]",
    ]),
    ("table misspelt", EVAL.replace("[evaluation]", "[evaluaton]"), [
        "line 8: evaluaton: unknown key or table; did you mean 'evaluation'?",
    ]),
    ("table of training", EVAL + "[training]\n", [
        "line 22: training: unknown key or table; known: experiment, advanced, env, secrets, "
        "evaluation",
    ]),
    ("tables of older files", EVAL + '[eval]\n[llm]\nmodel = "a/b"\n[rollout.env]\nA = "b"\n', [
        "rollout: a table of older config files; today: [env], and names in [secrets] required = "
        "[...]",
        "line 22: eval: a table of older config files; today: [experiment], and `limit` in "
        "[evaluation]",
        "line 23: llm: a table of older config files; today: `model_path` in [experiment], and the "
        "option --base-url",
    ]),
    ("secrets with values", EVAL.replace("required", 'A_KEY = "sk-of-mine"\nrequired'), [
        "line 21: secrets.A_KEY: names of secrets are listed in `required`, without values",
    ]),
    ("table that is none", EVAL.replace("[evaluation]", "").replace(
        "[experiment]", "evaluation = 5\n[experiment]"), [
        "line 1: evaluation: must be a table, not 5",
    ]),
    ("env that is none", "env = []\n" + EVAL, ["line 1: env: must be a table, not an array"]),
    ("reserved", EVAL + '[env]\n_OSMOSIS_RUN = "1"\n', [
        "line 23: env._OSMOSIS_RUN: names that start with _OSMOSIS_ are the platform's",
    ]),
    ("reserved name", EVAL + '[env]\nOSMOSIS_SECRET_NAMES = "HOME"\n', [
        "line 23: env.OSMOSIS_SECRET_NAMES: is a name that the platform sets itself; take another "
        "one",
    ]),
    ("reserved secret", EVAL.replace("required = [", 'required = ["OSMOSIS_SERVER_API_KEY", '), [
        "line 21: secrets.required: 'OSMOSIS_SERVER_API_KEY' is a name that the platform sets "
        "itself; take another one",
    ]),
    ("date in advanced", EVAL + "[advanced]\nwhen = 2020-01-01\n", [
        f"line 23: advanced.when: {JSON_VALUE}",
    ]),
    ("nan deep in advanced", EVAL + "[advanced]\ndeep = {x = [1, nan]}\n", [
        f"line 23: advanced.deep: {JSON_VALUE}",
    ]),
    ("key twice", EVAL.replace("[secrets]", "[secrets]\nrequired = [\n]"), [
        "line 23: secrets.required: defined twice, on line 21 too",
    ]),
    ("key twice, at the end", EVAL + "required = []", [
        "line 22: secrets.required: defined twice, on line 21 too",
    ]),
    ("table twice", EVAL + "[experiment]\n", ["line 22: experiment: defined twice, on line 1 too"]),
    ("UTF-16", EVAL.encode("utf-16"), ["it is UTF-16; save it as UTF-8"]),
    ("byte order mark", EVAL.encode("utf-8-sig"), [
        "line 1: it starts with a byte order mark; save it as UTF-8 without one",
    ]),
    ("not UTF-8", EVAL.replace("First", "Prémier").encode("latin-1"), [
        "line 10: not UTF-8 (byte 0xe9)",
    ]),
    ("nested deeply", "x = " + "[" * 5000 + "]" * 5000, ["its values are nested too deeply"]),
    ("digits", "x = " + "9" * 5000, ["one of its numbers has more digits than can be read"]),
    ("too long", b"#" * 1_048_577, ["it has more than 1,048,576 bytes"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"), [case[1:] for case in WHOLE], ids=[case[0] for case in WHOLE]
)
def test_a_wrong_file_is_reported_in_one_go(tmp_path: Path, text: str | bytes, message: list[str]):
    found = problems(tmp_path, text)
    assert [line.removeprefix("experiment: ").removeprefix("secrets: ") for line in found] == [
        line.removeprefix("experiment: ").removeprefix("secrets: ") for line in message
    ]


def test_what_is_no_toml_is_reported_in_the_parsers_words_with_the_line(tmp_path: Path):
    (found,) = problems(tmp_path, EVAL.replace("[secrets]", "[secrets"))
    assert re.fullmatch(r"line 20: not TOML: Expected .* \(column 9\)", found)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("lr = 0", "training.lr: must be a number above 0, not 0"),
        ("total_epochs = 0", f"training.total_epochs: {COUNT}, not 0"),
        ("n_samples_per_prompt = 1.5", f"training.n_samples_per_prompt: {COUNT}, not 1.5"),
        ("rollout_batch_size = -3", f"training.rollout_batch_size: {COUNT}, not -3"),
        ("max_prompt_length = 0", f"training.max_prompt_length: {COUNT}, not 0"),
        ("max_response_length = 0", f"training.max_response_length: {COUNT}, not 0"),
        (
            "rollout_temperature = -0.1",
            "sampling.rollout_temperature: must be a number, 0 or more, not -0.1",
        ),
        ("rollout_top_p = 2", f"sampling.rollout_top_p: {TOP_P}, not 2"),
        ("rollout_top_p = 0", f"sampling.rollout_top_p: {TOP_P}, not 0"),
        ("eval_interval = 0", f"checkpoints.eval_interval: {COUNT}, not 0"),
        ("checkpoint_save_freq = 0", f"checkpoints.checkpoint_save_freq: {COUNT}, not 0"),
    ],
)  # fmt: skip
def test_a_wrong_value_of_a_training_run(tmp_path: Path, line: str, sentence: str):
    key = line.split(" ", maxsplit=1)[0]
    full = uncommented(TRAINING)
    text = re.sub(rf"^{key} = .*$", line, full, flags=re.MULTILINE)
    number = full.split(f"\n{key} = ")[0].count("\n") + 2
    assert problems(tmp_path, text, TrainingConfig) == [f"line {number}: {sentence}"]


def test_secrets_of_a_training_run_need_names_where_the_table_is_there(tmp_path: Path):
    (problem,) = problems(tmp_path, TRAINING + "[secrets]\n", TrainingConfig)
    assert problem.endswith("missing; write the names of the secrets, or required = []")


def test_every_problem_of_a_file_is_reported_at_once_in_the_order_of_its_lines(tmp_path: Path):
    text = EVAL.replace('"my-rollout"', "5").replace('["OPENAI_API_KEY"]', '["_A"]')
    found = problems(tmp_path, text + "[evaluaton]\n")
    assert [line.split(":")[0] for line in found] == ["line 2", "line 21", "line 22"]


def test_no_value_of_a_variable_and_no_key_among_the_secrets_is_shown(tmp_path: Path):
    key = "sk-not-to-be-seen-0123456789"
    text = EVAL.replace('["OPENAI_API_KEY"]', f'["{key}"]') + (
        f'[env]\na = "{key}"\nB = "{key}\\n"\nC = ["{key}"]\n_OSMOSIS_D = "{key}"\n'
    )
    found = problems(tmp_path, text)
    assert len(found) == 5
    assert key not in "".join(found)


def test_risky_variables_and_values_like_keys_are_warned_about(tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_text(EVAL + '[env]\nPATH = "/x"\nTOKEN = "ghp_0123456789abcdef"\nA = "sk"\n')
    found = read_config(EvalConfig, path)
    assert [str(warning) for warning in found.warnings] == [
        "line 23: env.PATH: changes which code the rollout runs; is that meant?",
        "line 24: env.TOKEN: looks like a key, and is kept and sent as it is: use [secrets] "
        "instead",
    ]


# ---- the place of the file and the entrypoint


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for folder in ("rollouts/my-rollout", "configs/eval", "configs/training", ".git"):
        (root / folder).mkdir(parents=True)
    (root / "rollouts/my-rollout/main.py").write_text("")
    (root / "configs/eval/one.toml").write_text(EVAL)
    return root


def load(root: Path, path: str) -> list[str]:
    try:
        load_config(EvalConfig, root / path, start=root / "configs")
    except ConfigError as error:
        return [str(problem).replace(str(root), "ROOT") for problem in error.problems]
    return []


def test_a_file_in_its_place_is_taken(root: Path):
    assert load(root, "configs/eval/one.toml") == []


@pytest.mark.parametrize("place", ["configs/training/one.toml", "one.toml", "configs/one.toml"])
def test_a_file_elsewhere_is_refused(root: Path, place: str):
    (root / place).write_text(EVAL)
    message = f"it is at ROOT/{place}; files of this kind belong in ROOT/configs/eval"
    assert load(root, place) == [message]
    inside = f"configs/eval/../../{place}"
    assert load(root, inside) == [message]


def test_a_symlink_out_is_refused(root: Path):
    (root / "elsewhere.toml").write_text(EVAL)
    (root / "configs/eval/two.toml").symlink_to(root / "elsewhere.toml")
    (problem,) = load(root, "configs/eval/two.toml")
    assert problem.startswith("it is at ROOT/elsewhere.toml (a symlink)")


def test_another_suffix_is_refused(root: Path):
    (root / "configs/eval/one.tml").write_text(EVAL)
    assert load(root, "configs/eval/one.tml") == ["a config file ends in .toml, not in '.tml'"]


def test_outside_of_a_work_tree_the_next_step_is_reported(tmp_path: Path):
    with pytest.raises(workspace.WorkspaceError, match="is in no Git work tree; change to your"):
        workspace.find_root(tmp_path)


def test_a_missing_file_is_reported(root: Path):
    assert load(root, "configs/eval/gone.toml") == ["cannot be read: No such file or directory"]


def test_a_pipe_is_refused_and_not_waited_for(root: Path):
    os.mkfifo(root / "configs/eval/pipe.toml")
    assert load(root, "configs/eval/pipe.toml") == ["cannot be read: it is no regular file"]


ENTRYPOINTS = [
    (
        {"rollout": "my-rolout"},
        "line 2: experiment.rollout: there is no directory rollouts/my-rolout/; did you mean "
        "'my-rollout'?",
    ),
    (
        {"entrypoint": "man.py"},
        "line 3: experiment.entrypoint: there is no file rollouts/my-rollout/man.py; did you mean "
        "'main.py'?",
    ),
    (
        {"entrypoint": "../../x.py"},
        "line 3: experiment.entrypoint: it is outside of rollouts/my-rollout/",
    ),
    (
        {"entrypoint": "folder"},
        "line 3: experiment.entrypoint: rollouts/my-rollout/folder is not a Python file",
    ),
    (
        {"entrypoint": "main.py/"},
        "line 3: experiment.entrypoint: rollouts/my-rollout/main.py/ is not a Python file",
    ),
    (
        {"entrypoint": "pyproject.toml"},
        "line 3: experiment.entrypoint: rollouts/my-rollout/pyproject.toml is not a Python file",
    ),
    (
        {"entrypoint": "link.py"},
        "line 3: experiment.entrypoint: it is outside of rollouts/my-rollout/",
    ),
    ({"rollout": "out"}, "line 2: experiment.rollout: rollouts/out/ leads out of rollouts/"),
    ({"rollout": "file"}, "line 2: experiment.rollout: rollouts/file is a file and no directory"),
    (
        {"entrypoint": "-x.py"},
        "line 3: experiment.entrypoint: there is no file rollouts/my-rollout/-x.py",
    ),
]


@pytest.mark.parametrize(("given", "message"), ENTRYPOINTS)
def test_a_wrong_entrypoint_is_reported_with_its_line(
    root: Path, given: dict[str, Any], message: str
):
    home = root / "rollouts/my-rollout"
    (home / "folder").mkdir()
    for file in (home / "pyproject.toml", home / "up.py", root / "rollouts/file"):
        file.write_text("")
    (root / "x.py").write_text("")
    (home / "link.py").symlink_to(root / "x.py")
    (root / "rollouts/out").symlink_to(root / "configs")
    text = EVAL
    for key, value in given.items():
        text = text.replace(f'"{EXPERIMENT[key]}"', f'"{value}"', 1)
    (root / "configs/eval/one.toml").write_text(text)
    assert load(root, "configs/eval/one.toml") == [message]


def test_the_place_and_the_content_are_reported_together(root: Path):
    (root / "one.toml").write_text(EVAL.replace('"main.py"', "5"))
    assert len(load(root, "one.toml")) == 2


# ---- the schema


@pytest.mark.parametrize("kind", [EvalConfig, TrainingConfig])
def test_the_schema_names_every_key_and_refuses_others(kind: type[RunConfig]):
    schema = json_schema(kind)
    assert set(schema["properties"]) == set(kind.model_fields)
    assert schema["additionalProperties"] is False
    for section in schema["$defs"].values():
        assert section["additionalProperties"] is False
        for key in section["properties"].values():
            assert key["description"]
