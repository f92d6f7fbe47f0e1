"""Which URLs a workspace may be cloned from."""

from __future__ import annotations

from pathlib import Path

import pytest

from osmosis_platform.accounts.registry import CloneUrlError, check_clone_url


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/agents.git",
        "https://git.example.com:8443/acme/agents",
        "ssh://git@git.example.com:2222/acme/agents.git",
        "git@github.com:acme/agents.git",
        "https://[::1]/x",
    ],
)
def test_https_and_ssh_are_taken(url: str):
    assert check_clone_url(url) == url


@pytest.mark.parametrize("inside", [".git", "objects"], ids=["work tree", "bare"])
def test_a_repository_in_a_folder_is_taken_as_its_path(tmp_path: Path, inside: str):
    (tmp_path / inside).mkdir()
    assert check_clone_url(str(tmp_path)) == str(tmp_path)
    assert check_clone_url(f"file://{tmp_path}") == str(tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c whoami",
        "ext::sh",
        "fd::17",
        "--upload-pack=touch",
        "-oProxyCommand=x",
        "ssh://-oProxyCommand=x/y",
        "ssh://-x@host/y",
        "ssh://git@host/-x",
        "/",
        "ssh://host:99999999/y",
        "git@-host:path",
        "host:-x",
        "http://github.com/a/b",
        "git://github.com/a/b",
        "https://",
        "https://user:hunter2hunter2@github.com/a/b",
        "https://ghp_hunter2hunter2@github.com/a/b",
        "file://relative",
        "/no/such/folder",
        "relative/folder",
        "https://a b/c",
        "https://a/b\nc",
        "",
    ],
)
def test_what_git_would_run_or_leak_is_refused_and_not_repeated(url: str):
    with pytest.raises(CloneUrlError) as raised:
        check_clone_url(url)
    assert "hunter2" not in str(raised.value)
