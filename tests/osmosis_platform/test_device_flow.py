"""Logging in on a device: the two calls, and the pages on which a user confirms it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient

from osmosis_platform.accounts import attempts, passwords
from osmosis_platform.app import create_app
from osmosis_platform.database.connection import Database
from osmosis_platform.database.models import DeviceGrant, LoginAttempts, now
from osmosis_platform.identifiers import new_id
from osmosis_platform.settings import ServerLimits
from tests.support.platform_server import Account, PlatformServer

PASSWORD = "correct horse battery"
VERSION = {"X-Osmosis-CLI-Version": "0.1.0"}


@pytest.fixture(scope="module")
def person(platform_server: PlatformServer) -> Account:
    """A user with a password, which is hashed at little cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_COST", 2)
        return platform_server.add_user(
            "person", workspace="people", repository="people/agents", password=PASSWORD
        )


@pytest.fixture(scope="module")
def device(platform_server: PlatformServer) -> Iterator[httpx.Client]:
    """The client on the device, which has no login yet."""
    with httpx.Client(
        base_url=platform_server.url, headers=VERSION, verify=False, timeout=60
    ) as client:
        yield client


@pytest.fixture
def browser(connection: httpx.Client) -> Iterator[httpx.Client]:
    """The user's browser, without a cookie."""
    connection.cookies.clear()
    connection.follow_redirects = True
    yield connection
    connection.follow_redirects = False


def authorize(device: httpx.Client, name: str = "laptop") -> dict[str, Any]:
    answer = device.post("/api/cli/device/authorize", json={"deviceName": name})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def poll(device: httpx.Client, grant: dict[str, Any]) -> httpx.Response:
    body = {"device_code": grant["device_code"]}
    return device.post("/api/cli/device/token", json=body)


def hidden(page: httpx.Response) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))


def log_in(browser: httpx.Client, page: httpx.Response, **changes: str) -> httpx.Response:
    data = {**hidden(page), "name": "person", "password": PASSWORD, **changes}
    return browser.post("/login", data=data)


def change_grant(platform_server: PlatformServer, grant: dict[str, Any], **values: Any) -> None:
    with platform_server.database.writing() as session:
        is_this = DeviceGrant.user_code == grant["user_code"]
        found = session.scalars(select(DeviceGrant).where(is_this)).one()
        for name, value in values.items():
            setattr(found, name, value)


def test_a_device_gets_its_token_once_a_user_has_logged_in_and_confirmed(
    device: httpx.Client, browser: httpx.Client, person: Account, platform_server: PlatformServer
):
    grant = authorize(device, "<b>laptop</b>\x1b[31m")
    assert grant["verification_uri"] == f"{platform_server.url}/device"
    assert poll(device, grant).json()["error"] == "authorization_pending"
    login = browser.get(grant["verification_uri_complete"])
    assert login.url.path == "/login"
    page = log_in(browser, login)
    assert page.url.path == "/device"
    assert grant["user_code"] in page.text
    assert "&lt;b&gt;laptop&lt;/b&gt;" in page.text
    assert "\x1b" not in page.text
    data = {**hidden(page), "workspace": person.workspace_id, "decision": "approve"}
    answer = browser.post("/device", data=data).text
    assert "You are logged in" in answer
    assert "The device &lt;b&gt;laptop&lt;/b&gt; [31m can now act in your name" in answer
    found = poll(device, grant).json()
    assert found["workspace"] == {"id": person.workspace_id, "name": "people", "role": "owner"}
    headers = {"Authorization": f"Bearer {found['access_token']}"}
    verified = device.get("/api/cli/verify", headers=headers).json()
    assert verified["token_id"] == found["token_id"]
    assert verified["expires_at"] == found["expires_at"]
    assert poll(device, grant).json()["error"] == "expired_token"
    assert browser.post("/device", data=data).status_code == 404


def test_a_device_that_is_refused_early_or_late_learns_why(
    device: httpx.Client, browser: httpx.Client, person: Account, platform_server: PlatformServer
):
    grant = authorize(device)
    assert browser.get("/").url.path == "/login"
    page = log_in(browser, browser.get("/login"))
    assert "Log out" in page.text
    assert browser.get("/device", params={"code": "BBBB-BBBB"}).status_code == 404
    typed = grant["user_code"].replace("-", " ").lower()  # in small letters
    page = browser.get("/device", params={"code": typed})
    assert grant["user_code"] in page.text
    browser.post("/device", data={**hidden(page), "decision": "deny"})
    assert poll(device, grant).json()["error"] == "access_denied"
    grant = authorize(device)
    change_grant(platform_server, grant, interval_s=1000)
    assert poll(device, grant).json()["error"] == "authorization_pending"
    answer = poll(device, grant)
    assert (answer.status_code, answer.json()["error"]) == (400, "slow_down")
    change_grant(platform_server, grant, expires_at=now() - timedelta(seconds=1))
    assert poll(device, grant).json()["error"] == "expired_token"
    assert poll(device, {"device_code": "unknown"}).json()["error"] == "expired_token"
    for body in ({}, {"deviceName": ""}, {"deviceName": "a" * 201}, {"x": 1}):
        assert device.post("/api/cli/device/authorize", json=body).status_code == 422


@pytest.mark.fault("another site sends a form, or reaches the platform under its own name")
def test_a_form_without_its_token_or_from_another_site_changes_nothing(
    device: httpx.Client, browser: httpx.Client, person: Account
):
    grant = authorize(device)
    page = log_in(browser, browser.get(grant["verification_uri_complete"]))
    data = {**hidden(page), "workspace": person.workspace_id, "decision": "approve"}
    for changes, headers in (
        ({"token": ""}, {}),
        ({"token": "0" * 64}, {}),
        ({"token": hidden(browser.get("/login"))["token"]}, {}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
        ({}, {"Origin": "http://another.test"}),
        ({}, {"Origin": "null"}),
        ({"workspace": "another"}, {}),
    ):
        answer = browser.post("/device", data={**data, **changes}, headers=headers)
        assert answer.status_code == 403
    assert poll(device, grant).json()["error"] == "authorization_pending"
    browser.post("/logout", data=hidden(page), headers={"Origin": str(browser.base_url)})
    assert browser.post("/device", data=data).status_code == 403
    assert browser.get("/device").url.path == "/login"


def test_the_login_lets_nothing_in_and_answers_a_wrong_name_as_a_wrong_password(
    browser: httpx.Client, person: Account
):
    page = browser.get("/login", params={"code": '"><script>'})
    assert "<script>" not in page.text
    policy = page.headers["content-security-policy"]
    for rule in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert page.headers["cache-control"] == "no-store"
    wrong = log_in(browser, page, password=f"{PASSWORD}!")
    unknown = log_in(browser, page, name="nobody-here")
    assert (wrong.status_code, unknown.status_code) == (403, 403)
    assert "The name or the password is wrong." in wrong.text
    assert PASSWORD not in wrong.text
    assert wrong.text.replace("person", "") == unknown.text.replace("nobody-here", "")
    browser.follow_redirects = False
    for answer in (page, log_in(browser, page)):  # cookies stay at home
        assert {"HttpOnly", "SameSite=strict"} <= {*answer.headers["set-cookie"].split("; ")}
    assert browser.get("/static/page.css").headers["content-type"].startswith("text/css")


@pytest.fixture
def guess(platform_server: PlatformServer) -> Callable[..., int]:
    """What logs in as a new user, or as another one, and returns the status."""
    user = new_id()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_COST", 2)
        platform_server.add_user(user, workspace=user, repository=f"{user}/x", password=PASSWORD)

    def guess(password: str, name: str = user, on: httpx.Client | None = None) -> int:
        with on or httpx.Client(base_url=platform_server.url, timeout=60.0) as browser:
            page = browser.get("/login")
            return log_in(browser, page, name=name, password=password).status_code

    return guess


def keys(platform_server: PlatformServer) -> set[str]:
    with platform_server.database.reading() as session:
        return {*session.scalars(select(LoginAttempts.key))}


@pytest.mark.fault("passwords are guessed")
def test_guesses_at_once_are_counted_before_they_are_checked_and_in_all_processes(
    platform_server: PlatformServer, guess: Callable[..., int]
):
    most = ServerLimits().failed_logins
    tried = [f"wrong {number}" for number in range(60)]
    with ThreadPoolExecutor(61) as threads:
        found = [*threads.map(guess, [*tried[:30], PASSWORD, *tried[30:]])]
    assert {*found} <= {303, 403, 429}
    assert found.count(403) <= most <= found.count(403) + 1
    assert guess(PASSWORD) == 429
    other = create_app(
        platform_server.settings,
        Database(platform_server.database.engine.url),
        platform_server.vault,
    )
    client = TestClient(other, base_url="http://127.0.0.1", follow_redirects=False)
    assert guess(PASSWORD, on=client) == 429
    other.state.database.close()


@pytest.mark.fault("passwords are guessed")
def test_a_login_that_succeeds_counts_for_nothing_and_others_end_no_block(
    platform_server: PlatformServer, guess: Callable[..., int]
):
    most = ServerLimits().failed_logins
    for _ in range(most + 1):
        assert guess(PASSWORD) == 303
    for _ in range(most):
        assert guess("wrong") == 403
    assert guess("wrong") == 429
    with platform_server.database.writing() as session:
        for number in range(300):
            key = attempts.key_of(f"stranger-{number}", platform_server.vault.sign)
            attempts.count(session, key, 10**6)
    known = keys(platform_server)
    assert {*map(len, known)} == {4}  # so many there can be
    for name in ("a" * 64, "x" * 5000, "no name", "\0", "", "ann (removed)"):
        assert guess("wrong", name) == 403
    assert guess("x" * (passwords.MAX_BYTES + 1), "someone") == 403
    assert keys(platform_server) == known
    assert guess(PASSWORD) == 429
    with platform_server.database.writing() as session:
        session.execute(update(LoginAttempts).values(since=now() - attempts.WINDOW))
    assert guess(PASSWORD) == 303


def test_a_client_that_begins_too_many_logins_keeps_no_other_from_beginning_one(
    device: httpx.Client,
):
    def begin(address: str) -> httpx.Response:
        headers = {"X-Forwarded-For": address}  # as a proxy on this machine says it
        body = {"deviceName": "m"}
        return device.post("/api/cli/device/authorize", json=body, headers=headers)

    for number in range(ServerLimits().device_logins):
        assert begin(f"192.0.2.{number}, 2001:db8::{number}").status_code == 200
    refused = begin("192.0.2.99, 2001:db8::99")
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert "logins were begun from this address; try again in 10 min" in refused.json()["error"]
    assert int(refused.headers["retry-after"]) > 500
    for address in ("192.0.2.1", "2001:db8:0:1::1", "no address"):
        assert begin(address).status_code == 200
