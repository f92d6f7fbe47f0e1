"""The embedded endpoint's HTTP, and its life from start to end."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import subprocess
import sys
from dataclasses import replace

import httpx
import pytest

from osmosis_ai.embedded import PERSONAS, EmbeddedEndpoint, start_embedded

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "1 + 1"}


def raw_chat() -> bytes:
    body = json.dumps({"model": "embedded", "messages": [USER]}).encode()
    return (
        b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (CHAT.encode(), len(body))
        + body
    )


def test_an_offer_of_an_upgrade_is_answered_in_http_1():
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c"}
    with start_embedded("perfect") as endpoint:
        body = {"model": endpoint.model, "messages": [USER]}
        url = f"{endpoint.base_url}/chat/completions"
        assert httpx.post(url, json=body, headers=offer, timeout=60).status_code == 200


@pytest.mark.slow
def test_a_hundred_clients_at_once_are_served():
    async def all_at_once(endpoint: EmbeddedEndpoint) -> list[int]:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(
            base_url=endpoint.base_url, limits=limits, timeout=60
        ) as client:
            body = {"model": endpoint.model, "messages": [USER]}
            calls = (client.post("/chat/completions", json=body) for _ in range(100))
            return [response.status_code for response in await asyncio.gather(*calls)]

    with start_embedded("slow") as endpoint:
        assert asyncio.run(all_at_once(endpoint)) == [200] * 100


def test_a_closed_endpoint_refuses_connections_and_closes_twice():
    endpoint = start_embedded()
    url = httpx.URL(endpoint.base_url)
    connection = http.client.HTTPConnection(url.host, url.port)
    connection.request("GET", "/v1/models")
    assert connection.getresponse().read()
    assert not endpoint.closed
    endpoint.close()
    endpoint.close()
    assert endpoint.closed
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        connection.request("GET", "/v1/models")
        connection.getresponse()
    connection.close()


def test_closing_drops_clients_that_wait_for_a_slow_answer():
    slow = replace(PERSONAS["slow"], latency_s=3600.0)
    endpoint = EmbeddedEndpoint(slow, seed=0, host="127.0.0.1")
    url = httpx.URL(endpoint.base_url)
    with socket.create_connection((url.host, url.port or 0)) as connection:
        connection.sendall(raw_chat())
        endpoint.close()
        try:
            received = connection.recv(65536)
        except ConnectionError:
            received = b""
    assert received == b""


def test_closing_drops_clients_that_have_only_just_connected():
    for _ in range(30):
        endpoint = start_embedded()
        url = httpx.URL(endpoint.base_url)
        with socket.create_connection((url.host, url.port or 0), timeout=60) as connection:
            endpoint.close()
            with contextlib.suppress(ConnectionError):
                assert connection.recv(1) == b""


def test_a_host_that_is_not_ours_is_an_error_for_the_caller():
    with pytest.raises(OSError):
        start_embedded(host="192.0.2.1")


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("end", ["endpoint.close()", "pass"])
def test_a_process_ends_quietly_with_and_without_closing_the_endpoint(end: str):
    done = python(
        "import logging\n"
        "slow = lambda record: 'Executing %s took' not in str(record.msg)  # of a busy machine\n"
        "logging.getLogger('asyncio').addFilter(slow)\n"
        "from osmosis_ai.embedded import start_embedded\n"
        "import http.client\n"
        "endpoint = start_embedded()\n"
        "client = http.client.HTTPConnection('127.0.0.1', int(endpoint.base_url[17:-3]))\n"
        "client.request('GET', '/v1/models')\n"
        "print(client.getresponse().status)\n"
        f"client.close()\n{end}\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "404\n", "")


def test_importing_the_package_loads_no_event_loop():
    done = python(
        "import sys\n"
        "from osmosis_ai.embedded import persona_name, find_persona\n"
        "print(persona_name('embedded'), persona_name('embedded/slow'), persona_name('gpt'))\n"
        "print(sorted({'asyncio', 'socket', 'http', 'json', 'difflib'} & set(sys.modules)))\n"
    )
    assert done.stdout == "default slow None\n[]\n", done.stderr
