"""Base URLs as users type them (E32)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.models.transport.base_url import BaseURL, is_loopback, normalise_base_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("  http://localhost:8000//v1//\n", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/v1/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/chat/completions", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/models", "http://localhost:8000/v1"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://localhost:8000/", "http://localhost:8000"),
        ("HTTP://LocalHost:80/v1", "http://localhost/v1"),
        ("https://api.openai.com:443/v1", "https://api.openai.com/v1"),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            "https://generativelanguage.googleapis.com/v1beta/openai",
        ),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://bücher.example/v1", "http://xn--bcher-kva.example/v1"),
        ("http://host/pfäd", "http://host/pf%C3%A4d"),
        ("http://host_name.internal:8000/v1", "http://host_name.internal:8000/v1"),
    ],
)
def test_spellings_of_one_address_become_one(text: str, url: str):
    address = normalise_base_url(text)
    assert str(address) == url
    assert normalise_base_url(url) == address


def test_the_printable_endpoint_leaves_out_the_schemes_own_port():
    assert normalise_base_url("https://api.openai.com/v1").netloc == "api.openai.com"
    assert normalise_base_url("http://localhost:8000/v1").netloc == "localhost:8000"
    assert normalise_base_url("http://[::1]/v1").netloc == "[::1]"


@pytest.mark.fault("the base URL lacks its scheme, or holds a query or a password")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("localhost:8000/v1", "has no scheme: write http://localhost:8000/v1"),
        ("example.com", "has no scheme: write http://example.com"),
        ("http://", "has no valid host"),
        ("ftp://host/v1", "neither http:// nor https://"),
        ("http:///v1", "no valid host"),
        ("http://host:0/v1", "port 0"),
        ("http://host:99999/v1", "cannot be read"),
        ("http://host:port/v1", "cannot be read"),
        ("http://[::1/v1", "cannot be read"),
        ("http://[::g]/v1", "cannot be read"),
        ("http://ho..st/v1", "no valid host"),
        ("http://-host/v1", "no valid host"),
        ("http://ho st/v1", "a space"),
        ("http://host\\v1", "backslash"),
        ("http://ho\x00st/v1", "another character"),
        ("http://host/v1\r\nX-Evil: 1", "another character"),
        ("http://user:sk-secret@host/v1", "a user name or a password"),
        ("user:sk-secret@host/v1", "a user name or a password"),
        ("host/v1?key=sk-secret", "has no scheme: write http://host/v1"),
        ("http://host:0/v1?key=sk-secret", "port 0"),
        ("http://host/v1#sk-secret", "a fragment"),
    ],
)
def test_what_is_no_address_is_refused_in_one_sentence(text: str, words: str):
    with pytest.raises(ValueError) as caught:
        normalise_base_url(text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("the base URL ")
    assert "sk-secret" not in str(caught.value)
    assert str(caught.value).isprintable()


@given(st.text(max_size=40) | st.from_regex(r"https?://[\w.:@/\[\]?#%-]{0,30}", fullmatch=True))
def test_any_text_is_normalised_once_and_for_all_or_refused(text: str):
    try:
        address = normalise_base_url(text)
    except ValueError as refusal:
        assert str(refusal).startswith("the base URL ")
    else:
        assert str(address).isascii()
        again = normalise_base_url(str(address))
        assert replace(again, query="") == replace(address, query="")
        assert str(again) == str(address)  # the values of its query are masked already


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.0.0.1",
        "127.9.9.9",
        "127.1",
        "2130706433",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "::",
    ],
)
def test_this_machine_is_known_in_any_spelling(host: str):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.evil.com", "128.0.0.1", "example.com", "::2", "10.1"])
def test_other_machines_are_not_taken_for_this_one(host: str):
    assert not is_loopback(host)
    assert not BaseURL(scheme="http", host=host, port=80, path="").is_loopback


def test_a_query_goes_with_each_route_and_is_shown_without_its_keys():
    address = normalise_base_url(
        "https://host/openai/deployments/d/chat/completions?api-version=2024-06-01&code=sk-1&x="
    )
    assert address.url("/chat/completions") == (
        "https://host/openai/deployments/d/chat/completions?api-version=2024-06-01&code=sk-1&x="
    )
    assert str(address) == ("https://host/openai/deployments/d?api-version=2024-06-01&code=***&x=")
    assert [secret.reveal() for secret in address.secrets] == ["sk-1"]
    assert "sk-1" not in repr(address)
