"""`osmosis eval submit` and `osmosis train submit`, against a platform on loopback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.platform.client import Limits
from tests.support.command import Osmosis
from tests.support.fake_platform import FAULTS_OF_COMMANDS, TOKEN, FakePlatform
from tests.support.pushed_workspace import EVAL, GIT_TOKEN, TRAINING, commit, git, make_workspace

LIMITS = Limits(answer_bytes=1 << 20, tries=1)
RUNS = "/api/cli/eval-runs"
SECRETS = "/api/cli/environment-secrets"
MADE = {"id": "r1", "name": "calm-otter-17", "status": "pending", "created_at": "now"}
SECRET = "value-of-a-secret-4711"
"""Set on this machine, under the names that configs require."""
CONFIG = "configs/eval/one.toml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        yield make_workspace(tmp_path_factory.mktemp("made"), patch)


@pytest.fixture
def workspace(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace that all tests share: it stays as it is."""
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def own(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that the test may change."""
    root = tmp_path / "own"
    shutil.copytree(made, root)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def platform(platform: FakePlatform) -> FakePlatform:
    platform.answers["POST", RUNS] = MADE
    return platform


@pytest.fixture
def osmosis(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Osmosis]:
    monkeypatch.setattr("osmosis_cli.platform.connection.LIMITS", LIMITS)
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "A_KEY", "B_KEY"):
        monkeypatch.setenv(name, SECRET)
    osmosis.hidden = (TOKEN, GIT_TOKEN, SECRET)
    yield osmosis.logged_in(platform)
    for secret in (GIT_TOKEN, SECRET):
        assert secret not in str(platform.requests)
    assert TOKEN not in str([request.body for request in platform.requests])


def bodies(platform: FakePlatform) -> list[Any]:
    """What was sent by POST."""
    return [request.body for request in platform.requests if request.method == "POST"]


def secrets(*records: tuple[str, str]) -> dict[str, Any]:
    found = [{"id": name, "name": name, "scope": scope} for name, scope in records]
    return {"environment_secrets": found, "total_count": len(found), "has_more": False}


# ---- what is sent

FULL_EVAL = """\
[experiment]
rollout = "my-rollout"
entrypoint = "main.py"
model_path = "openai/gpt-5-mini"
dataset = "my-dataset"
commit_sha = "COMMIT"
[evaluation]
limit = 200
n = 2
batch_size = 4
pass_threshold = 1
agent_workflow_timeout_s = 450
grader_timeout_s = 150.5
[advanced]
unknown = { deep = [1, "two"] }
[env]
REGION = "eu"
[secrets]
required = ["OPENAI_API_KEY", "HF_TOKEN"]
"""
FULL_TRAINING = """\
[experiment]
rollout = "my-rollout"
entrypoint = "main.py"
model_path = "Qwen/Qwen3-8B"
dataset = "my-dataset"
[training]
lr = 1e-6
total_epochs = 1
n_samples_per_prompt = 8
rollout_batch_size = 32
max_prompt_length = 8192
max_response_length = 4096
agent_workflow_timeout_s = 450
grader_timeout_s = 150
[sampling]
rollout_temperature = 1.0
rollout_top_p = 0.9
[checkpoints]
eval_interval = 10
checkpoint_save_freq = 20
[advanced]
[env]
REGION = "eu"
[secrets]
required = ["HF_TOKEN"]
"""


@pytest.mark.fault("the origin's URL has a password")
def test_an_evaluation_is_sent_field_by_field(osmosis: Osmosis, platform: FakePlatform, own: Path):
    sha = git(own, "rev-parse", "HEAD")[:10]
    (own / CONFIG).write_text(FULL_EVAL.replace("COMMIT", sha))
    platform.answers["GET", SECRETS] = secrets(
        ("OPENAI_API_KEY", "workspace"), ("HF_TOKEN", "workspace"), ("HF_TOKEN", "user"),
    )  # fmt: skip
    out = osmosis.out("eval", "submit", CONFIG, "--yes", "--json")
    assert bodies(platform) == [
        {
            "experiment_config": {
                "rollout": "my-rollout",
                "entrypoint": "main.py",
                "model_path": "openai/gpt-5-mini",
                "dataset": "my-dataset",
                "commit_sha": sha,
            },
            "evaluation_config": {
                "limit": 200,
                "n": 2,
                "batch_size": 4,
                "pass_threshold": 1,
                "agent_workflow_timeout_s": 450,
                "grader_timeout_s": 150.5,
            },
            "advanced_config": {"unknown": {"deep": [1, "two"]}},
            "env_config": {"REGION": "eu"},
            "secrets": {"required": ["OPENAI_API_KEY", "HF_TOKEN"]},
        }
    ]
    document = json.loads(out)
    assert document["eval_run"] == MADE
    assert document["secrets"] == {"OPENAI_API_KEY": "workspace", "HF_TOKEN": "personal"}
    assert (document["repository"], document["commit_sha"]) == ("acme/agents", sha)
    assert document["commit"] == f"{sha}, pinned"
    assert [finding["code"] for finding in document["findings"]] == ["dirty_tree"]
    asked, sent = platform.requests
    assert (asked.method, asked.path, asked.query["scope"]) == ("GET", SECRETS, "all")
    for request in (asked, sent):
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        assert request.headers["x-osmosis-git"] == "acme/agents"
        assert request.headers["x-osmosis-cli-version"]
        assert request.headers["user-agent"].startswith("osmosis-cli/")
    assert len(sent.headers["idempotency-key"]) == 32


def test_a_training_run_is_sent_field_by_field(osmosis: Osmosis, platform: FakePlatform, own: Path):
    (own / "configs/training/one.toml").write_text(FULL_TRAINING)
    platform.answers["GET", SECRETS] = secrets(("HF_TOKEN", "user"))
    platform.answers["POST", "/api/cli/training-runs"] = MADE
    document = osmosis.document("train", "submit", "configs/training/one.toml", "--yes")
    assert document["training_run"] == MADE
    assert bodies(platform) == [
        {
            "experiment_config": {
                "rollout": "my-rollout",
                "entrypoint": "main.py",
                "model_path": "Qwen/Qwen3-8B",
                "dataset": "my-dataset",
            },
            "training_config": {
                "lr": 1e-6,
                "total_epochs": 1,
                "n_samples_per_prompt": 8,
                "rollout_batch_size": 32,
                "max_prompt_length": 8192,
                "max_response_length": 4096,
                "agent_workflow_timeout_s": 450,
                "grader_timeout_s": 150,
            },
            "sampling_config": {"rollout_temperature": 1.0, "rollout_top_p": 0.9},
            "checkpoints_config": {"eval_interval": 10, "checkpoint_save_freq": 20},
            "advanced_config": {},
            "env_config": {"REGION": "eu"},
            "secrets": {"required": ["HF_TOKEN"]},
        }
    ]


@pytest.mark.parametrize(
    ("group", "config", "text", "extra"),
    [
        ("eval", CONFIG, EVAL, {"secrets": {"required": []}}),
        ("train", "configs/training/one.toml", TRAINING, {"training_config": {"lr": 1e-6}}),
    ],
)
def test_what_a_file_leaves_out_is_not_sent_nor_asked_for(
    osmosis: Osmosis, platform: FakePlatform, workspace: Path,
    group: str, config: str, text: str, extra: dict[str, Any],
):  # fmt: skip
    platform.answers["POST", "/api/cli/training-runs"] = MADE
    assert (workspace / config).read_text() == text
    assert osmosis(group, "submit", config, "--yes")[0] == 0
    (request,) = platform.requests
    experiment = {
        "rollout": "my-rollout",
        "entrypoint": "main.py",
        "model_path": "openai/gpt-5-mini",
        "dataset": "my-dataset",
    }
    assert request.body == {"experiment_config": experiment, **extra}


# ---- what is shown


def test_the_summary_says_which_commit_runs_and_where_secrets_come_from(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    (own / CONFIG).write_text(
        EVAL.replace("[]", '["OPENAI_API_KEY"]') + "[evaluation]\nn = 2\n[env]\nREGION = 'eu'\n"
    )
    newest = commit(own)[:12]
    git(own, "update-ref", "refs/remotes/origin/main", "HEAD")
    platform.answers["GET", SECRETS] = secrets(("OPENAI_API_KEY", "user"))
    assert osmosis("eval", "submit", CONFIG, "--yes") == (
        0,
        "an evaluation of my-rollout\n"
        "  code        my-rollout/main.py\n"
        f"  commit      the newest on main that is synced, {newest} as far as is known here "
        "(acme/agents)\n"
        "  model       openai/gpt-5-mini\n"
        "  dataset     my-dataset\n"
        "  evaluation  n 2\n"
        "  env         REGION\n"
        "  secrets     OPENAI_API_KEY (personal)\n"
        f"  platform    {platform.url}\n"
        "submitted: calm-otter-17, pending\n"
        "wait for its end: osmosis eval info calm-otter-17 --watch\n",
        "",
    )


@pytest.mark.fault("the pinned commit is not pushed")
def test_what_of_the_work_tree_does_not_run_is_warned_about(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    git(own, "checkout", "--quiet", "-b", "a-feature")
    (own / "more").write_text("x")
    commit(own)
    (own / "new\x1b[31m.py").write_text("x")
    out = osmosis.out("eval", "submit", CONFIG, "--yes")
    assert [line for line in out.splitlines() if line.startswith("warning: ")] == [
        "warning: what runs is main, and a-feature is checked out: merge into main, or name "
        "another pushed branch with experiment.branch, or a pushed commit with "
        "experiment.commit_sha",
        "warning: 1 commit is not pushed, and what is not pushed does not run: `git push`",
        "warning: 1 file differs from the commit (new\\x1b[31m.py); what runs is the commit: "
        "commit and push what is meant to run",
    ]


def test_the_branch_that_a_config_names_is_sent_and_said(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    text = EVAL.replace("[secrets]", 'branch = "release/2"\n[secrets]')
    (own / CONFIG).write_text(text)
    commit(own)
    out = osmosis.out("eval", "submit", CONFIG, "--yes")
    assert "  commit    the newest on release/2 that is synced (acme/agents)\n" in out
    assert (
        "warning: the origin has no branch release/2, as far as is known here: push it, or "
        "`git fetch` where it was pushed from elsewhere\n"
    ) in out
    assert bodies(platform)[0]["experiment_config"]["branch"] == "release/2"
    git(own, "update-ref", "refs/remotes/origin/release/2", "HEAD")
    _, out, _ = osmosis("eval", "submit", CONFIG, "--yes")
    here = git(own, "rev-parse", "HEAD")[:12]
    assert f"the newest on release/2 that is synced, {here} as far as is known here" in out
    assert [line[:57] for line in out.splitlines() if line.startswith("warning: ")] == [
        "warning: what runs is release/2, and main is checked out:"
    ]
    git(own, "switch", "--quiet", "-c", "release/2")
    assert "warning: " not in osmosis("eval", "submit", CONFIG, "--yes")[1]


def cloned_from(folder: Path) -> dict[str, Any]:
    """What a platform on this machine says of a token of a workspace that it clones from there."""
    workspace = {"id": "w", "name": "agents", "role": "owner", "clone_folder": str(folder)}
    return {"user": {"id": "u"}, "workspace": workspace, "expires_at": "2027-01-01T00:00:00Z"}


def test_nothing_has_to_be_pushed_where_the_platform_clones_the_work_tree_itself(
    osmosis: Osmosis, platform: FakePlatform, own: Path, tmp_path: Path
):
    git(own, "checkout", "--quiet", "-b", "a-feature")
    (own / "more").write_text("x")
    head = commit(own)
    (own / "new").write_text("x")
    (tmp_path / "link").symlink_to(own)
    platform.answers["GET", "/api/cli/verify"] = cloned_from(tmp_path / "link")
    out = osmosis.out("eval", "submit", CONFIG, "--yes")
    assert f"  commit    {head[:12]}, checked out here (acme/agents)\n" in out
    assert [line for line in out.splitlines() if line.startswith("warning: ")] == [
        "warning: 1 file differs from the commit (new); what runs is the commit: commit what is "
        "meant to run"
    ]
    err = osmosis.error("eval", "submit", CONFIG, status=2)
    assert f"what would run is {head[:12]}, checked out here (acme/agents)" in err
    assert "push" not in err
    platform.answers["GET", "/api/cli/verify"] = cloned_from(tmp_path)
    assert "is not pushed" in osmosis("eval", "submit", CONFIG, "--yes")[1]


def test_a_branch_must_be_in_the_work_tree_that_the_platform_clones(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    platform.answers["GET", "/api/cli/verify"] = cloned_from(own)
    text = EVAL.replace("[secrets]", 'branch = "mine"\n[secrets]')
    (own / CONFIG).write_text(text)
    head = commit(own)[:12]
    err = osmosis.error("eval", "submit", CONFIG, "--yes")
    assert "the workspace has no branch mine: correct experiment.branch" in err
    git(own, "branch", "mine")
    _, out, _ = osmosis("eval", "submit", CONFIG, "--yes")
    assert f"  commit    {head}, the newest on mine here (acme/agents)\n" in out
    assert "warning: what runs is mine, and main is checked out: check it out, or" in out
    git(own, "switch", "--quiet", "mine")
    assert "warning: " not in osmosis("eval", "submit", CONFIG, "--yes")[1]


def test_a_pinned_commit_must_be_in_the_work_tree_that_the_platform_clones(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    platform.answers["GET", "/api/cli/verify"] = cloned_from(own)
    (own / "more").write_text("x")
    first = commit(own)[:8]
    (own / CONFIG).write_text(EVAL.replace("[secrets]", f'commit_sha = "{first}"\n[secrets]'))
    head = commit(own)[:12]
    status, out, _ = osmosis("eval", "submit", CONFIG, "--yes")
    assert (status, f"  commit    {first}, pinned (acme/agents)\n" in out) == (0, True)
    assert f"warning: what runs is {first}, and checked out is {head}\n" in out
    (own / CONFIG).write_text((own / CONFIG).read_text().replace(first, "0123456789"))
    err = osmosis.error("eval", "submit", CONFIG, "--yes")
    assert "the workspace has no commit 0123456789: correct experiment.commit_sha" in err


# ---- what refuses


@pytest.mark.fault("the pinned commit is not pushed")
def test_a_pinned_commit_that_is_not_pushed_is_warned_about(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    pushed = git(own, "rev-parse", "HEAD")[:8]
    (own / "more").write_text("x")
    here = commit(own)[:8]
    pin = EVAL.replace("[secrets]", 'commit_sha = "PIN"\n[secrets]')
    for absent in (here, "0123456789"):
        (own / CONFIG).write_text(pin.replace("PIN", absent))
        _, out, _ = osmosis("eval", "submit", CONFIG, "--yes")
        assert f"warning: the origin has no commit {absent}, as far as is known here: push" in out
    (own / CONFIG).write_text(pin.replace("PIN", pushed))
    out = osmosis.out("eval", "submit", CONFIG, "--yes")
    assert "the origin has no commit" not in out
    assert f"  commit    {pushed}, pinned (acme/agents)\n" in out
    assert f"warning: what runs is {pushed}, and checked out is {here}" in out


@pytest.mark.fault("secrets are missing on the platform")
def test_missing_secrets_are_all_named_with_the_commands_that_set_them(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    (own / CONFIG).write_text(EVAL.replace("[]", '["A_KEY", "B_KEY", "C_KEY"]'))
    platform.answers["GET", SECRETS] = secrets(("B_KEY", "user"))
    err = osmosis.error("eval", "submit", CONFIG, "--yes")
    assert err == (
        "Error: the platform does not have the secrets A_KEY, C_KEY: run "
        "`osmosis secret set A_KEY`, `osmosis secret set C_KEY`; nothing was submitted\n"
    )
    assert not bodies(platform)
    status, out, err = osmosis("eval", "submit", CONFIG, "--yes", "--json")
    error = json.loads(err)["error"]
    assert (status, out, error["code"]) == (1, "", "missing_secrets")
    assert [finding["code"] for finding in error["details"]["findings"]] == [
        "missing_secrets", "dirty_tree",
    ]  # fmt: skip


def test_all_that_is_missing_is_reported_at_once(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    (own / CONFIG).write_text(EVAL.replace("[]", '["A_KEY"]'))
    platform.answers["GET", SECRETS] = secrets()
    git(own, "update-ref", "-d", "HEAD")
    err = osmosis.error("eval", "submit", CONFIG, "--yes")
    first, *lacks = err.splitlines()
    assert first == "Error: nothing was submitted"
    assert [lack.partition(":")[0].strip() for lack in lacks] == [
        "the platform does not have the secret A_KEY",
        "the workspace has no commit yet, and a platform runs what is committed",
    ]
    assert not bodies(platform)


@pytest.mark.fault("the config file is wrong")
def test_every_problem_of_the_config_is_reported_and_nothing_is_asked(
    osmosis: Osmosis, platform: FakePlatform, own: Path
):
    (own / CONFIG).write_text(EVAL.replace("main.py", "gone.py") + "[evaluation]\nn = 0\nm = 1\n")
    status, out, err = osmosis("eval", "submit", CONFIG, "--yes", "--json")
    error = json.loads(err)["error"]
    assert (status, out, error["code"]) == (1, "", "invalid_config")
    keys = [problem["key"] for problem in error["details"]["files"][0]["problems"]]
    assert keys == ["evaluation.n", "evaluation.m"]
    assert not platform.requests


@pytest.mark.fault("a work tree that no platform can find: no `origin`, not on GitHub, no commit")
@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("remote", "remove", "origin"), "git_no_origin", "origin"),
        (("remote", "set-url", "origin", f"https://u:{GIT_TOKEN}@gitlab.com/a/b"),
         "git_not_github", "GitHub"),
        (("update-ref", "-d", "HEAD"), "no_commit", "no commit yet"),
    ],
)  # fmt: skip
def test_a_work_tree_that_no_platform_can_find_is_refused(
    osmosis: Osmosis, platform: FakePlatform, own: Path,
    change: tuple[str, ...], code: str, said: str,
):  # fmt: skip
    git(own, *change)
    status, out, err = osmosis("eval", "submit", CONFIG, "--yes", "--json")
    error = json.loads(err)["error"]
    assert (status, out, error["code"]) == (1, "", code)
    assert said in error["message"]
    assert not bodies(platform)


# ---- the question


@pytest.mark.fault("no terminal to ask on")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_without_a_terminal_a_yes_is_needed_and_what_would_run_is_said(
    osmosis: Osmosis, platform: FakePlatform, own: Path, words: tuple[str, ...]
):
    (own / "new.py").write_text("x")
    err = osmosis.error("eval", "submit", CONFIG, *words, status=2)
    message = json.loads(err)["error"]["message"] if words else err.partition("Error: ")[2]
    assert "give --yes" in message.splitlines()[0]
    here = git(own, "rev-parse", "HEAD")[:12]
    assert message.splitlines()[1:] == [
        f"  what would run is the newest on main that is synced, {here} as far as is known here "
        "(acme/agents)",
        "  warning: 1 file differs from the commit (new.py); what runs is the commit: commit and "
        "push what is meant to run",
    ]
    assert not bodies(platform)


@pytest.mark.parametrize(("typed", "status"), [(b"y\n", 0), (b"\n", 1), (b"", 1)])
def test_on_a_terminal_it_asks(
    osmosis: Osmosis, platform: FakePlatform, workspace: Path, typed: bytes, status: int
):
    found, out, err = osmosis("eval", "submit", CONFIG, stdin=typed, terminal=True)
    assert found == status
    assert "submit it? [y/N]: " in out
    assert len(bodies(platform)) == (0 if status else 1)
    assert ("aborted, nothing was done" in err) == bool(status)


# ---- a platform that fails


@pytest.mark.fault(
    "the platform answers 401, 403, 404, 409, 422, 426, 429, 500, a web page, another document, "
    "a redirect; slowly, not at all, too much; or hangs up"
)
@pytest.mark.parametrize("fault", FAULTS_OF_COMMANDS)
def test_a_failure_is_one_line_that_says_whether_it_may_have_been_submitted(
    osmosis: Osmosis, platform: FakePlatform, workspace: Path, monkeypatch: pytest.MonkeyPatch,
    fault: str,
):  # fmt: skip
    platform.fault = fault
    if fault in ("slow", "silent"):
        impatient = replace(LIMITS, read_s=0.05, answer_s=0.05)
        monkeypatch.setattr("osmosis_cli.platform.connection.LIMITS", impatient)
    status, out, err = osmosis("eval", "submit", CONFIG, "--yes", "--json")
    assert (status, out, err.count("\n")) == (1, "", 1)
    message = json.loads(err)["error"]["message"]
    is_refusal = fault == "redirect" or (fault.isdigit() and fault != "500")
    assert ("whether it was submitted is not known" in message) == (not is_refusal)


@pytest.mark.fault("the connection breaks, or the platform is busy for a while")
def test_a_submission_is_tried_again_with_the_same_key(
    osmosis: Osmosis, platform: FakePlatform, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("osmosis_cli.platform.connection.LIMITS", replace(LIMITS, tries=2))
    monkeypatch.setattr("osmosis_ai.models.retry.RetryPolicy.pause_s", lambda *words: 0.0)
    answers = iter([(503, {"error": "restarting"}), (200, MADE)])
    platform.answers["POST", RUNS] = lambda request: next(answers)
    assert osmosis("eval", "submit", CONFIG, "--yes")[0] == 0
    first, second = (request.headers["idempotency-key"] for request in platform.requests)
    assert first == second


def test_ctrl_c_while_it_is_sent_says_that_it_may_have_been_submitted(
    osmosis: Osmosis, platform: FakePlatform, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*words: Any, **values: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("osmosis_ai.platform.runs.Runs.submit", interrupt)
    status, _, err = osmosis("eval", "submit", CONFIG, "--yes")
    assert status == 130
    assert "Error: interrupted; whether it was submitted is not known: look at osmosis" in err


def test_an_answer_that_names_no_run_is_a_failure(
    osmosis: Osmosis, platform: FakePlatform, workspace: Path
):
    platform.answers["POST", RUNS] = {}
    status, _, err = osmosis("eval", "submit", CONFIG, "--yes")
    assert status == 1
    assert f"the answer of {platform.url} names no run; whether" in err
