"""Submitting, following and stopping, against the real platform and a real workspace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from tests.support.platform_server import PlatformServer
from tests.support.pushed_workspace import GIT_TOKEN, commit, git, make_workspace

pytest.importorskip("osmosis_platform.app", reason="the extra `platform` is not installed")
CONFIG = "configs/eval/answers.toml"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace with a rollout as `osmosis rollout init` makes it, all of it pushed."""
    with pytest.MonkeyPatch.context() as patch:
        root = make_workspace(tmp_path_factory.mktemp("made"), patch)
        patch.chdir(root)
        assert run(cli, ["rollout", "init", "answers"]) == 0
        config = root / CONFIG
        config.write_text(config.read_text().replace("OPENAI_API_KEY", "SOME_KEY"))
        commit(root)
        git(root, "push", "--quiet", "origin", "main")
        yield root


@pytest.fixture(scope="module")
def stored(platform_server: PlatformServer) -> None:
    platform_server.add_dataset("answers")


@pytest.fixture
def osmosis(
    workspace: Path, stored: None, platform_server: PlatformServer, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:  # fmt: skip
    monkeypatch.chdir(workspace)
    for name, value in platform_server.environment.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()

    def command(*words: str) -> tuple[int, str, str]:
        status = run(cli, words)
        said = capsys.readouterr()
        for secret in (platform_server.token, GIT_TOKEN):
            assert secret not in said.out + said.err
        return status, said.out, said.err

    return command


@pytest.mark.slow
def test_a_run_is_submitted_followed_and_stopped(osmosis: Command, platform_server: PlatformServer):
    status, out, err = osmosis("eval", "submit", CONFIG, "--yes")
    assert (status, out) == (1, "")
    assert "the platform does not have the secret SOME_KEY" in err
    platform_server.add_secret("SOME_KEY")
    status, out, err = osmosis("eval", "submit", CONFIG, "--yes")
    assert status == 0, err
    assert "secrets     SOME_KEY (personal)" in out or "secrets   SOME_KEY (personal)" in out
    [name] = [line.split()[1].rstrip(",") for line in out.splitlines() if "submitted: " in line]

    status, out, _ = osmosis("eval", "list", "--json")
    assert [found["name"] for found in json.loads(out)["eval_runs"]] == [name]
    status, out, _ = osmosis("eval", "info", name, "--json")
    told = json.loads(out)
    assert (told["eval_run"]["status"], told["dataset"]["name"]) == ("pending", "answers")
    assert told["config"]["secrets"] == {"required": ["SOME_KEY"]}
    assert osmosis("eval", "info", told["eval_run"]["id"])[1].startswith(f"{name}  pending\n")

    assert osmosis("eval", "stop", name, "--yes") == (0, f"{name}: stopped\n", "")
    status, out, _ = osmosis("eval", "info", name, "--watch")
    assert status == 1
    assert out.startswith(f"{name}  stopped\n")
    status, out, _ = osmosis("eval", "logs", name, "--follow")
    assert status == 0
    assert "the run was submitted" in out
    assert "the run was stopped" in out
    assert osmosis("eval", "download", name)[0] == 1


@pytest.mark.slow
def test_a_training_run_is_submitted(osmosis: Command, platform_server: PlatformServer):
    config = "configs/training/answers.toml"
    status, out, err = osmosis("train", "submit", config, "--yes", "--json")
    assert (status, err) == (0, "")
    name = json.loads(out)["training_run"]["name"]
    assert osmosis("train", "info", name)[1].startswith(f"{name}  pending\n")
    assert [line.split()[0] for line in osmosis("train", "list")[1].splitlines()[1:]] == [name]
    assert osmosis("train", "stop", name, "--yes")[0] == 0


@pytest.mark.slow
def test_a_platform_names_what_it_refuses(osmosis: Command, platform_server: PlatformServer):
    status, _, err = osmosis("eval", "submit", "configs/eval/one.toml", "--yes", "--json")
    error = json.loads(err)["error"]
    assert (status, error["code"]) == (1, "invalid")
    assert error["details"]["platform_code"] == "dataset_not_found"
    assert error["details"]["field"] == "experiment_config.dataset"
    assert osmosis("eval", "info", "calm-otter-0")[0] == 1
