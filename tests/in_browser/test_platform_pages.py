"""The platform's pages as people use them: on a telephone, by keyboard, in the dark, live."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import select

from osmosis_platform.accounts import browsers, passwords
from osmosis_platform.database.models import Token, User, now
from osmosis_platform.execution.run_figures import metrics_of
from osmosis_platform.pages.forms import SESSION_COOKIE
from pytest_osmosis.reports.json_reader import checked
from pytest_osmosis.reports.json_writer import document_of
from tests.support.made_results import NASTY, result_of, suite_of
from tests.support.platform_server import Account, PlatformServer

PASSWORD = "correct horse battery"
WIDTHS = {"dark": (1280, 375), "light": (375, 1280)}
"""The second one is that of the look for mistakes."""
SAMPLE = ("runs", "runs/slow-run", "runs/bad-run", "tokens")
"""Pages that have every colour."""
Open = Callable[..., Any]
BROKEN_WORDS = """() => {
  const found = [];
  for (const list of document.querySelectorAll(".list")) {
    const texts = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); )
      for (const word of text.data.matchAll(/(?<![\\w.@-])\\w{2,16}(?![\\w.@-])/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(each => each.top)).size > 1)
          found.push(word[0]);
      }
  }
  return found;
}"""
"""The words of tables, of an ordinary length, that are broken over two lines."""


@pytest.fixture(scope="module")
def ann(platform_server: PlatformServer) -> Account:
    """A user with a password, in a workspace with some of everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_COST", 2)
        ann = platform_server.add_user(
            "ann", workspace="agents", repository="acme/agents-2", password=PASSWORD
        )
    for name, scores in (("first-run", [1.0, 0.0]), ("second-run", [1.0, 1.0])):
        finished(platform_server, ann, name, scores)
    run_id = platform_server.add_run(
        account=ann,
        name="slow-run",
        status="running",
        metrics={"overview": {"total_samples": 9, "completed_samples": 4, "passed": 3}},
    )
    for text in (NASTY, "a-word-without-an-end-" * 20, "\x1b[31mred"):
        platform_server.add_log(run_id, text, level="warning", step="run")
    platform_server.add_run(account=ann, name="bad-run", status="failed", results={"error": NASTY})
    platform_server.add_dataset("a-name-that-is-rather-long-" * 5, account=ann)
    platform_server.add_secret("A_NAME_THAT_IS_RATHER_LONG_FOR_A_SECRET" * 2, account=ann)
    with platform_server.database.writing() as session:
        for token in session.scalars(select(Token)):
            token.label = "created"
    platform_server.add_user("bob-who-looks", workspace="agents", role="viewer")
    return ann


def finished(platform: PlatformServer, account: Account, name: str, scores: list[float]) -> str:
    """Add a run with a report."""
    answer = f"{name} {NASTY}"
    report = document_of(result_of(suite_of([[score] for score in scores], answer=answer)))
    return platform.add_run(
        account=account,
        name=name,
        status="finished",
        metrics=metrics_of(checked(report)),
        report=report,
    )


@pytest.fixture
def visit(platform_server: PlatformServer, ann: Account, open_page: Open) -> Open:
    """Open a page of the workspace as that user."""

    def visit(path: str, **context: Any) -> Any:
        cookies = [logged_in(platform_server, ann)]
        url = f"{platform_server.url}/w/agents/{path}"
        return open_page(url, storage_state={"cookies": cookies, "origins": []}, **context)

    return visit


def logged_in(platform: PlatformServer, account: Account) -> dict[str, Any]:
    """Return the cookie of a new login, as Playwright wants it."""
    with platform.database.writing() as session:
        cookie = browsers.start(session, session.get_one(User, account.user_id), 3600)
    return {
        "name": SESSION_COOKIE,
        "value": cookie,
        "domain": urlsplit(platform.url).hostname,
        "path": "/",
        "expires": -1,
        "httpOnly": True,
        "secure": False,
        "sameSite": "Strict",
    }


PAGES = [
    "runs",
    "runs?kind=training",
    "runs/slow-run",
    "runs/second-run",
    "runs/bad-run",
    "compare?run=second-run&baseline=first-run",
    "datasets",
    "secrets",
    "members",
    "tokens",
]


@pytest.mark.parametrize("scheme", WIDTHS)
def test_pages_fit_and_nothing_is_wrong_with_them(visit: Open, violations: Open, scheme: str):
    page = visit("runs", color_scheme=scheme)
    base = page.url.removesuffix("runs")
    for path in PAGES:
        page.goto(base + path)
        for width in WIDTHS[scheme]:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate(BROKEN_WORDS) == [], path
        if scheme == "dark" or path in SAMPLE:
            assert violations(page) == [], path


def test_who_logs_in_by_keyboard_comes_to_the_page_that_was_asked_for(
    open_page: Open, violations: Open, platform_server: PlatformServer, ann: Account
):
    page = open_page(f"{platform_server.url}/w/agents/runs/second-run")
    assert violations(page) == []
    page.keyboard.type("ann")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/w/agents/runs/second-run")
    assert page.evaluate("document.cookie") == ""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator(".bar summary").focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="Log out").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("button", name="Log out").is_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/login")


def test_a_run_is_followed_to_its_end_over_a_lost_connection(
    visit: Open, platform_server: PlatformServer, ann: Account
):
    run_id = platform_server.add_run(account=ann, name="new-run", status="running")
    platform_server.add_log(run_id, "line one")
    page = visit("runs/new-run")
    page.get_by_text("live", exact=True).wait_for()
    platform_server.add_log(run_id, "line two")
    page.get_by_text("line two").wait_for()
    page.evaluate("() => { window.kept = fetch; window.fetch = () => Promise.reject('lost'); }")
    page.get_by_text("reconnecting").wait_for()
    platform_server.add_log(run_id, "line three")
    page.evaluate("() => { window.fetch = kept; }")
    page.get_by_text("line three").wait_for()
    platform_server.set_run(
        run_id, metrics={"overview": {"total_samples": 8, "completed_samples": 6, "passed": 5}}
    )
    page.get_by_role("img", name="6 of 8 rollouts done, 5 passed").wait_for()
    report = document_of(result_of(suite_of([[1.0], [0.0]], answer=NASTY)))
    platform_server.set_run(
        run_id,
        status="finished",
        completed_at=now() - timedelta(minutes=1),
        metrics=metrics_of(checked(report)),
        report=report,
    )
    page.get_by_role("status").get_by_text("failed").wait_for()
    page.get_by_text("row-1").click()
    assert page.locator(".opened").first.is_visible()
    lines = page.locator("[data-log] p").all_inner_texts()
    assert [line.split()[-1] for line in lines] == ["one", "two", "three"]


def test_the_list_fills_and_a_hidden_page_costs_nothing(
    visit: Open, platform_server: PlatformServer, ann: Account
):
    page = visit("runs")
    page.clock.install()
    page.reload()
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_label("Compare first-run").check()
    assert page.get_by_role("button", name="Compare two").is_disabled()
    platform_server.add_run(account=ann, name="fresh-run")
    page.get_by_role("link", name="fresh-run").wait_for()
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(60_000)
    assert asked == []
    page.get_by_label("Compare second-run").check()  # the first one still is
    page.get_by_role("button", name="Compare two (2 ticked)").click()
    page.get_by_role("heading", name="second-run against first-run").wait_for()
    page.locator(".pair:has(del) ins", has_text="second").wait_for(state="attached")
    page.go_back()
    page.get_by_label("Result").select_option("running")
    page.wait_for_url("**outcome=running**")


def test_everything_but_the_following_works_without_scripts(
    visit: Open, platform_server: PlatformServer, ann: Account
):
    platform_server.add_run(account=ann, name="long-run", status="running")
    telephone = {"width": 375, "height": 812}
    page = visit("runs/long-run", java_script_enabled=False, viewport=telephone)
    page.get_by_text("Stop…").click()
    page.get_by_role("button", name="Stop this run").click()
    assert page.get_by_role("status").first.inner_text().startswith("The run was stopped.")
    page.get_by_role("link", name="Secrets").click()
    page.get_by_label("Name").fill("SET_BY_HAND")
    page.get_by_label("Value").fill("a-value\nof two lines")
    page.get_by_role("button", name="Save").click()
    assert "SET_BY_HAND" in page.get_by_role("table").inner_text()
    assert "a-value" not in page.content()


def test_a_token_is_copied_and_not_shown_again(visit: Open):
    page = visit("tokens", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Issue").click()
    token = page.locator("#issued").input_value()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == token
    page.get_by_role("link", name="Tokens").click()
    assert token not in page.content()
    assert "nightly" in page.get_by_role("table").first.inner_text()


def test_a_page_says_when_its_login_has_ended(visit: Open, platform_server: PlatformServer):
    page = visit("runs/slow-run")
    page.get_by_text("live", exact=True).wait_for()
    [cookie] = page.context.cookies()
    with platform_server.database.writing() as session:
        browsers.end(session, cookie["value"])
    page.get_by_text("no longer live").wait_for()


def test_a_link_of_another_site_leads_to_the_page_without_a_second_login(
    browser: Any, platform_server: PlatformServer, ann: Account
):
    cookies = [logged_in(platform_server, ann)]
    context = browser.new_context(storage_state={"cookies": cookies, "origins": []})
    page = context.new_page()
    elsewhere = platform_server.url.replace("127.0.0.1", "localhost")
    page.goto(f"{elsewhere}/login")
    page.evaluate(f"location.href = '{platform_server.url}/w/agents/runs/second-run'")
    page.get_by_role("heading", name="second-run").wait_for()
    context.close()


def test_a_user_logs_in_and_confirms_a_device(
    open_page: Open, violations: Open, platform_server: PlatformServer, ann: Account
):
    versions = {"X-Osmosis-CLI-Version": "0.1.0"}
    with httpx.Client(base_url=platform_server.url, headers=versions, timeout=60) as device:
        grant = device.post("/api/cli/device/authorize", json={"deviceName": "laptop"}).json()
        url = grant["verification_uri_complete"]
        page = open_page(url, viewport={"width": 375, "height": 700})
        page.get_by_label("User name").fill("ann")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        assert page.locator("p.code").inner_text() == grant["user_code"]
        assert page.evaluate("document.documentElement.scrollWidth") == 375
        assert violations(page) == []
        page.get_by_role("button", name="Confirm").click()
        page.get_by_text("You are logged in").wait_for()
        body = {"device_code": grant["device_code"]}
        found = device.post("/api/cli/device/token", json=body).json()
    assert found["workspace"]["name"] == "agents"
