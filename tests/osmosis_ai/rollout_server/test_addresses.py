from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from osmosis_ai.rollout_server.trainer.address_policy import (
    TrainerRefused,
    TrainerRules,
    TrainerUnknown,
    check_origin,
    is_public,
)
from tests.osmosis_ai.rollout_server.trainer import Reply, Serve, Trainer

NOT_PUBLIC = [
    "http://127.0.0.1:8000",
    "http://localhost:8000",
    "http://127.1",
    "http://2130706433",
    "http://0x7f000001",
    "http://0177.0.0.1",
    "http://0.0.0.0",
    "http://169.254.169.254/latest/meta-data",
    "http://10.0.0.1",
    "http://172.16.5.4",
    "http://192.168.1.1",
    "http://100.64.0.1",
    "http://224.0.0.1",
    "http://255.255.255.255",
    "http://[::1]:80",
    "http://[::]",
    "http://[fe80::1]",
    "http://[fc00::1]",
    "http://[fec0::1]",
    "http://[::ffff:127.0.0.1]",
    "http://[::ffff:169.254.169.254]",
    "http://[::ffff:a00:1]",
    "http://[64:ff9b::7f00:1]",
    "http://[2002:7f00:1::]",
    "http://[::127.0.0.1]",
    "http://[ff02::1]",
    "http://192.0.0.192",
    "http://192.88.99.1",
    "http://168.63.129.16",
    "http://[::ffff:168.63.129.16]",
    "http://198.18.0.1",
    "http://192.0.2.1",
    "http://240.0.0.1",
    "http://[2001::4136:e378:8000:63bf:3fff:fdd2]",
    "http://[2001:db8::1]",
    "http://[3fff::1]",
    "http://[5f00::1]",
    "http://[64:ff9b:1::1]",
    "http://[100::1]",
    "http://[fd00:ec2::254]",
]
NO_ADDRESS = [
    "file:///etc/passwd",
    "ftp://trainer.example",
    "gopher://trainer.example",
    "//trainer.example",
    "trainer.example",
    "http://",
    "http:///path",
    "http://user:password@trainer.example",
    "http://trainer.example?x=1",
    "http://trainer.example#x",
    "http://trainer.example:0",
    "http://trainer.example:99999",
    "http://trainer.example\r\nX: y",
    "http://trainer.example\\@evil.example",
]


def locate(rules: TrainerRules, url: str) -> Any:
    return asyncio.run(rules.locate(url))


@pytest.mark.parametrize("url", NOT_PUBLIC)
def test_addresses_that_are_not_public_are_refused_unless_allowed(url: str):
    with pytest.raises(TrainerRefused, match="public"):
        locate(TrainerRules(), url)
    assert locate(TrainerRules(anywhere=True), url).addresses


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_what_is_no_http_address_is_refused_by_the_rules(url: str):
    with pytest.raises(TrainerRefused):
        locate(TrainerRules(anywhere=True), url)


def test_public_addresses_are_public():
    for address in (
        *("1.1.1.1", "8.8.8.8", "168.63.129.17", "192.0.1.1", "100.128.0.1", "172.32.0.1"),
        *("2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"),
    ):
        assert is_public(address), address


def test_a_list_of_origins_is_the_only_way_in():
    rules = TrainerRules(["http://127.0.0.1:8000", "https://8.8.8.8"])
    assert locate(rules, "http://127.0.0.1:8000/some/path").path == "/some/path"
    assert locate(rules, "https://8.8.8.8:443").addresses == ("8.8.8.8",)
    for url in (
        "http://127.0.0.1:8001",
        "https://127.0.0.1:8000",
        "http://8.8.8.8",
        "https://1.1.1.1",
    ):
        with pytest.raises(TrainerRefused, match="may call"):
            locate(rules, url)


@pytest.mark.parametrize(
    "origin", ["", "trainer", "trainer:80", "ftp://t", "http://t/path", "http://u@t", "http://"]
)
def test_a_wrong_origin_is_said(origin: str):
    with pytest.raises(ValueError, match="scheme://host:port"):
        check_origin(origin)
    # Others are compared in one spelling.
    assert check_origin("HTTPS://Trainer.Example.:443/") == "https://trainer.example"
    assert check_origin("http://[0:0::1]:80") == "http://[0:0::1]"


class Resolver:
    """Stands in for DNS: a list of answers, one a question."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, loop: Any, host: str, port: int, **options: Any) -> Any:
        self.asked += 1
        if not self.answers:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return [(None, None, None, "", (address, port)) for address in self.answers.pop(0)]


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Resolver]:
    def install(*answers: list[str]) -> Resolver:
        resolver = Resolver(*answers)
        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lambda *a, **k: resolver(*a, **k))
        return resolver

    return install


def test_a_name_that_leads_to_one_private_address_is_refused(resolve: Callable[..., Resolver]):
    resolve(["8.8.8.8", "10.0.0.1"])
    with pytest.raises(TrainerRefused):
        locate(TrainerRules(), "http://mixed.example")


def test_a_name_is_resolved_once_for_many_rollouts(resolve: Callable[..., Resolver]):
    resolver = resolve(["8.8.8.8"], ["127.0.0.1"])

    async def many() -> set[tuple[str, ...]]:
        rules = TrainerRules()
        found = await asyncio.gather(*(rules.locate("http://trainer.example") for _ in range(50)))
        return {trainer.addresses for trainer in found}

    assert asyncio.run(many()) == {("8.8.8.8",)}
    assert resolver.asked == 1


def test_a_name_that_cannot_be_resolved_now_may_be_later(resolve: Callable[..., Resolver]):
    resolver = resolve()

    async def twice() -> Any:
        rules = TrainerRules()
        with pytest.raises(TrainerUnknown):
            await rules.locate("http://trainer.example")
        resolver.answers.append(["8.8.8.8"])
        return await rules.locate("http://trainer.example")

    assert asyncio.run(twice()).addresses == ("8.8.8.8",)


def test_the_server_connects_to_the_address_that_it_looked_at(
    serve: Serve, trainer: Trainer, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []
    real = asyncio.BaseEventLoop.getaddrinfo

    async def rebinding(loop: Any, host: Any, port: Any, **options: Any) -> Any:
        if host != "trainer.example":
            return await real(loop, host, port, **options)
        asked.append(host)  # the first answer is the trainer, any later one is somewhere else
        address = "127.0.0.1" if len(asked) == 1 else "127.9.9.9"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", rebinding)
    served = serve(allowed_trainers=(f"http://trainer.example:{trainer.port}",))
    assert served.init("r", f"http://trainer.example:{trainer.port}/under").status == 202
    assert trainer.result("r")["status"] == "COMPLETED"
    assert asked == ["trainer.example"]
    assert set(trainer.paths) == {"/under/v1/chat/completions", "/under/v1/rollout/completed"}
    assert all(found["host"] == f"trainer.example:{trainer.port}" for _, found in trainer.headers)


def test_a_server_that_is_not_configured_otherwise_calls_no_loopback(
    serve: Serve, trainer: Trainer
):
    refused = serve(local=False).init("r", trainer)
    assert (refused.status, refused.json()["code"]) == (422, "trainer_refused")
    assert "--allow-trainer" in refused.json()["error"]
    assert serve().init("r", NO_ADDRESS[0]).status == 422
    assert not trainer.paths


def test_redirects_are_not_followed(serve: Serve, trainer: Trainer):
    with Trainer() as elsewhere:
        redirect = Reply(307, None, location=f"{elsewhere.url}/v1/chat/completions")
        trainer.answer = lambda body: redirect
        serve().init("r", trainer)
        assert "answered 307" in trainer.result("r")["error_message"]
        assert not elsewhere.paths


def test_the_trainers_key_goes_to_the_trainer_alone(serve: Serve, trainer: Trainer):
    serve().init("r", trainer, api_key="trainer-key-12345")
    trainer.result("r")
    sent = [headers["authorization"] for _, headers in trainer.headers]
    assert sent == ["Bearer trainer-key-12345"] * 2
    trainer.headers.clear()
    serve().init("s", trainer)
    trainer.result("s")
    assert all("authorization" not in headers for _, headers in trainer.headers)
