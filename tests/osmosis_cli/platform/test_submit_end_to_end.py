"""Submitting, following and stopping, against the real platform and a real workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from tests.support.command import Osmosis
from tests.support.platform_server import PlatformServer
from tests.support.pushed_workspace import GIT_TOKEN, commit, git, make_workspace

pytest.importorskip("osmosis_platform.app", reason="the extra `platform` is not installed")
CONFIG = "configs/eval/answers.toml"


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
    osmosis: Osmosis, workspace: Path, stored: None, platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Osmosis:  # fmt: skip
    monkeypatch.chdir(workspace)
    osmosis.hidden = (platform_server.token, GIT_TOKEN)
    return osmosis.logged_in(platform_server)


@pytest.mark.slow
def test_a_run_is_submitted_followed_and_stopped(osmosis: Osmosis, platform_server: PlatformServer):
    err = osmosis.error("eval", "submit", CONFIG, "--yes")
    assert "the platform does not have the secret SOME_KEY" in err
    platform_server.add_secret("SOME_KEY")
    status, out, err = osmosis("eval", "submit", CONFIG, "--yes")
    assert status == 0, err
    assert "secrets     SOME_KEY (personal)" in out or "secrets   SOME_KEY (personal)" in out
    [name] = [line.split()[1].rstrip(",") for line in out.splitlines() if "submitted: " in line]

    status, out, _ = osmosis("eval", "list", "--json")
    assert [found["name"] for found in json.loads(out)["eval_runs"]] == [name]
    status, out, _ = osmosis("eval", "info", name, "--json")
    document = json.loads(out)
    assert (document["eval_run"]["status"], document["dataset"]["name"]) == ("pending", "answers")
    assert document["config"]["secrets"] == {"required": ["SOME_KEY"]}
    assert osmosis("eval", "info", document["eval_run"]["id"])[1].startswith(f"{name}  pending\n")

    assert osmosis("eval", "stop", name, "--yes") == (0, f"{name}: stopped\n", "")
    status, out, _ = osmosis("eval", "info", name, "--watch")
    assert status == 1
    assert out.startswith(f"{name}  stopped\n")
    out = osmosis.out("eval", "logs", name, "--follow")
    assert "the run was submitted" in out
    assert "the run was stopped" in out
    assert osmosis("eval", "download", name)[0] == 1


@pytest.mark.slow
def test_a_training_run_is_submitted(osmosis: Osmosis, platform_server: PlatformServer):
    config = "configs/training/answers.toml"
    name = osmosis.document("train", "submit", config, "--yes")["training_run"]["name"]
    assert osmosis("train", "info", name)[1].startswith(f"{name}  pending\n")
    assert [line.split()[0] for line in osmosis("train", "list")[1].splitlines()[1:]] == [name]
    assert osmosis("train", "stop", name, "--yes")[0] == 0


@pytest.mark.slow
def test_a_platform_names_what_it_refuses(osmosis: Osmosis, platform_server: PlatformServer):
    status, _, err = osmosis("eval", "submit", "configs/eval/one.toml", "--yes", "--json")
    error = json.loads(err)["error"]
    assert (status, error["code"]) == (1, "invalid")
    assert error["details"]["platform_code"] == "dataset_not_found"
    assert error["details"]["field"] == "experiment_config.dataset"
    assert osmosis("eval", "info", "calm-otter-0")[0] == 1
