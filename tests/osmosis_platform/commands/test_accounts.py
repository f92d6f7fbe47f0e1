"""Users, workspaces, members and tokens: listed, changed and removed by the operator."""

from __future__ import annotations

import errno
import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from osmosis_platform.accounts import browsers
from osmosis_platform.database.models import Base, LogLine, Run, Token, User, now
from osmosis_platform.execution import deletion
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.pages.forms import SESSION_COOKIE
from tests.support.command import Osmosis
from tests.support.platform_server import Account, PlatformServer


@pytest.fixture
def accounts(platform: Osmosis, tmp_path: Path) -> Osmosis:
    """A platform with two users in one workspace, and a repository beside its data."""
    (tmp_path / ".git").mkdir()
    platform("user", "add", "--no-password", "ann", "--email", "ann@x.test")
    platform("user", "add", "--no-password", "bob")
    platform("workspace", "add", "agents", "--git", "acme/agents")
    platform("workspace", "add", "other", "--git", "acme/other", "--clone-url", str(tmp_path))
    platform("member", "add", "agents", "ann", "--role", "owner")
    platform("member", "add", "agents", "bob")
    return platform


def documents(platform: Osmosis, *words: str) -> list[dict[str, Any]]:
    """What a command lists."""
    found = platform.document(*words)
    (name,) = found.keys() - {"total_count"}
    assert found["total_count"] == len(found[name])
    return list(found[name])


def status_of(server: PlatformServer, account: Account, cookie: str) -> tuple[int, int]:
    """What the API answers to a user's token, and the pages to their browser."""
    verify = f"{server.url}/api/cli/verify"
    called = httpx.get(verify, headers=account.headers, timeout=60)
    page = f"{server.url}/w/{account.workspace}/tokens"
    seen = httpx.get(page, cookies={SESSION_COOKIE: cookie}, timeout=60)
    return called.status_code, seen.status_code


def logged_in(server: PlatformServer, account: Account) -> str:
    """The cookie of a browser of a user."""
    with server.database.writing() as session:
        return browsers.start(session, session.get_one(User, account.user_id), 3600)


def test_lists_show_accounts_and_never_a_token(accounts: Osmosis, tmp_path: Path):
    token = accounts("token", "create", "bob")[1].strip()
    said = [accounts(kind, "list")[1] for kind in ("user", "workspace", "token")]
    said.append(accounts("member", "list", "agents")[1])
    assert [line.split() for line in said[0].splitlines()[1:]] == [
        ["ann", "ann@x.test", "tokens", "only", "0", "agents", "(owner)"],
        ["bob", "tokens", "only", "1", "agents", "(member)"],
    ]
    assert [line.split() for line in said[1].splitlines()[1:]] == [
        ["agents", "acme/agents", "GitHub", "2", "0"],
        ["other", "acme/other", str(tmp_path), "0", "0"],
    ]
    assert [line.split()[-4:-1] for line in said[2].splitlines()[1:]] == [
        ["bob", "agents", "never"]
    ]
    assert [line.split()[:2] for line in said[3].splitlines()[1:]] == [
        ["ann", "owner"],
        ["bob", "member"],
    ]
    assert documents(accounts, "user", "list")[1]["workspaces"] == [
        {"name": "agents", "role": "member"}
    ]
    assert documents(accounts, "workspace", "list")[1]["clone_url"] == str(tmp_path)
    assert documents(accounts, "member", "list", "agents")[0]["email"] == "ann@x.test"
    assert documents(accounts, "token", "list", "--user", "ann") == []
    (found,) = documents(accounts, "token", "list", "--workspace", "agents")
    assert token not in "".join(said) + json.dumps(found)


def test_a_token_is_listed_by_its_name_with_its_last_use(
    operator: Osmosis, platform_server: PlatformServer
):
    account = platform_server.add_workspace()

    def listed() -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in documents(operator, *words)}

    words = ("token", "list", "--user", account.user)
    assert operator("token", "create", account.user, "--name", "nightly")[0] == 0
    assert operator("token", "create", account.user)[0] == 0
    assert listed().keys() == {"nightly", "made by the operator", "test"}
    assert {each["last_used_at"] for each in listed().values()} == {None}
    assert status_of(platform_server, account, "")[0] == 200
    used = listed()["test"]["last_used_at"]
    assert used is not None
    assert status_of(platform_server, account, "")[0] == 200
    assert listed()["test"]["last_used_at"] == used  # within the hour
    assert [line.split()[-2] for line in operator(*words)[1].splitlines()[1:]].count("never") == 2
    page = logged_in(platform_server, account)
    shown = httpx.get(
        f"{platform_server.url}/w/{account.workspace}/tokens",
        cookies={SESSION_COOKIE: page}, timeout=60,
    ).text  # fmt: skip
    assert account.token_id in shown
    assert (shown.count(">never<"), "nightly" in shown) == (2, True)
    status, _, err = operator("token", "create", account.user, "--name", " ")
    assert (status, "a name has 1 to 100 printable characters" in err) == (2, True)


def test_an_old_use_of_a_token_is_noted_again_unless_the_database_is_locked(
    platform_server: PlatformServer,
):
    account = platform_server.add_workspace()
    database = platform_server.database

    def used() -> datetime:
        with database.reading() as session:
            found = session.get_one(Token, account.token_id).last_used_at
            assert found is not None
            return found

    earlier = now() - timedelta(hours=2)
    with database.writing() as session:
        session.get_one(Token, account.token_id).last_used_at = earlier
        session.flush()
        if database.is_sqlite:
            assert status_of(platform_server, account, "")[0] == 200
    assert used() == earlier
    assert status_of(platform_server, account, "")[0] == 200
    assert used() > earlier


def test_an_empty_platform_says_what_to_add(platform: Osmosis):
    assert "add one: osmosis platform user add" in platform("user", "list")[1]
    assert "add one: osmosis platform workspace add" in platform("workspace", "list")[1]
    assert platform("token", "list") == (0, "no token serves\n", "")
    platform("workspace", "add", "agents", "--git", "acme/agents")
    assert "member add agents USER" in platform("member", "list", "agents")[1]


def test_a_workspace_gets_another_repository_and_another_place_to_clone_from(
    accounts: Osmosis, tmp_path: Path
):
    words = ("workspace", "set", "agents")
    assert accounts(*words, "--git", "Acme/New", "--clone-url", str(tmp_path))[0] == 0
    assert accounts(*words, "--git", "acme/new")[0] == 0
    (found, _) = documents(accounts, "workspace", "list")
    assert (found["repository"], found["clone_url"]) == ("acme/new", str(tmp_path))
    status, out, _ = accounts(*words, "--no-clone-url", "--json")
    assert (status, json.loads(out)["clone_url"]) == (0, None)
    for more, message in (
        ((), "nothing to change"),
        (("--clone-url", "/", "--no-clone-url"), "give one of"),
        (("--clone-url", "ext::sh"), "--clone-url: "),
        (("--git", "nothing"), "is no OWNER/REPO"),
    ):
        status, _, err = accounts(*words, *more)
        assert (status, message in err) == (2, True)
    assert "of the workspace 'other' already" in accounts(*words, "--git", "acme/other")[2]


def test_a_user_gets_another_address_and_another_password(
    accounts: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "password").write_text("correct horse battery")
    words = ("user", "set", "bob")
    more = ("--email", "b@x.test", "--password-file", str(tmp_path / "password"), "--json")
    status, out, _ = accounts(*words, *more)
    assert (status, json.loads(out)["has_password"], json.loads(out)["email"]) == (
        0,
        True,
        "b@x.test",
    )
    assert accounts(*words, "--no-password")[0] == 0
    assert documents(accounts, "user", "list")[1]["has_password"] is False
    for wrong, message in (
        ((), "nothing to change"),
        (("--password",), "there is no terminal to ask for a password on: give --password-file"),
        (("--password", "--no-password"), "give one of"),
        (("--email", "x"), "must look like"),
    ):
        status, _, err = accounts(*words, *wrong)
        assert (status, message in err) == (2, True)


def test_what_removes_asks_first_without_a_terminal_wants_yes_and_says_what_is_not_there(
    accounts: Osmosis,
):
    accounts("token", "create", "bob")
    for words in (
        ("token", "revoke", "--user", "bob"),
        ("member", "remove", "agents", "bob"),
        ("workspace", "remove", "agents"),
        ("user", "remove", "ann"),
    ):
        assert "there is no terminal to ask on: give --yes" in accounts(*words)[2]
        no = {"stdin": b"n\n", "terminal": True}
        assert accounts.failure(*words, status=2, **no)["code"] == "usage"
        status, out, err = accounts(*words, **no)
        assert (status, "[y/N]" in err, "aborted" in err) == (1, True, True)
        assert accounts(*words, stdin=b"y\n", terminal=True)[0] == 0
    for words, message in (
        (("user", "remove", "zed"), "there is no user 'zed'"),
        (("workspace", "remove", "zed"), "there is no workspace 'zed'"),
        (("member", "remove", "other", "bob"), "bob is no member of other"),
        (("token", "revoke", "x"), "there is no token with the id 'x'"),
    ):
        status, out, err = accounts(*words, "--yes")
        assert (status, out, message in err) == (1, "", True)


def test_a_revoked_token_serves_no_more_nor_does_one_of_a_member_who_left_and_came_back(
    operator: Osmosis, platform_server: PlatformServer
):
    account = platform_server.add_workspace()
    cookie = logged_in(platform_server, account)
    other = platform_server.add_token(account)
    assert operator("token", "revoke", account.token_id, "--yes")[0] == 0
    assert status_of(platform_server, account, cookie) == (401, 200)
    assert operator("token", "revoke", "--user", account.user, "--yes", "--json")[0] == 0
    headers = {**account.headers, "Authorization": f"Bearer {other}"}
    verify = f"{platform_server.url}/api/cli/verify"
    assert httpx.get(verify, headers=headers, timeout=60).status_code == 401
    assert status_of(platform_server, account, cookie) == (401, 303)
    back = platform_server.add_workspace()
    words = (back.workspace, back.user)
    done = operator("member", "remove", *words, "--yes")
    assert done[:2] == (0, f"{back.user} is no longer in {back.workspace}.\n")
    operator("member", "add", *words)
    assert status_of(platform_server, back, "")[0] == 401


def test_a_removed_user_is_logged_out_at_once_and_what_they_made_stays(
    operator: Osmosis, platform_server: PlatformServer
):
    account = platform_server.add_workspace()
    run = platform_server.add_run(account=account, status="running")
    ended = platform_server.add_run(account=account, status="finished")
    platform_server.add_secret("OWN", account=account)
    cookie = logged_in(platform_server, account)
    assert status_of(platform_server, account, cookie) == (200, 200)
    status, out, _ = operator("user", "remove", account.user, "--yes", "--json")
    assert (status, json.loads(out)) == (
        0,
        {"name": account.user, "removed": True, "tokens_revoked": 1, "runs_stopped": 1},
    )
    assert status_of(platform_server, account, cookie) == (401, 303)
    with platform_server.database.reading() as session:
        for id_, expected in ((run, "stopped"), (ended, "finished")):
            found = session.get_one(Run, id_)
            assert (found.status, found.creator.name) == (expected, f"{account.user} (removed)")
    assert account.user not in {each["name"] for each in documents(operator, "user", "list")}
    for _ in range(2):  # the name is free again
        assert operator("user", "add", "--no-password", account.user)[0] == 0
        assert operator("member", "add", account.workspace, account.user)[0] == 0
        assert status_of(platform_server, account, cookie) == (401, 303)
        assert operator("user", "remove", account.user, "--yes")[0] == 0
    assert "there is no user" in operator("user", "remove", f"{account.user} (removed)", "-y")[2]


def test_a_workspace_goes_with_all_it_holds_once_its_runs_have_ended(
    operator: Osmosis, platform_server: PlatformServer
):
    def rows() -> dict[str, int]:
        with platform_server.database.reading() as session:
            tables = {each.name: each for each in Base.metadata.sorted_tables}
            return {
                name: session.scalar(select(func.count()).select_from(table)) or 0
                for name, table in tables.items()
                if name != "users"
            }

    before, data = rows(), platform_server.settings.data
    account = platform_server.add_workspace()
    dataset = platform_server.add_dataset(account=account)
    run = platform_server.add_run(account=account, dataset_id=dataset, status="running", name="a")
    platform_server.add_log(run, "something")
    platform_server.add_secret("OURS", scope="workspace", account=account)
    room = RunFolder.of_run(data, run)
    folders = (room.folder, data / "datasets" / dataset, data / "environments/downloads")
    for folder in (*folders[:2], folders[2] / account.workspace_id):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    words = ("workspace", "remove", account.workspace, "--yes")
    assert f"{account.workspace} has 1 run under way (a); stop them" in operator.error(*words)
    platform_server.set_run(run, status="stopped")
    platform_server.set_run(run, lease_until=now() + timedelta(seconds=60))
    assert "processes of a run" in operator(*words)[2]
    platform_server.set_run(run, lease_until=None)
    assert room.folder.exists()
    status, out, _ = operator(*words, "--json")
    assert (status, json.loads(out)["runs"]) == (0, 1)
    assert rows() == before
    assert [*folders[2].iterdir()] == []
    assert not any(folder.exists() for folder in folders[:2])
    assert status_of(platform_server, account, "")[0] == 401
    assert account.user in {each["name"] for each in documents(operator, "user", "list")}


def test_the_removal_of_a_workspace_lets_others_write_and_files_in_its_way_go_at_the_next_sweep(
    platform_server: PlatformServer, monkeypatch: pytest.MonkeyPatch
):
    account = platform_server.add_workspace()
    data, database = platform_server.settings.data, platform_server.database
    runs = [platform_server.add_run(account=account, status="finished") for _ in range(2)]
    folders = [RunFolder.of_run(data, run).folder for run in runs]
    for run, folder in zip(runs, folders, strict=True):
        platform_server.add_log(run, "something")
        folder.mkdir(parents=True)

    def refuse(folder: Path, **_: object) -> None:
        with database.writing(wait_ms=0):  # no transaction waits for files
            raise OSError(errno.EIO, "Input/output error", str(folder))

    left: list[int] = []

    def pause(seconds: float) -> None:
        with database.writing(wait_ms=0) as session:
            is_ours = LogLine.run_id.in_(runs)
            left.append(session.scalar(select(func.count()).where(is_ours)) or 0)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        patch.setattr(deletion, "RUNS_AT_ONCE", 1)
        patch.setattr(deletion.time, "sleep", pause)
        assert deletion.remove_workspace(database, data, account.workspace) == 2
    assert left == [1, 0]
    with database.reading() as session:
        assert not session.scalar(select(func.count()).where(LogLine.run_id.in_(runs)))
    assert all(folder.exists() for folder in folders)
    deletion.sweep(database, data)
    assert not any(folder.exists() for folder in folders)
