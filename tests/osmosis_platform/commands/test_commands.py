"""`osmosis platform ...`, as typed."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from unittest.mock import Mock

import httpx
import pytest

from osmosis_platform.accounts.passwords import matches
from osmosis_platform.accounts.tokens import find_caller
from osmosis_platform.commands.confinement_options import program
from osmosis_platform.database.connection import FILE_NAME, Database, parse_address, render_url
from osmosis_platform.database.models import User
from tests.support.command import Osmosis

PASSWORD = "correct horse battery"


def test_a_script_sets_a_platform_up(platform: Osmosis, tmp_path: Path):
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    words = ("user", "add", "ann", "--email", "ann@x.test", "--password-file")
    assert platform(*words, str(tmp_path / "password")) == (0, "Added the user ann.\n", "")
    said = "Added the user bob without a password: only tokens log this user in.\n"
    assert platform("user", "add", "--no-password", "bob") == (0, said, "")
    said = "Added the workspace agents of acme/agents.\n"
    assert platform("workspace", "add", "agents", "--git", "Acme/Agents") == (0, said, "")
    said = "ann is in agents as viewer.\n"
    assert platform("member", "add", "agents", "ann", "--role", "viewer") == (0, said, "")
    assert platform("member", "add", "agents", "ann")[0] == 0
    status, token, printed = platform("token", "create", "ann", "--expires-in-days", "7")
    assert (status, printed.startswith("The token of ann in agents, until ")) == (0, True)
    database = Database.in_folder(tmp_path / "data")
    with database.reading() as session:
        caller = find_caller(session, token.strip())
        assert caller is not None
        assert caller.workspace is not None
        assert (caller.user_name, caller.workspace.role) == ("ann", "member")
        assert matches(PASSWORD, session.get_one(User, caller.user_id).password_hash)
    database.close()
    kept = (tmp_path / "data" / FILE_NAME).read_bytes()
    assert token.strip().encode() not in kept
    assert PASSWORD.encode() not in kept
    for path in (tmp_path / "data", tmp_path / "data" / FILE_NAME):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_password_comes_by_a_file_standard_input_or_a_terminal_and_its_lack_is_asked_for(
    platform: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    status, out, err = platform("user", "add", "ann")
    assert (status, out) == (2, "")
    assert "there is no terminal to ask for a password on: give --password-file, or --no-" in err
    (tmp_path / "password").write_text(PASSWORD)
    both = ("--password-file", str(tmp_path / "password"), "--no-password")
    assert "give one of" in platform("user", "add", "ann", *both)[2]
    for password, expected in (("short", 2), (PASSWORD, 0)):
        words = ("user", "add", "bob", "--password-file", "-")
        status, out, err = platform(*words, stdin=password.encode())
        assert (status, password in out + err) == (expected, False)
    assert "ann" not in platform("user", "list")[1]
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda prompt: PASSWORD)
    status, out, err = platform("user", "add", "ann", terminal=True)
    assert (status, out, PASSWORD in err) == (0, "Added the user ann.\n", False)


def test_every_command_prints_json_and_its_errors_too(platform: Osmosis, tmp_path: Path):
    assert platform.document("user", "add", "--no-password", "ann")["has_password"] is False
    added = platform.document("workspace", "add", "agents", "--git", "acme/agents")
    assert added["clone_url"] is None
    added = platform.document("member", "add", "agents", "ann")
    assert added == {"workspace": "agents", "user": "ann", "role": "member"}
    assert platform.document("token", "create", "ann")["workspace"] == "agents"
    assert (
        "there is a user 'ann' already"
        in platform.failure("user", "add", "--no-password", "ann")["message"]
    )


@pytest.mark.fault("a password of the database is on the command line")
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("user", "add", "-x"), 2, "No such option"),
        (("user", "add", "--no-password", "a b"), 2, "the name of a user has up to 63 letters"),
        (
            ("user", "add", "--no-password", "a", "--email", "a"),
            2,
            "must look like name@example.com",
        ),
        (("workspace", "add", "a", "--git", "https://github.com/a/b"), 2, "is no OWNER/REPO"),
        (("workspace", "add", "a", "--git", "a/-x"), 2, "is no OWNER/REPO"),
        (("workspace", "add", "a"), 2, "--git"),
        (("workspace", "add", "a", "--git", "a/b", "--clone-url", "/"), 2, "is no Git repository"),
        (("workspace", "add", "a", "--git", "a/b", "--clone-url", "ext::sh"), 2, "--clone-url: "),
        (("member", "add", "a", "b"), 1, "there is no workspace 'a'; add one with"),
        (("member", "add", "a", "b", "--role", "king"), 2, "'king' is not one of"),
        (("token", "create", "ann"), 1, "there is no user 'ann'; add one with"),
        (("serve", "--host", "0.0.0.0"), 2, "say with --public-url where"),
        (("serve", "--public-url", "example.com"), 2, "must be https://HOST"),
        (("serve", "--public-url", "http://a.test"), 2, "http: put a proxy that speaks TLS in"),
        (("serve", "--port", "99999"), 2, "--port"),
        (("serve", "--index-url", "https://me:pw@x.test/"), 2, "must hold no user and no password"),
        (("serve", "--index-url", "x"), 2, "must be https://HOST"),
        (("serve", "--find-links", "nowhere"), 2, "'nowhere' does not exist"),
        (("serve", "--limit-memory", "lots"), 2, "'lots' is no size; write it as 512M or 8G"),
        (("serve", "--run-as", "no-such-user"), 2, "this machine has no user no-such-user"),
        (("serve", "--run-as", "root"), 2, "--run-as: "),
        (("serve", "--wrapper", "a 'b"), 2, "--wrapper: No closing quotation"),
        (("serve", "--wrapper", "no-such x"), 2, "--wrapper: there is no program 'no-such'"),
        (("serve", "--wrapper", ""), 2, "--wrapper: there is no program ''"),
        (
            ("serve", "--wrapper", "sh -c '${x} {{a}}' {foo} {room}"),
            2,
            "--wrapper: there is no {foo}; placeholders are {data}, {room}, {environment}, "
            "{folder}",
        ),
        (("serve", "--trainer", "no-such-program x"), 2, "there is no program"),
        (("serve", "--trainer-origin", "http://x"), 2, "--trainer-origin is for --trainer"),
        (("serve", "--trainer", "sh", "--trainer-origin", "x"), 2, "--trainer-origin: "),
        (("serve", "--ray-address", "auto"), 2, "--ray-address is for --executor ray"),
        (("serve", "--log-format", "xml"), 2, "'xml' is not one of"),
        (("serve", "--database", "sqlite:///x"), 2, "--database: must be postgresql://USER@HOST"),
        (("serve", "--database", "postgresql://a@b"), 2, "must be postgresql://USER@HOST/DATABASE"),
        (("serve", "--database", "postgresql://a:hidden@b/c"), 2, "every user of this machine can"),
        (("serve", "--database", "postgres://b/c?password=hidden"), 2, "every user of this"),
        (("serve", "--database-password-file", "x"), 2, "needs --database"),
    ],
)
def test_a_mistake_is_one_sentence(
    platform: Osmosis, words: tuple[str, ...], status: int, message: str
):
    found, out, err = platform(*words)
    assert (found, out) == (status, "")
    assert message in err
    assert "hidden" not in err


def test_a_program_beside_the_operator_is_found_from_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "box").write_text("#!/bin/sh\n")
    (tmp_path / "box").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert program("--wrapper", "./box {room}") == (str(tmp_path / "box"), "{room}")
    assert program("--wrapper", "sh -c x") == (shutil.which("sh"), "-c", "x")
    monkeypatch.setenv("PATH", ".")
    assert program("--wrapper", "box") == (str(tmp_path / "box"),)


def test_the_address_that_is_printed_is_that_of_users(
    platform: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("osmosis_platform.commands.serve._serve", lambda app, bound: None)
    words = ("serve", "--port", "0", "--max-runs", "0", "--host", "0.0.0.0")
    words += ("--public-url", "https://osmosis.example.com/")
    out = platform.out(*words)
    first, second = out.splitlines()
    assert first.startswith("The platform listens on http://0.0.0.0:")
    assert second == "Users reach it with OSMOSIS_PLATFORM_URL=https://osmosis.example.com"
    found = json.loads(platform(*words, "--json")[1])
    assert found["public_url"] == "https://osmosis.example.com"


def test_no_key_is_made_for_secrets_that_another_encrypted(
    platform: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("osmosis_platform.commands.serve._serve", lambda app, bound: None)
    data = tmp_path / "data"
    assert platform("workspace", "add", "agents", "--git", "acme/agents")[0] == 0
    assert platform("user", "add", "--no-password", "ann")[0] == 0
    database = Database.in_folder(data)
    with database.writing() as session:
        session.connection().exec_driver_sql(
            "INSERT INTO secrets (id, workspace_id, owner, name, encrypted, creator_id, created_at,"
            " updated_at) SELECT '1', w.id, '', 'KEY', 'x', u.id, w.created_at, w.created_at"
            " FROM workspaces w, users u"
        )
    database.close()
    status, _, err = platform("serve", "--port", "0", "--max-runs", "0")
    assert (status, "put it back" in err) == (1, True)
    assert not (data / "secret.key").exists()


def test_what_others_can_read_in_the_data_folder_is_closed_with_a_warning(
    platform: Osmosis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("osmosis_platform.commands.serve._serve", lambda app, bound: None)
    data = tmp_path / "data"
    (data / "runs").mkdir(mode=0o711)
    words = ("serve", "--port", "0", "--max-runs", "0", "--log-format", "json")
    data.chmod(0o755)
    (data / FILE_NAME).chmod(0o640)
    status, _, err = platform(*words)
    assert status == 0
    assert [json.loads(line)["message"] for line in err.splitlines()] == [
        f"others could use {data} (mode 755): it has the mode 700 now",
        f"others could use {data / FILE_NAME} (mode 640): it has the mode 600 now",
    ]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (data, data / FILE_NAME, data / "runs")]
    assert modes == [0o700, 0o600, 0o711]

    data.chmod(0o777)
    monkeypatch.setattr(Path, "chmod", Mock(side_effect=PermissionError))
    status, _, err = platform(*words)
    assert (status, "which is not this user's to change: chmod 700" in err) == (0, True)
    assert "secret.key" not in err

    monkeypatch.undo()
    (data / "secret.key").chmod(0o644)
    status, _, err = platform("serve", "--data", str(data), "--port", "0")
    assert (status, "can be read by others" in err) == (1, True)


def test_the_password_of_a_database_comes_from_a_file_or_the_environment(
    platform: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "password"
    assert parse_address("postgres://a:x%40y@b/c").password == "x@y"
    file.write_text("x@y\n")
    url = parse_address("postgresql://a@b:1/c", file)
    assert (url.password, render_url(url)) == ("x@y", "postgresql://a@b:1/c")
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATABASE", "postgresql://a:hidden@b/c")
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATABASE_PASSWORD_FILE", str(file))
    message = "OSMOSIS_PLATFORM_DATABASE: has a password, and there is a file with one"
    assert message in platform("user", "add", "--no-password", "ann")[2]
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATABASE", "postgresql://a@b/c")
    for content, message in ((b"", "is empty"), (b"\xff", "is not UTF-8")):
        file.write_bytes(content)
        assert message in platform("user", "add", "--no-password", "ann")[2]
    file.unlink()
    assert "No such file" in platform("user", "add", "--no-password", "ann")[2]


def test_a_token_needs_a_workspace_that_is_clear(platform: Osmosis):
    platform("user", "add", "--no-password", "ann")
    printed = platform("token", "create", "ann")[2]
    assert "ann is a member of no workspace" in printed
    for name in ("one", "two"):
        platform("workspace", "add", name, "--git", f"acme/{name}")
        platform("member", "add", name, "ann")
    assert "ann is in one, two; choose one" in platform("token", "create", "ann")[2]
    assert platform("token", "create", "ann", "--workspace", "two")[0] == 0
    assert (
        "no member of a workspace 'x'" in platform("token", "create", "ann", "--workspace", "x")[2]
    )
    assert "a workspace 'one' already" in platform("workspace", "add", "one", "--git", "x/y")[2]
    printed = platform("workspace", "add", "other", "--git", "Acme/One")[2]
    assert "acme/one is the repository of the workspace 'one' already" in printed


def test_serving_says_what_is_in_the_way(
    platform: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, _, err = platform("serve", "--port", port)
    assert (status, f"cannot listen on 127.0.0.1:{port}" in err) == (1, True)
    (tmp_path / "data" / "secret.key").write_text("no key")
    assert "not one of Fernet" in platform("serve", "--port", "0")[2]
    (tmp_path / "file").touch()
    assert "--data" in platform("serve", "--data", str(tmp_path / "file"))[2]
    (tmp_path / "data" / FILE_NAME).write_text("no database" * 100)
    assert (
        "the database: file is not a database" in platform("user", "add", "--no-password", "ann")[2]
    )


def test_without_the_extra_a_command_says_how_to_install_it(
    platform: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "alembic", None)
    for words in (("serve",), ("user", "add", "--no-password", "ann")):
        assert "pip install 'pytest-osmosis[platform]'" in platform.error(*words)
    assert platform("--help")[0] == 0


def test_help_of_every_command_needs_nothing_of_the_extra():
    hide = "import sys; sys.modules.update(dict.fromkeys(['sqlalchemy', 'starlette', 'alembic']))"
    show = "from osmosis_platform.commands.group import platform_group; platform_group(['--help'])"
    done = subprocess.run(
        [sys.executable, "-c", f"{hide}; {show}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "workspace" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_platform_serves_until_a_signal_and_says_nothing_of_it(
    tmp_path: Path, sent: int, status: int
):
    words = ["platform", "serve", "--port", "0", "--data", str(tmp_path)]
    command = [sys.executable, "-m", "osmosis_cli", *words]
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            url = served.stdout.readline().partition(" is at ")[2].partition(",")[0]
            page = httpx.get(f"{url}/login", trust_env=False, timeout=60)
            assert "Log in" in page.text
            served.send_signal(sent)
            _, errors = served.communicate(timeout=60)
            assert (served.returncode, errors) == (status, "")
        finally:
            served.kill()
