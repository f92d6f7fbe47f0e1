"""Browsers in which users are logged in, for pages as they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from osmosis_platform.accounts import browsers
from osmosis_platform.database.models import User
from osmosis_platform.pages.forms import SESSION_COOKIE, form_token
from tests.support.platform_server import Account, PlatformServer


class Browser:
    """A browser in which a user is logged in."""

    def __init__(self, client: httpx.Client, account: Account, token: str) -> None:
        self.client = client
        self.account = account
        self.token = token
        """The token of this browser's forms."""

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask for a page of the user's workspace, or for another by its whole path."""
        return self.client.get(self._whole(path), headers=headers)

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form with the token of the user's pages."""
        return self.client.post(self._whole(path), data={"token": self.token, **fields})

    def _whole(self, path: str) -> str:
        return path if path.startswith("/") else f"/w/{self.account.workspace}/{path}"


@pytest.fixture(scope="module")
def log_in(platform_server: PlatformServer) -> Iterator[Callable[[Account], Browser]]:
    """Log a user in, without the password's cost."""
    with ExitStack() as stack:

        def log_in(account: Account) -> Browser:
            with platform_server.database.writing() as session:
                user = session.get_one(User, account.user_id)
                cookie = browsers.start(session, user, 3600)
            cookies = {SESSION_COOKIE: cookie}
            client = httpx.Client(
                base_url=platform_server.url, cookies=cookies, verify=False, timeout=60
            )
            token = form_token(platform_server.vault, cookie)
            return Browser(stack.enter_context(client), account, token)

        yield log_in


@pytest.fixture
def browser(log_in: Callable[[Account], Browser], account: Account) -> Browser:
    """The browser of a user in a workspace of its own."""
    return log_in(account)


@pytest.fixture
def viewer(
    browser: Browser, platform_server: PlatformServer, log_in: Callable[[Account], Browser]
) -> Browser:
    """A viewer in the same workspace."""
    name = f"viewer-in-{browser.account.workspace}"
    return log_in(
        platform_server.add_user(name, workspace=browser.account.workspace, role="viewer")
    )
