"""A bridge to an endpoint on loopback, and an account of it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from osmosis_ai.bridge import Account, Bridge
from osmosis_ai.models.base import ChatModel
from osmosis_ai.models.openai import OpenAIModel
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.secret import Secret
from tests.support.endpoints import Endpoint

PROVIDER_KEY = "sk-provider-0123456789abcdef"
HTTP = httpx.Client(trust_env=False, verify=False, timeout=60)


def bridge_to(endpoint: Endpoint) -> Bridge:
    def open_model() -> ChatModel:
        return OpenAIModel(
            model="evaluated",
            base_url=endpoint.base_url,
            api_key=Secret(PROVIDER_KEY, "PROVIDER_KEY"),
            pool_size=64,
            retry=RetryPolicy(max_tries=1),
        )

    return Bridge(open_model)


@pytest.fixture(autouse=True, scope="package")
def close_the_shared_client() -> Iterator[None]:
    with HTTP:
        yield


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint("42", api_key=PROVIDER_KEY) as endpoint:
        yield endpoint


@pytest.fixture
def bridge(endpoint: Endpoint) -> Iterator[Bridge]:
    bridge = bridge_to(endpoint)
    yield bridge
    bridge.close()


@pytest.fixture
def account(bridge: Bridge) -> Account:
    return bridge.open_account()
