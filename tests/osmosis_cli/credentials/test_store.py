from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from osmosis_cli.credentials.login import Login, LoginProblem
from osmosis_cli.credentials.store import credentials_path, find_login

DEFAULT = "https://platform.osmosis.ai"
LOCAL = "http://127.0.0.1:8000"
VALUE = "token-of-a-login-99"


def write(folder: Path, *, at: str = DEFAULT, **workspaces: dict[str, Any]) -> dict[str, str]:
    """Write these workspaces, the first one active; the environment in which they are found."""
    here = {"active_workspace": next(iter(workspaces), None), "workspaces": workspaces}
    put(folder, json.dumps({"version": 1, "platforms": {at: here}}).encode())
    return {"OSMOSIS_CONFIG_DIR": str(folder)}


def put(folder: Path, content: bytes) -> None:
    path = folder / "credentials.json"
    path.write_bytes(content)
    path.chmod(0o600)


def space(**fields: Any) -> dict[str, Any]:
    user = {"id": "u1", "name": "Ada", "email": "ada@example.com"}
    usual = {"user": user, "role": "owner", "token": VALUE, "expires_at": "2999-01-01T00:00:00Z"}
    return {**usual, **fields}


def test_there_is_no_login_without_a_file(tmp_path: Path):
    assert find_login({"OSMOSIS_CONFIG_DIR": str(tmp_path)}) is None


def test_the_active_workspace_is_used(tmp_path: Path):
    found = find_login(write(tmp_path, one=space(), two=space(token="another-token-1")))
    assert isinstance(found, Login)
    assert (found.workspace, found.platform_url) == ("one", DEFAULT)
    assert found.token.reveal() == VALUE
    assert VALUE not in repr(found)


def test_a_token_goes_only_to_the_platform_that_issued_it(tmp_path: Path):
    environ = write(tmp_path, at=LOCAL, one=space())
    found = find_login({**environ, "OSMOSIS_PLATFORM_URL": f"{LOCAL}/"})
    assert found is not None
    assert (found.workspace, found.platform_url) == ("one", LOCAL)
    assert find_login(environ) is None
    assert find_login({**environ, "OSMOSIS_PLATFORM_URL": "https://other.example"}) is None


def test_the_variable_beats_the_file(tmp_path: Path):
    environ = {**write(tmp_path, one=space()), "OSMOSIS_TOKEN": "token-of-the-variable"}
    found = find_login(environ)
    assert found is not None
    assert (found.token.reveal(), found.workspace) == ("token-of-the-variable", None)


@pytest.mark.fault("`OSMOSIS_TOKEN` is of another platform")
def test_a_token_in_a_variable_is_bound_to_its_platform():
    environ = {"OSMOSIS_TOKEN": VALUE, "OSMOSIS_PLATFORM_URL": LOCAL}
    with pytest.raises(LoginProblem, match="OSMOSIS_TOKEN_PLATFORM_URL") as refused:
        find_login(environ)
    assert VALUE not in str(refused.value)
    found = find_login({**environ, "OSMOSIS_TOKEN_PLATFORM_URL": LOCAL})
    assert found is not None
    assert found.platform_url == LOCAL


@pytest.mark.fault("the platform is plain http, and not on this machine")
@pytest.mark.parametrize(
    "url",
    [
        "http://platform.example",
        "http://localhost.evil.example",
        "http://127.1",
        "ftp://localhost",
        "https://user:pw@platform.example",
        "https://platform.example/path",
        "platform.example",
        "https://",
        "https://platform.example:99999",
    ],
)
def test_a_platform_without_encryption_is_on_loopback(url: str):
    with pytest.raises(LoginProblem, match="OSMOSIS_PLATFORM_URL"):
        find_login({"OSMOSIS_PLATFORM_URL": url, "OSMOSIS_CONFIG_DIR": "/nowhere"})


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.1", "http://[::1]:8000"])
def test_loopback_may_be_plain(url: str):
    found = find_login(
        {
            "OSMOSIS_TOKEN": VALUE,
            "OSMOSIS_PLATFORM_URL": url,
            "OSMOSIS_TOKEN_PLATFORM_URL": f"{url}/",
        }
    )
    assert found is not None
    assert found.platform_url == url


@pytest.mark.fault("the login has expired, or does within a minute")
@pytest.mark.parametrize("expires", ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00+02:00"])
def test_an_expired_login_is_said_before_anything_is_sent(tmp_path: Path, expires: str):
    with pytest.raises(LoginProblem, match=r"expired on .*run `osmosis login`"):
        find_login(write(tmp_path, one=space(expires_at=expires)))


@pytest.mark.fault("the credentials file cannot be understood")
@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"version": 2, "platforms": {}}',
        b'{"version": 1, "platforms": []}',
        b'{"version": 1, "platforms": {"https://platform.osmosis.ai": 1}}',
        '{"version": 1, "platforms": {}}'.encode("utf-16"),
        b"[" * 100_000,
    ],
)
def test_a_broken_file_is_left_unchanged_and_said(tmp_path: Path, content: bytes):
    put(tmp_path, content)
    with pytest.raises(LoginProblem, match="left unchanged"):
        find_login({"OSMOSIS_CONFIG_DIR": str(tmp_path)})
    assert (tmp_path / "credentials.json").read_bytes() == content


@pytest.mark.parametrize(
    "fields",
    [
        {"token": 7},
        {"token": ""},
        {"token": "a\nb"},
        {"expires_at": None},
        {"expires_at": 4102444800},
        {"expires_at": "soon"},
    ],
)
def test_a_broken_workspace_is_left_unchanged_and_said(tmp_path: Path, fields: dict[str, Any]):
    with pytest.raises(LoginProblem, match="left unchanged") as refused:
        find_login(write(tmp_path, one=space(**fields)))
    assert VALUE not in str(refused.value)


def test_no_other_workspace_stands_in_for_the_active_one(tmp_path: Path):
    here = {"active_workspace": "gone", "workspaces": {"one": space()}}
    put(tmp_path, json.dumps({"version": 1, "platforms": {DEFAULT: here}}).encode())
    with pytest.raises(LoginProblem, match="active workspace"):
        find_login({"OSMOSIS_CONFIG_DIR": str(tmp_path)})


def test_logged_out_of_every_workspace_there_is_no_login(tmp_path: Path):
    assert find_login(write(tmp_path)) is None


def test_a_link_in_the_place_of_the_file_is_refused(tmp_path: Path):
    environ = write(tmp_path, one=space())
    (tmp_path / "credentials.json").rename(tmp_path / "elsewhere.json")
    (tmp_path / "credentials.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(LoginProblem, match="symbolic link"):
        find_login(environ)


def test_a_pipe_in_the_place_of_the_file_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "credentials.json", 0o600)
    with pytest.raises(LoginProblem, match="no regular file"):
        find_login({"OSMOSIS_CONFIG_DIR": str(tmp_path)})


@pytest.mark.fault("the credentials file is a link, another user's, or readable by others")
def test_a_file_that_others_can_read_is_refused(tmp_path: Path):
    environ = write(tmp_path, one=space())
    (tmp_path / "credentials.json").chmod(0o640)
    with pytest.raises(LoginProblem, match="chmod 600"):
        find_login(environ)


def test_a_folder_in_the_place_of_the_file_is_said(tmp_path: Path):
    (tmp_path / "credentials.json").mkdir()
    with pytest.raises(LoginProblem, match="cannot read"):
        find_login({"OSMOSIS_CONFIG_DIR": str(tmp_path)})


def test_the_file_is_where_the_system_keeps_settings():
    assert credentials_path({}) == Path("~/.config/osmosis/credentials.json").expanduser()
    found = credentials_path({"XDG_CONFIG_HOME": "/settings"})
    assert found == Path("/settings/osmosis/credentials.json")


@pytest.mark.parametrize("fraction", ["", ".4", ".487", ".4871234Z", ".487Z"])
def test_a_date_with_any_fraction_of_a_second_is_read(tmp_path: Path, fraction: str):
    environ = write(tmp_path, one=space(expires_at=f"2999-01-01T00:00:00{fraction}"))
    assert find_login(environ) is not None
