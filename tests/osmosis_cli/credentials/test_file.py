"""The credentials file: private from its first byte, and whole whatever happens."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from osmosis_ai.platform.account import User
from osmosis_ai.secret import Secret
from osmosis_cli.credentials import file
from osmosis_cli.credentials.login import KeptLogin, LoginProblem, Logins

ROOT = Path(__file__).parents[3]
PLATFORM = "https://platform.osmosis.ai"
VALUE = "token-of-a-login-99"
LOGIN = KeptLogin(
    user=User(id="u1", name="Ada"),
    role="owner",
    token=Secret(VALUE),
    token_id="t1",
    expires_at="2999-01-01T00:00:00Z",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "osmosis" / "credentials.json"


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def add(path: Path, name: str) -> list[str]:
    """Add a login; what was said besides."""
    said: list[str] = []
    file.change(path, lambda logins: logins.with_login(PLATFORM, name, LOGIN), said.append)
    return said


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_login_is_read_as_it_was_kept(path: Path):
    assert add(path, "one") == []
    [here] = file.read(path).platforms.values()
    assert (here.active, here.workspaces["one"]) == ("one", LOGIN)


@pytest.mark.fault("a call fails while a login is kept, or the process is killed")
@pytest.mark.usefixtures("open_umask")
def test_under_an_open_umask_everything_is_private_from_its_first_byte(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: set[int] = set()
    write = os.write

    def watched(descriptor: int, data: bytes) -> int:
        seen.add(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", watched)
    add(path, "one")
    assert seen == {0o600}
    assert mode(path.parent) == 0o700
    assert {mode(each) for each in path.parent.iterdir()} == {0o600}


@pytest.mark.slow
@pytest.mark.fault("a call fails while a login is kept, or the process is killed")
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "exit"])
def test_whatever_call_fails_the_logins_are_the_old_or_the_new_ones(tmp_path: Path, fault: str):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.failing_calls", "credentials", fault, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tried = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(tried) > 10
    for attempt in tried:
        folder = tmp_path / str(attempt["n"]) / "osmosis"
        logins = file.read(folder / "credentials.json")
        states = [set(), {"one"}, {"one", "two"}, {"two"}]
        kept = states.index(set(logins.at(PLATFORM).workspaces))
        assert kept - attempt["acknowledged"] in (0, 1)
        if folder.exists():
            assert mode(folder) == 0o700
            assert {mode(each) for each in folder.iterdir()} <= {0o600}


@pytest.mark.fault("two logins at once")
def test_of_many_changes_at_once_none_is_lost(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file, "LOCK_WAIT_S", 120.0)
    names = [f"workspace-{number}" for number in range(8)]
    start = Barrier(len(names))

    def change(name: str) -> None:
        start.wait(60)
        add(path, name)

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(change, names))
    assert set(file.read(path).at(PLATFORM).workspaces) == set(names)


@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"[]", b'{"version": 2, "platforms": {}}', '{"version": 1}'.encode("utf-16")],
)
def test_a_broken_file_is_left_unchanged(path: Path, content: bytes):
    add(path, "one")
    path.write_bytes(content)
    with pytest.raises(LoginProblem, match="left unchanged"):
        add(path, "two")
    assert path.read_bytes() == content


@pytest.mark.fault("the credentials file is a link, another user's, or readable by others")
def test_what_others_can_read_is_closed_and_said(path: Path):
    add(path, "one")
    path.chmod(0o644)
    path.parent.chmod(0o755)
    said = add(path, "two")
    assert [text.partition(" ")[0] for text in said] == [str(path.parent), str(path)]
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_a_file_in_the_place_of_the_folder_keeps_its_mode(tmp_path: Path):
    given = tmp_path / "config"
    given.touch(mode=0o644)
    with pytest.raises(LoginProblem, match="cannot write"):
        add(given / "credentials.json", "agents")
    assert mode(given) == 0o644


def test_a_folder_of_everybody_is_refused(path: Path):
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o1777)
    with pytest.raises(LoginProblem, match="shared with other users"):
        add(path, "one")
    assert list(path.parent.iterdir()) == []


@pytest.mark.fault("the credentials file is a link, another user's, or readable by others")
def test_a_file_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch):
    add(path, "one")
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(path).st_uid + 1)
    with pytest.raises(LoginProblem, match="belongs to another user"):
        file.read(path)
    with pytest.raises(LoginProblem, match="shared with other users"):
        add(path, "two")


@pytest.mark.fault("the credentials file is a link, another user's, or readable by others")
def test_a_link_is_neither_read_nor_replaced(path: Path):
    add(path, "one")
    path.rename(path.with_name("elsewhere.json"))
    path.symlink_to("elsewhere.json")
    with pytest.raises(LoginProblem, match="symbolic link"):
        add(path, "two")
    assert path.is_symlink()


def test_a_lock_that_is_kept_is_said(path: Path, monkeypatch: pytest.MonkeyPatch):
    from filelock import FileLock

    add(path, "one")
    monkeypatch.setattr(file, "LOCK_WAIT_S", 0.0)
    with FileLock(path.with_suffix(".lock")), pytest.raises(LoginProblem, match="locked"):
        add(path, "two")
    add(path, "two")


def test_no_token_is_shown_by_what_holds_it(path: Path):
    add(path, "one")
    shown = [repr(file.read(path)), str(LOGIN), repr(Logins())]
    assert not [text for text in shown if VALUE in text]
