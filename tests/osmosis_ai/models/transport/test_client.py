"""Where the connections of a model go: TLS, proxies, and how many there may be."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.models.base import ChatCompletion
from osmosis_ai.models.errors import ProviderError
from osmosis_ai.models.openai import OpenAIModel
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.secret import Secret
from tests.support.endpoints import EXPIRED, SELF_SIGNED, Endpoint, reply

# Python 3.10's server side forgets to close what failed its handshake; the client is ours.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*_SSLProtocolTransport:pytest.PytestUnraisableExceptionWarning"
)

KEY = "sk-proj-a+b/c=0123456789"


def ask(base_url: str, **options: Any) -> ChatCompletion:
    async def main() -> ChatCompletion:
        chat = OpenAIModel(
            model="m",
            base_url=base_url,
            api_key=Secret(KEY, "MY_KEY"),
            pool_size=2,
            retry=RetryPolicy(base_s=0.01, cap_s=0.02),
            **options,
        )
        try:
            return await chat.complete([{"role": "user", "content": "hello"}])
        finally:
            await chat.aclose()

    return asyncio.run(main())


def error(base_url: str, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(base_url, **options)
    assert KEY not in str(caught.value)
    return caught.value


# TLS (E31).


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Endpoint]:
    with Endpoint("42", tls=SELF_SIGNED) as endpoint:
        yield endpoint
    gc.collect()


def test_a_trusted_certificate_is_accepted_for_its_host_alone(
    encrypted: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(SELF_SIGNED))
    assert ask(encrypted.base_url).message["content"] == "42"
    failure = error(encrypted.base_url.replace("127.0.0.1", "127.0.0.2"))
    assert failure.kind == "unreachable" or "not valid for '127.0.0.2'; call it by" in str(failure)


@pytest.mark.fault("TLS fails")
def test_an_unknown_certificate_is_a_tls_error_that_is_not_retried(encrypted: Endpoint):
    failure = error(encrypted.base_url)
    assert (failure.kind, failure.tries) == ("tls", 1)
    assert str(failure).startswith(f"TLS error with {encrypted.netloc}: self")
    assert "set SSL_CERT_FILE" in str(failure)


@pytest.mark.fault("TLS fails")
def test_an_expired_certificate_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(EXPIRED))
    with Endpoint("42", tls=EXPIRED) as endpoint:
        failure = error(endpoint.base_url)
    assert failure.kind == "tls"
    assert "certificate has expired; renew it, or set this machine's clock" in str(failure)


@pytest.mark.fault("TLS fails")
def test_https_on_a_plain_port_and_http_on_an_encrypted_one_are_reported(
    encrypted: Endpoint,
):
    with Endpoint("42") as endpoint:
        failure = error(endpoint.base_url.replace("http:", "https:"))
    assert (failure.kind, failure.tries) == ("tls", 1)
    assert "does the endpoint speak plain http?" in str(failure)
    failure = error(encrypted.base_url.replace("https:", "http:"))
    assert failure.kind in ("protocol", "connection")


@pytest.mark.fault("the proxy or certificate variables are wrong")
def test_a_certificate_file_that_is_missing_or_empty_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "empty.pem").write_text("nothing here")
    for name, message in (
        ("missing.pem", r"SSL_CERT_FILE names '.*missing.pem', which does not"),
        ("empty.pem", "SSL_CERT_FILE names a file that holds no certificate"),
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
        with pytest.raises(ValueError, match=message):
            ask("https://127.0.0.1:1/v1")


# Proxies (E37).


class Tunnel:
    """A proxy that only connects: counts what it is asked for and passes bytes on to one port."""

    def __init__(self, target_port: int, status: str = "200 Connection established") -> None:
        self.target_port = target_port
        self.status = status
        self.heads: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = [self.listener]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """End the thread first: it would accept at the next socket that has the same number."""
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        for each in self.sockets:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(client)
            head = b""
            while b"\r\n\r\n" not in head:
                received = client.recv(4096)
                if not received:
                    return
                head += received
            self.heads.append(head.decode())
            client.sendall(f"HTTP/1.1 {self.status}\r\nVia: x\r\n\r\n".encode())
            if not self.status.startswith("200"):
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.target_port))
            self.sockets.append(server)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_a_plain_endpoint_is_asked_through_the_proxy(monkeypatch: pytest.MonkeyPatch):
    with Endpoint("42") as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pass%40word@{proxy.netloc}")
        assert ask("http://model.example/v1").message["content"] == "42"
        (seen,) = proxy.seen
    assert seen.path == "http://model.example/v1/chat/completions"
    assert seen.headers["host"] == "model.example"
    assert seen.headers["proxy-authorization"] == "Basic bWU6cGFzc0B3b3Jk"


def test_an_encrypted_endpoint_is_asked_through_a_tunnel(
    encrypted: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    tunnel = Tunnel(encrypted.port)
    monkeypatch.setenv("SSL_CERT_FILE", str(SELF_SIGNED))
    monkeypatch.setenv("https_proxy", f"me:secret-pass@127.0.0.1:{tunnel.port}")
    assert ask("https://model.example/v1").message["content"] == "42"
    tunnel.close()
    assert tunnel.heads[0].startswith("CONNECT model.example:443 HTTP/1.1\r\n")
    assert "Bearer" not in tunnel.heads[0]
    assert "Proxy-Authorization: Basic" in tunnel.heads[0]
    assert KEY not in tunnel.heads[0]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_whose_first_address_is_dead_is_reached_at_its_second(
    scheme: str, encrypted: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    resolve = socket.getaddrinfo

    def two_addresses(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        hosts = ["127.0.0.2", "127.0.0.1"] if host == "proxy.example" else [host]
        return [found for each in hosts for found in resolve(each, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", two_addresses)
    monkeypatch.setenv("SSL_CERT_FILE", str(SELF_SIGNED))
    with Endpoint("42") as plain:
        tunnel = Tunnel(encrypted.port)
        port = tunnel.port if scheme == "https" else plain.port
        monkeypatch.setenv(f"{scheme}_proxy", f"http://proxy.example:{port}")
        assert ask(f"{scheme}://model.example/v1").message["content"] == "42"
        tunnel.close()


def test_a_proxy_that_refuses_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch):
    tunnel = Tunnel(1, status="403 Forbidden")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret-pass@127.0.0.1:{tunnel.port}")
    failure = error("https://model.example/v1")
    tunnel.close()
    assert failure.kind == "unreachable"
    assert "the proxy answered '403 Forbidden'" in str(failure)
    assert f"through the proxy 127.0.0.1:{tunnel.port} (HTTPS_PROXY)" in str(failure)
    assert "secret-pass" not in str(failure)


def test_a_proxy_that_wants_credentials_is_no_fault_of_the_key(
    monkeypatch: pytest.MonkeyPatch,
):
    with Endpoint(reply(407, b"who are you?")) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{proxy.netloc}")
        failure = error("http://model.example/v1")
    assert (failure.kind, failure.fatal) == ("unreachable", False)
    assert "asks for other credentials (407)" in str(failure)
    assert "(ALL_PROXY); add the host to NO_PROXY to go direct" in str(failure)


@pytest.mark.fault("the proxy or certificate variables are wrong")
def test_a_proxy_that_is_down_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    failure = error("http://model.example/v1")
    assert "cannot reach http://model.example after 3 tries" in str(failure)
    assert "connection refused, through the proxy 127.0.0.1:1 (HTTP_PROXY)" in str(failure)


@pytest.mark.fault("the proxy or certificate variables are wrong")
def test_loopback_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch):
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "elsewhere.example")
    with Endpoint("42") as endpoint:
        assert ask(endpoint.base_url).message["content"] == "42"
        by_name = endpoint.base_url.replace("127.0.0.1", "localhost")
        assert ask(by_name).message["content"] == "42"


# Open files (P11).


@pytest.mark.fault("there are few file descriptors")
@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on open files")
def test_the_pool_is_bounded_by_the_limit_on_open_files(monkeypatch: pytest.MonkeyPatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: (67, 4096))

    async def main(endpoint: Endpoint) -> None:
        chat = OpenAIModel(model="m", base_url=endpoint.base_url, api_key=None, pool_size=1000)
        await asyncio.gather(*(chat.complete([]) for _ in range(9)))
        await chat.aclose()

    with Endpoint("42", latency_s=0.01) as endpoint:
        endpoint.full_at = 3
        asyncio.run(main(endpoint))
    assert endpoint.max_in_flight == 3


@pytest.mark.fault("there are few file descriptors")
@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on open files")
def test_running_out_of_open_files_says_what_to_lower():
    import resource

    async def main(endpoint: Endpoint) -> None:
        chat = OpenAIModel(
            model="m",
            base_url=endpoint.base_url,
            api_key=None,
            pool_size=1,
            retry=RetryPolicy(max_tries=1),
        )
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = os.dup(0)
        os.close(spare)
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
        try:
            with pytest.raises(
                ProviderError, match="too many open files: lower -n or --batch-size"
            ):
                await chat.complete([])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await chat.aclose()

    with Endpoint("42") as endpoint:
        asyncio.run(main(endpoint))
