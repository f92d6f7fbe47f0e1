"""`osmosis doctor`, `auth` and `template`; commands that only osmosis-ai has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from osmosis_cli.instead import INSTEAD
from osmosis_cli.main import cli
from tests.support.command import Osmosis
from tests.support.fake_platform import FakePlatform

ME = {"user": {"id": "u", "name": "Ada"}, "expires_at": "2090-01-01T00:00:00+00:00"}


@pytest.fixture
def osmosis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Osmosis:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(tmp_path / "nothing-here"))
    return Osmosis(monkeypatch, capsys)


def problems(osmosis: Osmosis, status: int = 1) -> list[str]:
    ended, out, err = osmosis("doctor")
    assert (ended, err) == (status, ""), out + err
    return [line.removeprefix("! ").split()[0] for line in out.splitlines() if line[:1] == "!"]


def test_each_thing_that_is_wrong_has_a_mark_and_a_next_step(osmosis: Osmosis, tmp_path: Path):
    assert problems(osmosis) == ["workspace", "login"]
    assert "osmosis workspace init" in osmosis("doctor")[1]
    assert osmosis("workspace", "init")[0] == 0
    remote = ("git", "remote", "add", "origin", "git@github.com:acme/agents.git")
    subprocess.run(remote, cwd=tmp_path, check=True)
    assert osmosis("rollout", "init", "one")[0] == 0
    assert problems(osmosis) == ["login"]
    config = tmp_path / "configs/eval/one.toml"
    config.write_text(config.read_text().replace("[evaluation]", "[evaluation]\nlimti = 3"))
    assert problems(osmosis) == ["config", "login"]
    assert "did you mean 'limit'" in osmosis("doctor")[1].lower()


def test_a_page_without_a_mark_ends_with_zero(
    osmosis: Osmosis, tmp_path: Path, platform: FakePlatform
):
    osmosis.logged_in(platform)
    platform.answers[("GET", "/api/cli/verify")] = ME
    osmosis("workspace", "init")
    remote = ("git", "remote", "add", "origin", "git@github.com:acme/agents.git")
    subprocess.run(remote, cwd=tmp_path, check=True)
    assert problems(osmosis, status=0) == []
    assert osmosis.document("doctor")["problems"] == 0
    assert "Ada" in osmosis.out("doctor")


def test_templates_are_those_of_both_commands(osmosis: Osmosis, tmp_path: Path):
    listed = [one["name"] for one in osmosis.document("template", "list")["templates"]]
    assert listed == ["evaluation", "rollout"]
    assert osmosis("template", "apply", "evaluation", "here")[0] == 0
    assert (tmp_path / "here/pyproject.toml").is_file()
    assert "only evaluation, rollout" in osmosis.error("template", "apply", "agent")


def test_auth_is_another_way_to_three_commands(osmosis: Osmosis):
    assert osmosis.error("auth", "whoami") == osmosis.error("whoami")
    assert osmosis.out("auth", "logout") == osmosis.out("logout")


@pytest.mark.parametrize("path", INSTEAD)
def test_what_only_osmosis_ai_has_is_answered_with_what_is_here(osmosis: Osmosis, path: str):
    words = path.split()[1:]
    for word, sentence in INSTEAD[path].items():
        error = osmosis.error(*words, word, "whatever", status=2)
        what = "option" if word.startswith("-") else "command"
        assert f"o such {what} {word!r}" in error or f"There is no {what} {word!r}" in error
        assert sentence in error


def test_what_is_named_as_missing_is_not_there():
    for path, missing in INSTEAD.items():
        command: Any = cli
        context = click.Context(cli)
        for name in path.split()[1:]:
            command = command.get_command(context, name)
            assert command is not None, path
        known = [*getattr(command, "table", ())]
        known += [each for one in command.params for each in one.opts]
        assert not {*missing} & {*known}, path


def test_plain_may_stand_before_and_behind(osmosis: Osmosis):
    osmosis.monkeypatch.setenv("NO_COLOR", "")
    before = osmosis.out("--plain", "template", "list")
    assert before == osmosis.out("template", "list", "--plain")
