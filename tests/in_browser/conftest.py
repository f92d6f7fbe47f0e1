"""A headless Chromium of the system, and pages in it that nothing may go wrong on.

Playwright drives it; both are in the environment of `tox -e browser` alone. Without a Chromium the
tests are skipped and say so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed: tox -e browser"
)

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    """The one browser of the session."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


class Watched:
    """A page, and what went on that no visitor sees."""

    def __init__(self, page: playwright.Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message: playwright.ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: playwright.Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def strayed(self) -> list[str]:
        """The requests to another place than the page's own."""
        at = urlsplit(self.page.url)
        return [url for url in self.requests if not _is_there(url, at.scheme, at.netloc)]


def _is_there(url: str, scheme: str, netloc: str) -> bool:
    found = urlsplit(url)
    return found.scheme in ("blob", "data") or (found.scheme, found.netloc) == (scheme, netloc)


@pytest.fixture
def open_page(browser: playwright.Browser) -> Iterator[Callable[..., playwright.Page]]:
    """Open a URL; at the end, no page had an error, a dialog or a request to elsewhere.

    Further arguments are those of Playwright's `new_context`: `viewport`, `color_scheme`, …
    """
    watched: list[Watched] = []

    def opened(url: str, **context: object) -> playwright.Page:
        page = browser.new_context(**context).new_page()
        page.set_default_timeout(60_000)
        watched.append(Watched(page))
        page.goto(url)
        return page

    yield opened
    problems = [problem for each in watched for problem in each.problems]
    strayed = [url for each in watched for url in each.strayed()]
    for each in watched:
        each.page.context.close()
    assert problems == []
    assert strayed == []


@pytest.fixture
def violations() -> Callable[[playwright.Page], list[str]]:
    """What axe-core finds wrong with a page as it is now: the rule, and the elements."""
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()

    def found(page: playwright.Page) -> list[str]:
        answer = axe.run(page).response
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes'][:5]]}"
            for each in answer["violations"]
        ]

    return found
