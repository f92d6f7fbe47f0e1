"""`osmosis login`, `whoami`, `logout`, `workspace list|current|switch`, against a fake platform."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.platform.client import Limits
from osmosis_cli.credentials import store
from osmosis_cli.eval import lines
from osmosis_cli.platform import connection
from tests.support.command import Osmosis
from tests.support.fake_platform import FAULTS_OF_COMMANDS, TOKEN, FakePlatform, Request

AUTHORIZE = ("POST", "/api/cli/device/authorize")
DEVICE_TOKEN = ("POST", "/api/cli/device/token")
VERIFY = ("GET", "/api/cli/verify")
ENDLESS = ("slow", "silent")
USER = {"id": "u1", "name": "Ada", "email": "ada@example.com"}
GRANT = {
    "device_code": "device-code-of-a-test",
    "user_code": "ABCD-EFGH",
    "verification_uri": "http://127.0.0.1:8400/device",
    "verification_uri_complete": "http://127.0.0.1:8400/device?user_code=ABCD-EFGH",
    "expires_in": 600,
    "interval": 7,
}


@pytest.fixture
def platform(platform: FakePlatform) -> FakePlatform:
    token = {"access_token": TOKEN}
    platform.answers |= {VERIFY: verified(), AUTHORIZE: GRANT, DEVICE_TOKEN: token}
    return platform


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of the device flow, in which time passes at once."""
    taken: list[float] = []
    monkeypatch.setattr("osmosis_ai.platform.device_flow.sleep", taken.append)
    monkeypatch.setattr("osmosis_ai.platform.device_flow.monotonic", lambda: sum(taken))
    return taken


@pytest.fixture
def osmosis(
    osmosis: Osmosis,
    platform: FakePlatform,
    tmp_path: Path,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> Osmosis:
    """The command, with a folder of its own for credentials and without a keyring."""
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("OSMOSIS_PLATFORM_URL", platform.url)
    monkeypatch.setattr(store, "is_keyring_installed", lambda: False)
    return osmosis


def verified(workspace: str | None = "acme", **fields: Any) -> dict[str, Any]:
    place = {"workspace": {"id": "w1", "name": workspace, "role": "owner"}} if workspace else {}
    return {
        "user": USER,
        "expires_at": "2999-01-31T12:00:00Z",
        "token_id": f"id of {workspace}",
        **place,
        **fields,
    }


def answers(*documents: tuple[int, Any]) -> Callable[[Request], tuple[int, Any]]:
    """One after the other."""
    left = iter(documents)
    return lambda _: next(left)


def log_in(osmosis: Osmosis, platform: FakePlatform, workspace: str = "acme") -> None:
    platform.answers[VERIFY] = verified(workspace)
    osmosis.out("login", "--token", "-", stdin=TOKEN.encode())
    platform.requests.clear()


def kept(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "config/credentials.json").read_text())
    return found["platforms"]


# ---- the device flow


def test_the_code_is_shown_and_the_login_kept(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path, pauses: list[float]
):
    status, out, err = osmosis("login")
    assert status == 0
    assert f"logged in at {platform.url} as Ada <ada@example.com>, workspace: acme (owner)" in out
    assert GRANT["verification_uri_complete"] in err
    assert "ABCD-EFGH" in err
    assert "within 10 minutes" in err
    assert [(request.method, request.path) for request in platform.requests] == [
        AUTHORIZE,
        DEVICE_TOKEN,
        VERIFY,
    ]
    authorize, token, verify = platform.requests
    assert set(authorize.body) == {"deviceName"}
    assert token.body == {"device_code": GRANT["device_code"]}
    assert "authorization" not in authorize.headers | token.headers
    assert verify.headers["authorization"] == f"Bearer {TOKEN}"
    assert verify.headers["user-agent"].startswith("osmosis-cli/")
    here = kept(tmp_path)[platform.url]
    assert here["active_workspace"] == "acme"
    assert here["workspaces"]["acme"] == {
        "user": USER,
        "role": "owner",
        "token": TOKEN,
        "token_id": "id of acme",
        "expires_at": "2999-01-31T12:00:00Z",
    }
    assert pauses == [7]
    assert TOKEN not in out + err
    assert GRANT["device_code"] not in out + err


@pytest.mark.fault("the code is denied, expires, or is asked for too often")
def test_the_interval_is_kept_and_grows_when_the_platform_asks_for_it(
    osmosis: Osmosis, platform: FakePlatform, pauses: list[float]
):
    platform.answers[DEVICE_TOKEN] = answers(
        (400, {"error": "authorization_pending"}),
        (400, {"error": "slow_down"}),
        (400, {"error": "authorization_pending"}),
        (503, {"error": "restarting"}),
        (200, {"access_token": TOKEN}),
    )
    assert osmosis("login")[0] == 0
    assert pauses == [7, 7, 12, 12, 24]


@pytest.mark.fault("the code is denied, expires, or is asked for too often")
@pytest.mark.parametrize(
    ("word", "sentence"),
    [("access_denied", "denied in the browser"), ("expired_token", "not confirmed in time")],
)
def test_a_login_that_is_not_confirmed_is_said_and_nothing_is_kept(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path, word: str, sentence: str
):
    platform.answers[DEVICE_TOKEN] = lambda _: (400, {"error": word})
    assert sentence in osmosis.error("login")
    assert not (tmp_path / "config/credentials.json").exists()


def test_a_code_that_has_expired_is_asked_about_no_more(
    osmosis: Osmosis, platform: FakePlatform, pauses: list[float]
):
    platform.answers[AUTHORIZE] = {**GRANT, "expires_in": 20}
    platform.answers[DEVICE_TOKEN] = lambda _: (400, {"error": "authorization_pending"})
    assert "not confirmed in time" in osmosis.error("login")
    assert pauses == [7, 7, 7]


def test_an_error_that_quotes_the_device_code_is_shown_without_it(
    osmosis: Osmosis, platform: FakePlatform
):
    quoted = {"error": f"what is {GRANT['device_code']}?"}
    platform.answers[DEVICE_TOKEN] = lambda _: (422, quoted)
    status, _, err = osmosis("login")
    assert (status, "what is ***?" in err) == (1, True)


@pytest.mark.fault("Ctrl-C while a login waits")
def test_ctrl_c_while_waiting_leaves_nothing_behind(
    osmosis: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("osmosis_ai.platform.device_flow.sleep", stop)
    assert osmosis.error("login", status=130).endswith("Error: interrupted\n")
    assert not (tmp_path / "config/credentials.json").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri_complete": "http://\x1b]8;;"},
        {"user_code": None},
        {"device_code": ""},
        {"expires_in": "soon"},
        {"expires_in": -1},
    ],
)
def test_an_answer_without_a_code_that_can_be_confirmed_is_refused(
    osmosis: Osmosis, platform: FakePlatform, fields: dict[str, Any]
):
    platform.answers[AUTHORIZE] = {**GRANT, **fields}
    err = osmosis.error("login")
    assert f"Error: the answer of {platform.url}" in err
    assert "\x1b" not in err


@pytest.mark.parametrize("token", [None, "", "two words", 7, "a\nb"])
def test_an_answer_without_a_token_that_can_be_sent_is_refused(
    osmosis: Osmosis, platform: FakePlatform, token: Any
):
    platform.answers[DEVICE_TOKEN] = {"access_token": token}
    assert "has no token that can be used" in osmosis.error("login")


@pytest.mark.fault("names from the platform have control or bidirectional characters")
def test_names_of_the_platform_are_escaped(osmosis: Osmosis, platform: FakePlatform):
    platform.answers[AUTHORIZE] = {**GRANT, "user_code": "AB\x1b[31m"}
    platform.answers[VERIFY] = verified("ac\u202eme", user={"name": "A\x07da"})
    status, out, err = osmosis("login")
    assert status == 0
    assert "AB\\x1b[31m" in err
    assert "A\\x07da, workspace: ac\\u202eme" in out


@pytest.mark.fault("no terminal")
def test_with_json_and_no_terminal_a_token_must_be_given(osmosis: Osmosis, platform: FakePlatform):
    status, out, err = osmosis("login", "--json")
    assert (status, out, platform.requests) == (2, "", [])
    assert "--token" in json.loads(err)["error"]["message"]


def test_a_login_that_is_still_valid_is_not_replaced_without_force(
    osmosis: Osmosis, platform: FakePlatform
):
    log_in(osmosis, platform)
    status, out, _ = osmosis("login")
    assert (status, [request.path for request in platform.requests]) == (0, [VERIFY[1]])
    assert "already logged in" in out
    assert "--force" in out
    assert osmosis("login", "--force")[0] == 0
    assert AUTHORIZE[1] in [request.path for request in platform.requests]


def test_a_login_that_the_platform_has_ended_is_replaced(osmosis: Osmosis, platform: FakePlatform):
    log_in(osmosis, platform)
    platform.answers[VERIFY] = answers((401, {"error": "revoked"}), (200, verified()))
    status, out, _ = osmosis("login")
    assert (status, out[:9]) == (0, "logged in")


# ---- a token that is given


def test_a_token_from_standard_input_is_verified_and_kept(osmosis: Osmosis, tmp_path: Path):
    status, out, err = osmosis("login", "--token", "-", "--json", stdin=f"{TOKEN}\n".encode())
    assert status == 0
    document = json.loads(out)
    assert (document["workspace"], document["user"], document["role"]) == ("acme", USER, "owner")
    assert err == "one newline at the end of the token was removed\n"
    assert TOKEN in (tmp_path / "config/credentials.json").read_text()
    assert TOKEN not in out + err


def test_a_token_in_the_arguments_is_taken_with_a_warning(osmosis: Osmosis):
    status, out, err = osmosis("login", "--token", TOKEN)
    assert status == 0
    assert "every user of this machine" in err
    assert TOKEN not in out + err


@pytest.mark.parametrize("value", [b"", b"\n", b"two words", b"\xff", b"x" * 200_000])
def test_a_token_that_cannot_be_sent_is_a_wrong_use_that_does_not_show_it(
    osmosis: Osmosis, platform: FakePlatform, value: bytes
):
    status, out, err = osmosis("login", "--token", "-", stdin=value)
    assert (status, out, platform.requests) == (2, "", [])
    assert "words" not in err


def test_a_token_that_the_platform_refuses_is_not_kept(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    platform.fault = "401"
    assert "osmosis login" in osmosis.error("login", "--token", "-", stdin=TOKEN.encode())
    assert not (tmp_path / "config/credentials.json").exists()


@pytest.mark.fault("the credentials file cannot be understood")
def test_a_broken_file_is_refused_before_a_login_asks_for_anything(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    (folder := tmp_path / "config").mkdir(mode=0o700)
    (path := folder / "credentials.json").write_bytes(b"{broken")
    path.chmod(0o600)
    for words in (["whoami"], ["login", "--token", "-"]):
        err = osmosis.error(*words, stdin=TOKEN.encode())
        assert "left unchanged" in err and "move it away and run `osmosis login`" in err
    assert path.read_bytes() == b"{broken"
    assert not platform.requests


def test_the_variable_that_beats_a_login_is_said(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
):
    for name, value in platform.environment.items():
        monkeypatch.setenv(name, value)
    status, _, err = osmosis("login", "--token", "-", stdin=b"token-of-another-login")
    assert (status, "OSMOSIS_TOKEN is set" in err) == (0, True)
    assert osmosis.document("whoami")["source"] == "environment"
    assert platform.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"


# ---- whoami


def test_whoami_says_who_where_and_until_when(osmosis: Osmosis, platform: FakePlatform):
    log_in(osmosis, platform)
    out = osmosis.out("whoami")
    first, *rest = out.splitlines()
    assert first == "Ada <ada@example.com>"
    assert [line.split()[0] for line in rest] == ["workspace", "platform", "login"]
    assert "2999-01-31 12:00 UTC, in " in out
    assert osmosis.document("whoami") == {
        "platform": platform.url,
        "workspace": "acme",
        "role": "owner",
        "user": USER,
        "expires_at": "2999-01-31T12:00:00Z",
        "source": "login",
    }


def test_a_session_that_has_ended_says_how_to_log_in_again(
    osmosis: Osmosis, platform: FakePlatform
):
    log_in(osmosis, platform)
    platform.fault = "401"
    error = osmosis.failure("whoami")
    assert (error["code"], error["details"]["request_id"]) == ("unauthorized", "req-77")
    assert "`osmosis login`" in error["message"]


@pytest.mark.parametrize("fault", FAULTS_OF_COMMANDS)
def test_a_platform_that_fails_is_one_error_and_no_login_is_kept(
    osmosis: Osmosis,
    platform: FakePlatform,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
):
    impatient = {"read_s": 0.05, "answer_s": 0.05} if fault in ENDLESS else {}
    monkeypatch.setattr(connection, "LIMITS", Limits(answer_bytes=1 << 20, tries=1, **impatient))
    platform.fault = fault
    for words in (("login", "--token", "-"), ("login",)):
        err = osmosis.error(*words, stdin=TOKEN.encode())
        assert err.startswith("Error: ")
        known = TOKEN if "--token" in words else "Bearer"
        assert not [text for text in (known, "\x1b", "secret", "Traceback") if text in err]
    assert not (tmp_path / "config/credentials.json").exists()


def test_without_a_login_each_command_says_what_to_do(osmosis: Osmosis, platform: FakePlatform):
    for words in (["whoami"], ["workspace", "current"], ["workspace", "switch", "acme"]):
        assert "osmosis login" in osmosis.error(*words)
    assert osmosis("logout", "--yes")[:2] == (0, "there is no login to end\n")
    assert platform.requests == []


# ---- several workspaces


def test_workspaces_are_kept_side_by_side_and_switched(osmosis: Osmosis, platform: FakePlatform):
    log_in(osmosis, platform, "acme")
    log_in(osmosis, platform, "beta")
    _, out, _ = osmosis("workspace", "list")
    header, *rows = [line.split() for line in out.splitlines()]
    assert header[:2] == ["workspace", "active"]
    assert [(row[0], "yes" in row) for row in rows] == [("acme", False), ("beta", True)]
    assert osmosis("workspace", "current")[:2] == (0, "beta\n")
    assert osmosis("workspace", "switch", "acme")[0] == 0
    found = osmosis.document("workspace", "list")["workspaces"]
    assert [(one["workspace"], one["is_active"]) for one in found] == [
        ("acme", True),
        ("beta", False),
    ]
    assert "Did you mean 'beta'?" in osmosis.error("workspace", "switch", "bta")
    assert platform.requests == []


def test_a_token_for_no_workspace_is_for_all_of_them(osmosis: Osmosis, platform: FakePlatform):
    platform.answers[VERIFY] = verified(None)
    out = osmosis("login", "--token", "-", stdin=TOKEN.encode())[1]
    assert "every workspace of yours" in out
    out = osmosis("workspace", "list", "--json")[1]
    assert json.loads(out)["workspaces"][0]["workspace"] is None


def test_logins_at_another_platform_are_not_shown(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
):
    log_in(osmosis, platform)
    monkeypatch.setenv("OSMOSIS_PLATFORM_URL", "https://other.example")
    assert "not logged in" in osmosis("workspace", "list")[1]


# ---- logout


def test_logout_revokes_the_token_and_removes_it(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    log_in(osmosis, platform, "acme")
    log_in(osmosis, platform, "beta")
    platform.answers["DELETE", "/api/cli/tokens/id%20of%20beta"] = {}
    status, out, err = osmosis("logout", "--yes")
    assert (status, out, err) == (0, f"logged out of beta at {platform.url}\n", "")
    [revoked] = platform.requests
    assert revoked.headers["authorization"] == f"Bearer {TOKEN}"
    here = kept(tmp_path)[platform.url]
    assert (here["active_workspace"], list(here["workspaces"])) == (None, ["acme"])
    assert "osmosis workspace switch NAME" in osmosis.error("whoami")


@pytest.mark.fault("the token cannot be revoked at a logout")
@pytest.mark.parametrize(("fault", "revoked"), [("401", True), ("404", True), ("403", False)])
def test_the_token_is_removed_also_when_it_is_not_revoked(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path, fault: str, revoked: bool
):
    log_in(osmosis, platform)
    platform.fault = fault
    status, out, err = osmosis("logout", "--yes", "--json")
    [ended] = json.loads(out)["logged_out"]
    assert (status, ended["revoked"]) == (0, revoked)
    assert kept(tmp_path) == {}
    assert TOKEN not in out + err


@pytest.mark.fault("the token cannot be revoked at a logout")
def test_a_failed_revocation_is_a_warning(osmosis: Osmosis, platform: FakePlatform):
    log_in(osmosis, platform)
    platform.fault = "403"
    status, _, err = osmosis("logout", "-y")
    assert status == 0
    assert "may still be valid" in err


def test_all_logins_end_each_at_its_platform(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    log_in(osmosis, platform, "acme")
    log_in(osmosis, platform, "beta")
    platform.fault = "404"
    monkeypatch.setenv("OSMOSIS_PLATFORM_URL", "https://other.example")
    out = osmosis("logout", "--all", "--yes", "--json")[1]
    assert [one["revoked"] for one in json.loads(out)["logged_out"]] == [True, True]
    assert kept(tmp_path) == {}


@pytest.mark.fault("no terminal")
def test_logout_asks_and_without_a_terminal_names_the_option(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    log_in(osmosis, platform)
    assert "--yes" in osmosis.error("logout", status=2)
    status, _, error = osmosis("logout", stdin=b"n\n", terminal=True)  # click 8.1 prints a blank
    assert (status, "nothing was done" in error) == (1, True)
    assert platform.requests == []
    platform.fault = "404"
    assert osmosis("logout", stdin=b"y\n", terminal=True)[0] == 0
    assert kept(tmp_path) == {}


def test_a_live_line_is_drawn_on_a_terminal_only_and_leaves_no_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(os.environ, "TERM", "xterm")
    with lines.LiveLine() as line:
        line.show("waiting", "it")
        line.show("| wait", "it")
    assert capsys.readouterr().err == "\rwaiting\r| wait \r      \r"
    monkeypatch.setitem(os.environ, "TERM", "dumb")
    with lines.LiveLine() as line:
        line.show("waiting", "it")
        line.show("| wait", "it")
    assert capsys.readouterr().err == "waiting\n"


def test_where_no_login_can_be_kept_none_is_asked_for(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    (folder := tmp_path / "config").mkdir(mode=0o700)
    (folder / "credentials.json").symlink_to(tmp_path / "elsewhere")
    status, out, err = osmosis("login")
    assert (status, out, platform.requests) == (1, "", [])
    assert "symbolic link" in err
