"""What holds for every page of a workspace: whose it is, its forms, its headers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from osmosis_platform.pages.routes import PAGES
from tests.support.platform_server import Account, PlatformServer, serving

from .conftest import Browser

OURS = [route for route in PAGES if route.path.startswith("/w/")]
LOOKS = [route for route in OURS if "GET" in (route.methods or ())]
PathOf = Callable[[Route], str]
DOES = [route for route in OURS if "POST" in (route.methods or ())]


@pytest.fixture(scope="module")
def mine(platform_server: PlatformServer) -> Account:
    """The user whose pages are asked for."""
    account = platform_server.add_workspace()
    platform_server.add_run(
        account=account, name="my-run", status="running", report={"schema_version": 1}
    )
    return account


@pytest.fixture(scope="module")
def me(mine: Account, log_in: Callable[[Account], Browser]) -> Browser:
    """The browser of that user."""
    return log_in(mine)


@pytest.fixture(scope="module")
def path(mine: Account, platform_server: PlatformServer) -> PathOf:
    """Fill a route's path with objects of that user."""
    dataset = platform_server.add_dataset(account=mine)
    ids = {"tokens": mine.token_id, "members": mine.user_id, "datasets": dataset}

    def path(route: Route) -> str:
        kind = route.path.partition("/{id}")[0].rpartition("/")[2]
        return route.path.format(workspace=mine.workspace, name="my-run", id=ids.get(kind))

    return path


@pytest.fixture(scope="module")
def stranger(platform_server: PlatformServer, log_in: Callable[[Account], Browser]) -> Browser:
    """The owner of another workspace."""
    return log_in(platform_server.add_workspace())


def test_a_form_without_the_token_of_its_browser_changes_nothing(
    me: Browser, stranger: Browser, path: PathOf
):
    for route in DOES:
        for token in ("", stranger.token):
            answer = me.client.post(path(route), data={"token": token})
            assert answer.status_code == 403, route.path
        foreign = me.client.post(path(route), headers={"Sec-Fetch-Site": "same-site"})
        assert foreign.status_code == 403


def test_a_page_can_load_nothing_of_others_and_is_kept_nowhere(me: Browser, path: PathOf):
    for route in LOOKS:
        answer = me.get(path(route))
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
    connection: httpx.Client, path: PathOf
):
    answer = connection.get(path(LOOKS[1]), headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0">' in answer.text
    assert "Log out" not in answer.text


def test_a_login_leads_to_no_other_site(connection: httpx.Client):
    for onward in (
        "//evil.test",
        "https://evil.test",
        "/\\evil.test",
        "/w/../\r\nx",
        "javascript:1",
    ):
        page = connection.get("/login", params={"next": onward})
        assert 'name="next" value=""' in page.text, onward
    good = connection.get("/login", params={"next": "/w/acme/runs/x?before=3"})
    assert 'name="next" value="/w/acme/runs/x?before=3"' in good.text


def test_people_see_a_page_where_programs_see_json(me: Browser, monkeypatch: pytest.MonkeyPatch):
    for path in ("/nowhere", "/w/a/b/c/d", "/static/unknown.css"):
        shown = me.get(path, Accept="text/html")
        assert shown.status_code == 404
        assert "<h1>There is no such page</h1>" in shown.text
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert me.get(path).json()["code"] == "not_found"
    assert me.get("/api/cli/nowhere", Accept="text/html").json()["code"] == "not_found"

    def fails(*arguments: object) -> None:
        raise ValueError("a-value-of-somebody")

    monkeypatch.setattr("osmosis_platform.pages.context.find_workspace", fails)
    failed = me.get("runs", Accept="text/html")
    assert failed.status_code == 500
    assert "The platform failed; its log has more" in failed.text
    assert "a-value-of-somebody" not in failed.text
    assert "default-src 'none'" in failed.headers["content-security-policy"]
    assert failed.headers["cache-control"] == "no-store"


def test_cookies_travel_by_https_alone_where_the_platform_is_reached_by_it(tmp_path: Path):
    with (
        serving(tmp_path, public_url="https://osmosis.example.com") as platform,
        httpx.Client(verify=False, timeout=60) as client,
    ):
        cookie = client.get(f"{platform.url}/login").headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Secure"} <= set(cookie.split("; "))
