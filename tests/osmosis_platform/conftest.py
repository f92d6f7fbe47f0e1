"""A user in a workspace of its own, and a client that is logged in as that user."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.platform_server import Account, PlatformServer

TIMEOUT_S = 60.0
"""An upload is checked by a process, which a busy machine starts slowly."""


@pytest.fixture
def account(platform_server: PlatformServer) -> Account:
    """A user in a workspace with a dataset."""
    account = platform_server.add_workspace()
    platform_server.add_dataset(account=account)
    return account


@pytest.fixture(scope="module")
def connection(platform_server: PlatformServer) -> Iterator[httpx.Client]:
    """A client without a login."""
    with httpx.Client(base_url=platform_server.url, verify=False, timeout=TIMEOUT_S) as client:
        yield client


@pytest.fixture(scope="module")
def owner(platform_server: PlatformServer) -> Iterator[httpx.Client]:
    """A client of the first user, for what changes nothing."""
    platform_server.add_dataset()
    headers = platform_server.account.headers
    url = platform_server.url
    with httpx.Client(base_url=url, headers=headers, verify=False, timeout=TIMEOUT_S) as client:
        yield client


@pytest.fixture
def client(connection: httpx.Client, account: Account) -> Iterator[httpx.Client]:
    """A client of that user."""
    connection.headers.update(account.headers)
    yield connection
    for name in account.headers:
        del connection.headers[name]
