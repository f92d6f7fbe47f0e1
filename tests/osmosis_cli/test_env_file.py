"""`.env` at the front door: every command reads the nearest, and says so once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from osmosis_cli.main import main
from tests.support.command import Osmosis

SECRET = "sk-not-to-be-seen-anywhere"


@pytest.fixture
def osmosis(osmosis: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Osmosis]:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / ".env").write_text(f"SOME_API_KEY={SECRET}\nOSMOSIS_TOKEN={SECRET}\nSET=file\n")
    (tmp_path / "other.env").write_text(f"OSMOSIS_TOKEN={SECRET}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SET", "before")
    monkeypatch.delenv("OSMOSIS_TOKEN", raising=False)
    before = dict(os.environ)
    yield osmosis
    for name in os.environ.keys() - before.keys():
        del os.environ[name]


def schema(*words: str) -> list[str]:
    """A command that needs no variable."""
    return ["train", "schema", *words]


@pytest.mark.fault("a `.env` of the repository sets logins, proxies, `PYTHONPATH`, or an address")
def test_the_nearest_file_is_read_and_said_in_one_line(
    osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir("deep")
    status, out, err = osmosis(*schema("--json"))
    assert status == 0
    assert json.loads(out)["title"] == "TrainingConfig"
    assert err == (
        "osmosis: ../.env sets SOME_API_KEY, ignores OSMOSIS_TOKEN, which only a file that is "
        "named sets (--env-file ../.env)\n"
    )
    assert (os.environ["SOME_API_KEY"], os.environ["SET"]) == (SECRET, "before")
    assert "OSMOSIS_TOKEN" not in os.environ


@pytest.mark.parametrize(
    "words",
    [
        ["--env-file", "other.env", *schema()],
        schema("--env-file=other.env"),
        ["train", "--env-file", "other.env", "schema", "--json"],
    ],
)
def test_a_named_file_sets_every_name_wherever_the_option_stands(
    osmosis: Osmosis, words: list[str]
):
    status, _, err = osmosis(*words)
    assert (status, err) == (0, "osmosis: other.env sets OSMOSIS_TOKEN\n")
    assert os.environ["OSMOSIS_TOKEN"] == SECRET
    assert "SOME_API_KEY" not in os.environ


def test_none_is_read_on_wish(osmosis: Osmosis):
    osmosis.out(*schema("--no-env-file"))
    assert "SOME_API_KEY" not in os.environ


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--env-file", "gone"], "--env-file: gone cannot be read: No such file or directory"),
        (["--env-file"], "Option '--env-file' requires an argument."),
        (
            ["--no-env-file", "--env-file=other.env"],
            "--env-file and --no-env-file contradict each other: give one of them",
        ),
    ],
)
def test_wrong_use_is_reported_and_nothing_runs(osmosis: Osmosis, words: list[str], message: str):
    assert osmosis.error(*schema(*words), status=2).endswith(f"Error: {message}\n")
    err = osmosis.error(*schema("--json", *words), status=2)
    assert json.loads(err)["error"]["message"] == message


def test_a_found_file_that_cannot_be_read_is_only_warned_about(osmosis: Osmosis):
    Path(".env").write_bytes(b"A=\xff")
    status, out, err = osmosis(*schema())
    assert (status, bool(out), err) == (0, True, "warning: .env is not UTF-8\n")


def test_what_is_meant_for_pytest_is_not_taken(osmosis: Osmosis):
    err = osmosis.error("eval", "--model", "embedded", "--", "--env-file", "gone", status=4)
    assert "unrecognized arguments: --env-file" in err


def test_a_shell_completes_its_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    words = "osmosis --env-file "
    monkeypatch.setenv("_OSMOSIS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.startswith("file,")
