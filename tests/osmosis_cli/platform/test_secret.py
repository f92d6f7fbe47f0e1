"""`osmosis secret`: values go to the platform in one request, and nowhere else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from osmosis_cli.platform import connection
from tests.support.command import Osmosis
from tests.support.fake_platform import TOKEN, FakePlatform

SECRETS = "/api/cli/environment-secrets"
VALUE = "value-that-is-not-to-be-seen-31"
NAME = "MY_KEY"


@pytest.fixture
def platform(platform: FakePlatform) -> FakePlatform:
    stored = {"id": "s1", "name": NAME, "scope": "user", "updated_at": "2026-11-22T12:00:00Z"}
    page = {"environment_secrets": [stored], "total_count": 1, "has_more": False}
    platform.answers |= {
        ("POST", SECRETS): lambda _: (201, stored),
        ("GET", SECRETS): page,
        ("DELETE", SECRETS): {},
    }
    return platform


@pytest.fixture
def osmosis(osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch) -> Osmosis:
    """The command, logged in by a variable, in the workspace `acme/agents`."""
    monkeypatch.setattr(connection, "workspace_repository", lambda: "acme/agents")
    return osmosis.logged_in(platform)


def test_a_value_from_standard_input_is_sent_without_its_newline(
    osmosis: Osmosis, platform: FakePlatform
):
    status, out, err = osmosis("secret", "set", NAME, stdin=f"{VALUE}\n".encode())
    assert (status, out) == (0, f"the personal secret {NAME} is set\n")
    assert err == "one newline at the end of the value was removed\n"
    [request] = platform.requests
    assert (request.method, request.path) == ("POST", SECRETS)
    assert request.body == {"name": NAME, "value": VALUE, "scope": "user"}
    assert request.headers["x-osmosis-git"] == "acme/agents"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.fault("a secret's value ends in a newline")
@pytest.mark.parametrize(
    ("content", "sent"),
    [
        (b"one", "one"),
        (b"one\r\n", "one"),
        (b"one\n\n", "one\n"),
        (b"two lines\nof one value", "two lines\nof one value"),
        (" é ".encode(), " é "),
    ],
)
def test_one_newline_at_the_end_is_removed_and_nothing_else(
    osmosis: Osmosis, platform: FakePlatform, content: bytes, sent: str
):
    assert osmosis("secret", "set", NAME, "--value-file", "-", stdin=content)[0] == 0
    assert platform.requests[0].body["value"] == sent


def test_a_value_from_a_file_may_be_the_workspaces(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    (tmp_path / "key").write_text(VALUE)
    words = ("secret", "set", NAME, "--value-file", str(tmp_path / "key"), "--scope", "workspace")
    assert osmosis.document(*words) == {
        "name": NAME,
        "scope": "workspace",
        "updated_at": "2026-11-22T12:00:00Z",
    }
    assert platform.requests[0].body["scope"] == "workspace"


def test_on_a_terminal_the_value_is_asked_for_and_not_shown(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []

    def hidden(prompt: str) -> str:
        asked.append(prompt)
        return VALUE

    monkeypatch.setattr("click.termui.hidden_prompt_func", hidden)
    status, out, err = osmosis("secret", "set", NAME, terminal=True)
    assert (status, len(asked)) == (0, 1)
    assert (err + asked[0]).startswith("Value: ")  # older versions of click print the words
    assert platform.requests[0].body["value"] == VALUE
    assert VALUE not in out + err


@pytest.mark.fault("a secret's value is given as an argument")
@pytest.mark.parametrize(
    "words",
    [
        (NAME, VALUE),
        (NAME, f"--value={VALUE}"),
        (NAME, f"--{VALUE}"),
        (VALUE,),
        (f"{NAME}={VALUE}",),
        (NAME, "--value-file", VALUE),
        (NAME, "--", VALUE),
    ],
)
@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_a_value_among_the_arguments_is_refused_and_not_shown(
    osmosis: Osmosis, platform: FakePlatform, words: tuple[str, ...], as_json: tuple[str, ...]
):
    assert VALUE not in osmosis.error("secret", "set", *as_json, *words, status=2)
    assert platform.requests == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\xff\xfe", b"a\0b", b"x" * 131_073, f"x{'é' * 65_540}".encode()],
    ids=lambda each: repr(each[:4]),
)
def test_a_value_that_no_environment_can_hold_is_a_wrong_use(
    osmosis: Osmosis, platform: FakePlatform, content: bytes
):
    status, out, _ = osmosis("secret", "set", NAME, stdin=content)
    assert (status, out, platform.requests) == (2, "", [])


@pytest.mark.fault("the platform quotes a secret's value in an error")
def test_an_error_that_quotes_the_value_is_not_shown(osmosis: Osmosis, platform: FakePlatform):
    for value in (VALUE, "abc"):
        answer = {"error": f"{value} is not good", "field": "value"}
        platform.answers["POST", SECRETS] = lambda _, answer=answer: (422, answer)
        for words in ((), ("--json",)):
            err = osmosis.error("secret", "set", NAME, *words, stdin=value.encode())
            assert value not in err
            assert "quotes the value" in err


def test_names_are_listed_and_never_values(osmosis: Osmosis, platform: FakePlatform):
    status, out, _ = osmosis("secret", "list")
    header, row = out.splitlines()
    assert (status, header.split("  ")[0]) == (0, "name")
    assert row.split()[:2] == [NAME, "personal"]
    assert platform.requests[0].query == {"scope": "all", "limit": "100", "offset": "0"}
    status, out, _ = osmosis("secret", "list", "--json")
    [secret] = json.loads(out)["secrets"]
    assert (secret["name"], secret["scope"]) == (NAME, "personal")


@pytest.mark.fault("names from the platform have control or bidirectional characters")
def test_names_of_the_platform_are_escaped(osmosis: Osmosis, platform: FakePlatform):
    named = {"name": "A\x1b[31m\u202e", "scope": "user\x07"}
    platform.answers["GET", SECRETS] = {"environment_secrets": [named], "has_more": False}
    _, out, _ = osmosis("secret", "list")
    assert "A\\x1b[31m\\u202e" in out
    assert "\x07" not in out


def test_no_secrets_is_said_with_the_next_step(osmosis: Osmosis, platform: FakePlatform):
    platform.answers["GET", SECRETS] = {"environment_secrets": [], "has_more": False}
    assert "osmosis secret set NAME" in osmosis("secret", "list")[1]


def test_a_secret_is_deleted_by_name_and_scope(osmosis: Osmosis, platform: FakePlatform):
    status, out, _ = osmosis("secret", "delete", NAME, "--scope", "workspace")
    assert (status, out) == (0, f"the workspace secret {NAME} is deleted\n")
    assert platform.requests[0].body == {"name": NAME, "scope": "workspace"}
    platform.fault = "404"
    assert f"no personal secret '{NAME}'" in osmosis.error("secret", "delete", NAME)


@pytest.mark.parametrize("fault", ["401", "403", "500", "html", "redirect"])
def test_a_platform_that_fails_is_one_error_without_the_value(
    osmosis: Osmosis, platform: FakePlatform, fault: str
):
    platform.fault = fault
    err = osmosis.error("secret", "set", NAME, "--json", stdin=VALUE.encode())
    assert json.loads(err)["error"]["exit_code"] == 1
    assert not [text for text in (VALUE, TOKEN, "\x1b") if text in err]


def test_outside_of_a_workspace_and_without_an_origin_it_is_said(
    osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.undo()
    monkeypatch.setenv("OSMOSIS_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    assert "in no Git work tree" in osmosis.error("secret", "list")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert "no remote named origin" in osmosis.error("secret", "list")


def test_a_login_to_another_repositorys_workspace_is_said_with_the_way_to_this_one(
    osmosis: Osmosis, platform: FakePlatform
):
    answer = {"error": "the token is for acme; log in again", "code": "wrong_repository"}
    platform.answers["GET", SECRETS] = lambda _: (403, answer)
    err = osmosis.error("secret", "list")
    assert "the token is for acme: run `osmosis workspace switch NAME`" in err
