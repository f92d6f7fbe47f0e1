"""Which proxy the environment names (E37)."""

from __future__ import annotations

import pytest

from osmosis_ai.models.transport.base_url import normalise_base_url
from osmosis_ai.models.transport.proxy import Proxy, find_proxy

PROXY = "http://proxy.example:3128"


def found(url: str, environ: dict[str, str]) -> Proxy | None:
    return find_proxy(normalise_base_url(url), environ)


def test_each_scheme_has_its_variable_and_lower_case_wins():
    environ = {"http_proxy": "a:1", "HTTP_PROXY": "b:2", "HTTPS_PROXY": "c:3", "ALL_PROXY": "d:4"}
    assert str(found("http://model.example", environ)) == "a:1 (http_proxy)"
    assert str(found("https://model.example", environ)) == "c:3 (HTTPS_PROXY)"
    assert str(found("http://model.example", {"ALL_PROXY": "[::2]:4"})) == "[::2]:4 (ALL_PROXY)"
    assert found("http://model.example", {"HTTP_PROXY": " "}) is None
    of_a_caller = {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}  # a header of CGI
    assert found("http://model.example", of_a_caller) is None


@pytest.mark.parametrize(
    "listed",
    [
        "*",
        "model.example",
        ".example",
        "example",
        "other, model.example",
        "other model.example",
        "*.example",
        "model.example:8000",
        "http://model.example",
        "MODEL.EXAMPLE",
    ],
)
def test_an_exempt_host_is_reached_directly(listed: str):
    environ = {"HTTP_PROXY": PROXY, "NO_PROXY": listed}
    assert found("http://model.example:8000/v1", environ) is None


@pytest.mark.parametrize("listed", ["", ",", "odel.example", "model.example:9", "10.0.0.0/8", "/"])
def test_other_entries_exempt_nothing(listed: str):
    environ = {"HTTP_PROXY": PROXY, "NO_PROXY": listed}
    assert found("http://model.example:8000/v1", environ) is not None


def test_addresses_are_exempt_by_network_too():
    environ = {"HTTP_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8,fd00::/8"}
    assert found("http://10.1.2.3/v1", environ) is None
    assert found("http://[fd00::1]/v1", environ) is None
    assert found("http://11.1.2.3/v1", environ) is not None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback_never_has_a_proxy(host: str):
    assert found(f"http://{host}:8000", {"HTTP_PROXY": "nonsense://", "ALL_PROXY": PROXY}) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("http://", "is not a proxy's address"),
        ("http://user:secret-pass@", "is not a proxy's address"),
        ("http://host:port", "is not a proxy's address"),
        ("socks5://user:secret-pass@host:1", "socks5://"),
        ("https://user:secret-pass@host:1", "https://"),
    ],
)
def test_an_unusable_proxy_is_named_by_its_variable_alone(value: str, words: str):
    with pytest.raises(ValueError, match=r"^HTTPS_PROXY ") as caught:
        found("https://model.example", {"HTTPS_PROXY": value})
    assert words in str(caught.value)
    assert "secret-pass" not in str(caught.value)


def test_credentials_of_a_proxy_are_a_secret():
    proxy = found("http://model.example", {"HTTP_PROXY": "http://me:secret-pass@host:1"})
    assert proxy is not None
    assert proxy.authorization is not None
    assert proxy.authorization.reveal() == "Basic bWU6c2VjcmV0LXBhc3M="
    assert "secret-pass" not in f"{proxy} {proxy!r}"
    assert "bWU6" not in f"{proxy} {proxy!r}"
