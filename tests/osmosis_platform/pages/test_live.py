"""Live updates: events as they are sent, how they go on, and how they end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest

from osmosis_platform.accounts import browsers
from osmosis_platform.database.models import now
from osmosis_platform.errors import Refused
from osmosis_platform.pages import live
from osmosis_platform.pages.forms import SESSION_COOKIE
from osmosis_platform.pages.live import Streams
from tests.support.platform_server import PlatformServer

from .conftest import Browser

Event = dict[str, str]


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_POLL_S", 0.01)


@contextmanager
def events(browser: Browser, path: str, **headers: str) -> Iterator[Iterator[Event]]:
    """Follow a page."""
    url = browser._whole(path)
    with browser.client.stream("GET", url, headers=headers, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _read(answer)


def _read(answer: httpx.Response) -> Iterator[Event]:
    event: Event = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif event:
            yield event
            event = {}


def next_of(found: Iterator[Event], name: str) -> tuple[Any, str | None]:
    """Return data and id of the next event of a kind."""
    event = next(each for each in found if each.get("event") == name)
    return json.loads(event["data"]), event.get("id")


def test_a_page_is_sent_what_changes_and_the_log_from_where_it_was_left(
    browser: Browser, platform_server: PlatformServer
) -> None:
    run_id = platform_server.add_run(account=browser.account, name="run-1", status="running")
    platform_server.add_log(run_id, "one <b>")
    with events(browser, "runs/run-1/events?after=0") as found:
        parts = {next_of(found, "part")[0]["id"] for _ in range(5)}
        assert parts == {"status", "actions", "figures", "facts", "rows"}
        lines, cursor = next_of(found, "log")
        assert "one &lt;b&gt;" in lines["html"]
        counts = {"total_samples": 9, "completed_samples": 4, "passed": 4}
        platform_server.set_run(run_id, metrics={"overview": counts})
        part, _ = next_of(found, "part")
        assert part["id"] == "figures"
        assert "4 of 9 rollouts" in part["html"]
    platform_server.add_log(run_id, "two")
    assert cursor is not None
    with events(browser, "runs/run-1/events?after=0", **{"Last-Event-ID": cursor}) as found:
        lines, _ = next_of(found, "log")
        assert "two" in lines["html"]
        assert "one" not in lines["html"]
        ended = now() - timedelta(minutes=1)
        platform_server.set_run(run_id, status="finished", completed_at=ended)
        changed = {next_of(found, "part")[0]["id"] for _ in range(4)}
        assert changed == {"status", "actions", "figures", "facts"}
        assert next(found)["event"] == "end"
        assert next(found, None) is None
    assert "data-live=" not in browser.get("runs/run-1").text


def test_the_list_follows_its_runs(browser: Browser, platform_server: PlatformServer) -> None:
    with events(browser, "runs/events?kind=evaluation&config=&offset=0") as found:
        assert {next_of(found, "part")[0]["id"] for _ in range(2)} == {"runs", "trends"}
        platform_server.add_run(account=browser.account, name="new-run")
        part, _ = next_of(found, "part")
        assert part["id"] == "runs"
        assert "new-run" in part["html"]


def test_a_stream_ends_when_its_visitor_is_logged_out(
    browser: Browser, platform_server: PlatformServer
) -> None:
    with events(browser, "runs/events") as found:
        next_of(found, "part")
        with platform_server.database.writing() as session:
            browsers.end(session, browser.client.cookies[SESSION_COOKIE])
        assert [each["event"] for each in found if "event" in each][-1] == "gone"
    answer = browser.get("runs/events")
    assert answer.status_code == 303


def test_a_stream_is_counted_until_its_page_goes(
    browser: Browser, platform_server: PlatformServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, leave = threading.Event(), Streams.leave

    def leaves(streams: Streams, user_id: str) -> None:
        leave(streams, user_id)
        if user_id == browser.account.user_id:  # a stream of an earlier test may end only now
            left.set()

    monkeypatch.setattr(Streams, "leave", leaves)
    platform_server.streams.each = 1
    try:
        with events(browser, "runs/events") as found:
            next_of(found, "part")
            refused = browser.get("runs/events")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
        assert left.wait(60)
        with events(browser, "runs/events") as found:
            next_of(found, "part")
    finally:
        platform_server.streams.each = live.EACH


def test_streams_end_with_the_platform(browser: Browser, platform_server: PlatformServer) -> None:
    with events(browser, "runs/events") as found:
        next_of(found, "part")
        platform_server.streams.is_closing = True
        try:
            assert all(each.get("event") != "gone" for each in found)
        finally:
            platform_server.streams.is_closing = False


def test_no_user_and_not_all_users_have_more_streams_than_there_is_room_for() -> None:
    streams = Streams(total=3, each=2)
    for user in ("a", "a", "b"):
        streams.enter(user)
    for user in ("a", "b"):
        with pytest.raises(Refused, match="too many pages"):
            streams.enter(user)
    streams.leave("a")
    streams.enter("b")
    assert streams.count == 3
