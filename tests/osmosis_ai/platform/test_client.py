"""The client of the platform, against one on loopback that misbehaves on demand."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from osmosis_ai.platform.client import Limits, PlatformClient, PlatformError, cli_path, new_key
from osmosis_ai.secret import Secret
from tests.support.fake_platform import (
    CERTIFICATE,
    FAULTS,
    TOKEN,
    FakePlatform,
    Request,
    fake_platform,
)

LIMITS = Limits(answer_bytes=1 << 20, tries=2)
RUNS = cli_path("eval-runs")


class Clock:
    """Time that passes by sleeping, and with each look at the clock where `step` says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(platform: FakePlatform, clock: Clock) -> Iterator[PlatformClient]:
    with connected(platform, clock, LIMITS) as client:
        yield client


def connected(platform: FakePlatform, clock: Clock, limits: Limits) -> PlatformClient:
    return PlatformClient(
        platform.url,
        token=Secret(TOKEN, "the token of your login"),
        version="0.1.0",
        git_identity="acme/agents",
        limits=limits,
        clock=clock,
        sleep=clock.sleep,
    )


SENTENCES = {
    "401": ("unauthorized", "your session at {} has ended (token revoked): run `osmosis login`"),
    "403": ("forbidden", "{} does not allow this: members cannot do this; ask an owner of the "
            "workspace, or see `osmosis whoami` for who you are"),
    "404": ("not_found", "{} has no evaluation 'x': not here"),
    "409": ("conflict", "{} refused: it has finished"),
    "422": ("invalid", "{} does not accept this: limit: must be 1 or more"),
    "426": ("too_old", "osmosis 0.1.0 is too old for {} (0.9 or newer is needed): run "
            "`python -m pip install --upgrade pytest-osmosis`"),
    "429": ("rate_limited", "{} takes no more requests right now: slow down; try again later"),
    "500": ("platform_error", r"{} failed: \x1b[31mno\u202e *** https://db.example/x; "
            "try again later"),
    "html": ("bad_answer", "the answer of {} is not JSON (a web page): is OSMOSIS_PLATFORM_URL "
             "the address of a platform?"),
    "redirect": ("redirect", "{} redirects to http://127.0.0.1:9, which is not followed: if that "
                 "is your platform, set OSMOSIS_PLATFORM_URL to it and log in there"),
    "not json": ("bad_answer", "the answer of {} is not JSON: is OSMOSIS_PLATFORM_URL the address "
                 "of a platform?"),
    "list": ("bad_answer", "the answer of {} is no JSON object: is OSMOSIS_PLATFORM_URL the "
             "address of a platform?"),
    "slow": ("timeout", "{} did not answer within 60 s; try again later"),
    "silent": ("timeout", "{} did not answer within 0.05 s; try again later"),
    "huge": ("too_large", "the answer of {} is larger than 1 MiB, and was not read to its end"),
    "hang up": ("unreachable", "the connection to {} broke: server disconnected without sending a "
                "response; is it running, and is OSMOSIS_PLATFORM_URL right?"),
}  # fmt: skip
TRIED_AGAIN = {"429", "silent", "hang up"}
NO_REQUEST_ID = TRIED_AGAIN - {"429"} | {"slow", "huge"}


@pytest.mark.fault(
    "the platform answers 401, 403, 404, 409, 422, 426, 429, 500, a web page, another document, "
    "a redirect; slowly, not at all, too much; or hangs up",
    "text of the platform has control characters, a token, or a URL with a password",
)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_failure_is_one_sentence_with_the_id_of_the_request(
    platform: FakePlatform, clock: Clock, fault: str
):
    platform.fault = fault
    clock.step = 30.0 if fault == "slow" else 0.0
    limits = replace(LIMITS, read_s=0.05) if fault == "silent" else LIMITS
    with connected(platform, clock, limits) as client, pytest.raises(PlatformError) as caught:
        client.get(cli_path("eval-runs", "x"), subject="evaluation 'x'")
    error = caught.value
    code, sentence = SENTENCES[fault]
    assert (error.code, error.message.lower()) == (code, sentence.format(platform.url).lower())
    assert error.request_id == (None if fault in NO_REQUEST_ID else "req-77")
    assert len(platform.requests) == (2 if fault in TRIED_AGAIN else 1)
    assert error.tries == len(platform.requests)
    assert "\n" not in str(error)
    assert TOKEN not in f"{error!s}{error!r}{vars(error)}"


def test_a_token_from_the_environment_is_named_where_it_is_not_valid(platform: FakePlatform):
    platform.fault = "401"
    token = Secret(TOKEN, "OSMOSIS_TOKEN")
    with (
        PlatformClient(platform.url, token=token, version="1") as client,
        pytest.raises(PlatformError, match="set OSMOSIS_TOKEN to a valid token, or unset it and"),
    ):
        client.get(RUNS)


def test_what_a_server_says_of_its_refusal_is_kept_for_programs(
    client: PlatformClient, platform: FakePlatform
):
    platform.fault = "422"
    with pytest.raises(PlatformError) as caught:
        client.get(RUNS)
    assert (caught.value.status, caught.value.field) == (422, "limit")
    assert caught.value.document() == {"status": 422, "field": "limit", "request_id": "req-77"}
    assert caught.value.details == {"least": 1}


def test_a_platform_that_lets_wait_is_not_asked_again_after_a_while(
    platform: FakePlatform, clock: Clock
):
    platform.fault, clock.step = "429", 50.0
    client = PlatformClient(
        platform.url, token=None, version="1", limits=LIMITS, clock=clock, sleep=clock.sleep
    )
    with client, pytest.raises(PlatformError):
        client.get(RUNS)
    assert len(platform.requests) == 1


@pytest.mark.fault("nothing listens at the platform's address, or it has no TLS")
def test_a_platform_that_is_not_there_is_said_after_some_tries(clock: Clock):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with (
            PlatformClient(
                url, token=None, version="1", limits=LIMITS, clock=clock, sleep=clock.sleep
            ) as client,
            pytest.raises(PlatformError) as caught,
        ):
            client.post(RUNS, {})
    assert str(caught.value) == (
        f"cannot reach {url}: connection refused; is it running, and is OSMOSIS_PLATFORM_URL "
        f"right? (2 tries in {clock.now:.1f} s)"
    )


def test_a_certificate_must_be_that_of_a_known_authority(monkeypatch: pytest.MonkeyPatch):
    with fake_platform(tls=True) as platform:
        platform.answers["GET", RUNS] = {}
        with (
            PlatformClient(platform.url, token=None, version="1") as client,
            pytest.raises(PlatformError) as caught,
        ):
            client.get(RUNS)
        assert caught.value.code == "tls"
        assert str(caught.value).startswith(f"{platform.url}: its certificate cannot be trusted (")
        assert "set SSL_CERT_FILE to its file" in str(caught.value)
        assert not platform.requests
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        with PlatformClient(platform.url, token=None, version="1") as client:
            assert client.get(RUNS) == {}
        monkeypatch.setenv("SSL_CERT_FILE", "/does/not/exist")
        with (
            PlatformClient(platform.url, token=None, version="1") as client,
            pytest.raises(PlatformError, match="look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"),
        ):
            client.get(RUNS)


@pytest.mark.fault("nothing listens at the platform's address, or it has no TLS")
def test_a_server_without_tls_is_said_at_once(platform: FakePlatform, clock: Clock):
    url = platform.url.replace("http:", "https:")
    with (
        PlatformClient(url, token=None, version="1", sleep=clock.sleep) as client,
        pytest.raises(PlatformError) as caught,
    ):
        client.get(RUNS)
    assert caught.value.code == "tls"
    assert str(caught.value).startswith(f"{url}: no TLS connection (")
    assert not clock.pauses


def test_a_request_says_who_asks_and_for_which_repository(
    client: PlatformClient, platform: FakePlatform
):
    platform.answers["POST", RUNS] = {"id": "r1"}
    key = new_key()
    assert client.post(RUNS, {"a": "é"}, idempotency_key=key) == {"id": "r1"}
    (request,) = platform.requests
    assert request.body == {"a": "é"}
    sent = {name: request.headers.get(name) for name in (
        "authorization", "user-agent", "x-osmosis-cli-version", "x-osmosis-git", "idempotency-key",
    )}  # fmt: skip
    assert sent == {
        "authorization": f"Bearer {TOKEN}",
        "user-agent": "osmosis-cli/0.1.0",
        "x-osmosis-cli-version": "0.1.0",
        "x-osmosis-git": "acme/agents",
        "idempotency-key": key,
    }


@pytest.mark.fault("the connection breaks, or the platform is busy for a while")
@pytest.mark.parametrize(
    ("method", "key", "status", "requests"),
    [
        ("get", None, 503, 2),
        ("delete", None, 502, 2),
        ("post", "k1", 504, 2),
        ("post", "k1", 429, 2),
        ("post", None, 503, 1),
        ("post", None, 429, 1),
        ("get", None, 500, 1),
        ("get", None, 409, 1),
    ],
)
def test_only_what_may_be_sent_twice_is_sent_again(
    client: PlatformClient, platform: FakePlatform, clock: Clock,
    method: str, key: str | None, status: int, requests: int,
):  # fmt: skip
    statuses = iter([status, 200])
    platform.answers[method.upper(), RUNS] = lambda request: (next(statuses), {"id": "r1"})
    send = {
        "get": lambda: client.get(RUNS),
        "delete": lambda: client.delete(RUNS, {"name": "A"}),
        "post": lambda: client.post(RUNS, {}, idempotency_key=key),
    }[method]
    if requests == 2:
        assert send() == {"id": "r1"}
    else:
        with pytest.raises(PlatformError):
            send()
    assert len(platform.requests) == requests
    assert len({request.headers.get("idempotency-key") for request in platform.requests}) == 1
    assert len(clock.pauses) == requests - 1
    assert all(0.25 <= pause <= 0.5 for pause in clock.pauses)


def test_what_an_earlier_try_may_have_done_is_not_forgotten(clock: Clock):
    """The platform takes the first try and goes away: nothing is listening for the second."""
    listener = socket.create_server(("127.0.0.1", 0))

    def take_one() -> None:
        connection, _ = listener.accept()
        connection.recv(65536)
        listener.close()
        connection.close()

    thread = threading.Thread(target=take_one)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with (
        PlatformClient(
            url, token=None, version="1", limits=LIMITS, clock=clock, sleep=clock.sleep
        ) as client,
        pytest.raises(PlatformError) as caught,
    ):
        client.post(RUNS, {}, idempotency_key="k")
    thread.join()
    assert caught.value.message.startswith("cannot reach")
    assert caught.value.is_ambiguous


@pytest.mark.fault("the connection breaks, or the platform is busy for a while")
def test_retry_after_is_waited_for_unless_it_is_long(
    client: PlatformClient, platform: FakePlatform, clock: Clock
):
    statuses = iter([429, 200, 429])
    platform.answers["GET", RUNS] = lambda request: (next(statuses), {})
    platform.headers["Retry-After"] = "7"
    client.get(RUNS)
    assert len(clock.pauses) == 1
    assert 7.0 <= clock.pauses[0] <= 7.5
    platform.headers["Retry-After"] = "600"
    with pytest.raises(PlatformError, match="too many requests; try again in 10 min"):
        client.get(RUNS)
    assert len(clock.pauses) == 1


def pages(*sizes: int, stuck: bool = False) -> object:
    offsets = [sum(sizes[:i]) for i in range(len(sizes) + 1)]

    def answer(request: Request) -> tuple[int, dict[str, object]]:
        number = offsets.index(int(request.query["offset"]))
        items = [{"id": offsets[number] + i} for i in range(sizes[number])]
        more = number + 1 < len(sizes)
        following = 0 if stuck else offsets[number + 1]
        return 200, {"runs": items, "total_count": 5, "has_more": more, "next_offset": following}

    return answer


def test_pages_are_followed_up_to_the_limit(client: PlatformClient, platform: FakePlatform):
    platform.answers["GET", RUNS] = pages(2, 2, 1)
    found = client.collect(RUNS, "runs")
    assert [item["id"] for item in found.items] == [0, 1, 2, 3, 4]
    assert (found.total_count, found.has_more) == (5, False)
    found = client.collect(RUNS, "runs", limit=3, params={"scope": "all"})
    assert [item["id"] for item in found.items] == [0, 1, 2]
    assert found.has_more
    assert [request.query for request in platform.requests[3:]] == [
        {"scope": "all", "limit": "3", "offset": "0"},
        {"scope": "all", "limit": "1", "offset": "2"},
    ]


@pytest.mark.fault("the platform's list has no end")
def test_pages_without_an_end_are_refused(client: PlatformClient, platform: FakePlatform):
    platform.answers["GET", RUNS] = pages(2, 2, stuck=True)
    with pytest.raises(PlatformError, match="says that there is more, but not where"):
        client.collect(RUNS, "runs")
    platform.answers["GET", RUNS] = {"runs": None}
    with pytest.raises(PlatformError, match="has no list 'runs'"):
        client.collect(RUNS, "runs")


def test_names_are_one_segment_of_the_path(client: PlatformClient, platform: FakePlatform):
    path = cli_path("eval-runs", "a/../b ?#é%2F", "stop")
    platform.answers["POST", path] = {"id": "r1"}
    assert client.post(path, {}) == {"id": "r1"}
    assert path == "/api/cli/eval-runs/a%2F..%2Fb%20%3F%23%C3%A9%252F/stop"
    for name in ("", ".", ".."):
        with pytest.raises(ValueError, match="is no name"):
            cli_path("eval-runs", name)


@pytest.mark.parametrize(
    "url", ["http://example.com", "http://localhost.evil.com", "https://u:p@x.com", "ftp://x", "x"]
)
def test_a_token_is_not_sent_in_the_clear(url: str):
    with pytest.raises(ValueError, match=r"plain http|expected an address") as caught:
        PlatformClient(url, token=Secret(TOKEN), version="1")
    assert "u:p" not in str(caught.value)


def test_a_file_goes_to_a_given_address_without_credentials(
    client: PlatformClient, platform: FakePlatform
):
    statuses = iter([503, 200])
    platform.answers["PUT", "/upload"] = lambda request: (next(statuses), {})
    platform.headers["ETag"] = '"abc"'
    answer = client.put_presigned(
        f"{platform.url}/upload?signature=s3cret", lambda: iter([b"one", b"two"]), 6
    )
    assert answer["etag"] == '"abc"'
    assert [request.body for request in platform.requests] == [b"onetwo", b"onetwo"]
    for request in platform.requests:
        assert not {"authorization", "x-osmosis-git"} & request.headers.keys()
        assert request.headers["content-length"] == "6"
    with pytest.raises(PlatformError) as caught:
        client.put_presigned(f"{platform.url}/gone?signature=s3cret", lambda: iter([b"x"]), 1)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(PlatformError, match="cannot be used"):
        client.put_presigned("http://example.com/x", lambda: iter([b"x"]), 1)


def test_a_download_is_written_to_the_file_and_starts_again_after_a_failure(
    client: PlatformClient, platform: FakePlatform
):
    statuses = iter([503, 200])
    platform.answers["GET", RUNS] = lambda request: (next(statuses), b'{"version": 1}')
    file = io.BytesIO()
    assert client.download(RUNS, file, subject="report") == 14
    assert file.getvalue() == b'{"version": 1}'
    platform.fault = "html"
    with pytest.raises(PlatformError, match="a web page"):
        client.download(RUNS, io.BytesIO(), subject="report")
