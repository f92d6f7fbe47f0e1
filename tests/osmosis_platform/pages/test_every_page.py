"""What holds for every page of a workspace: whose it is, its forms, its headers."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest
from starlette.routing import Route

from osmosis_platform.pages.forms import SESSION_COOKIE
from osmosis_platform.pages.routes import PAGES
from tests.platform_server import Account, PlatformServer

from .conftest import Browser

OURS = [route for route in PAGES if route.path.startswith("/w/")]
LOOKS = [route for route in OURS if "GET" in (route.methods or ())]
DOES = [route for route in OURS if "POST" in (route.methods or ())]
FORM = "application/x-www-form-urlencoded"


def names(route: Route) -> str:
    return f"{'POST' if route in DOES else 'GET'} {route.path}"


@pytest.fixture(scope="module")
def mine(platform_server: PlatformServer) -> Account:
    """The user whose pages are asked for."""
    account = platform_server.add_workspace()
    platform_server.add_run(
        account=account, name="my-run", status="running", report={"schema_version": 1}
    )
    return account


@pytest.fixture(scope="module")
def path(mine: Account) -> Callable[[Route], str]:
    """Fill a route's path with objects of that user."""

    def path(route: Route) -> str:
        id_ = mine.token_id if "/tokens/" in route.path else mine.user_id
        return route.path.format(workspace=mine.workspace, name="my-run", id=id_)

    return path


@pytest.fixture(scope="module")
def stranger(platform_server: PlatformServer, log_in: Callable[[Account], Browser]) -> Browser:
    """The owner of another workspace."""
    return log_in(platform_server.add_workspace())


@pytest.mark.parametrize("route", OURS, ids=names)
def test_another_workspace_is_as_one_that_is_not_there(
    stranger: Browser, path: Callable[[Route], str], route: Route, mine: Account
) -> None:
    if route in LOOKS:
        answer = stranger.get(path(route))
    else:
        answer = stranger.post(path(route), name="x", role="owner", label="x", days="7")
    assert answer.status_code == 404
    unknown = path(route).replace(mine.workspace, "no-such-workspace")
    known = stranger.get(unknown) if route in LOOKS else stranger.post(unknown)
    assert known.status_code == 404
    assert known.text == answer.text


OBJECTS = [route for route in OURS if "{name}" in route.path or "{id}" in route.path]


@pytest.mark.parametrize("route", OBJECTS, ids=names)
def test_an_object_of_another_workspace_is_in_none_of_mine(
    stranger: Browser, path: Callable[[Route], str], route: Route, mine: Account
) -> None:
    there = path(route).replace(mine.workspace, stranger.account.workspace)
    answer = stranger.get(there) if route in LOOKS else stranger.post(there, role="owner")
    if answer.headers["content-type"].startswith("text/event-stream"):
        assert "gone" in answer.text
    else:
        assert answer.status_code == 404


@pytest.mark.parametrize("cookie", [None, "", "osm_wrong"])
def test_who_is_not_logged_in_is_led_to_the_login_and_back(
    connection: httpx.Client, path: Callable[[Route], str], cookie: str | None
) -> None:
    headers = {} if cookie is None else {"Cookie": f"{SESSION_COOKIE}={cookie}"}
    for route in LOOKS:
        answer = connection.get(path(route), headers=headers)
        assert answer.status_code == 303, route.path
        assert answer.headers["location"].startswith("/login?next=%2Fw%2F")
    for route in DOES:
        assert connection.post(path(route), headers=headers, data={"x": "y"}).status_code in (
            303,
            403,
        )


@pytest.mark.parametrize("route", DOES, ids=names)
def test_a_form_without_the_token_of_its_browser_changes_nothing(
    log_in: Callable[[Account], Browser],
    stranger: Browser,
    path: Callable[[Route], str],
    route: Route,
    mine: Account,
) -> None:
    browser = log_in(mine)
    for token in ("", "0" * 64, stranger.token):
        if route.path.endswith("/datasets"):
            file = {"file": ("a.jsonl", b"{}\n")}
            answer = browser.client.post(path(route), data={"token": token}, files=file)
        else:
            answer = browser.client.post(path(route), data={"token": token})
        assert answer.status_code == 403, answer.text
    foreign = browser.client.post(path(route), headers={"Sec-Fetch-Site": "same-site"})
    assert foreign.status_code == 403


@pytest.mark.parametrize("route", LOOKS, ids=names)
def test_a_page_can_load_nothing_of_others_and_is_kept_nowhere(
    log_in: Callable[[Account], Browser], path: Callable[[Route], str], route: Route, mine: Account
) -> None:
    if route.path.endswith("/events"):
        return  # endless; its headers are in test_live
    answer = log_in(mine).get(path(route))
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in policy
    if "sandbox" not in policy:
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", answer.text)
    for form in re.findall(r'<form[^>]*method="post".*?</form>', answer.text, re.DOTALL):
        assert 'name="token"' in form


def test_a_link_from_elsewhere_is_followed_once_more_before_the_login(
    connection: httpx.Client, path: Callable[[Route], str]
) -> None:
    answer = connection.get(path(LOOKS[1]), headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0">' in answer.text
    assert "Log out" not in answer.text


@pytest.mark.parametrize(
    "onward", ["//evil.test", "https://evil.test", "/\\evil.test", "/w/../\r\nx", "javascript:1"]
)
def test_a_login_leads_to_no_other_site(connection: httpx.Client, onward: str) -> None:
    page = connection.get("/login", params={"next": onward})
    assert 'name="next" value=""' in page.text
    good = connection.get("/login", params={"next": "/w/acme/runs/x?before=3"})
    assert 'name="next" value="/w/acme/runs/x?before=3"' in good.text
