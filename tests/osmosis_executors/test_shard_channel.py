"""The channel between driver and shards: who is let in, what is given once, and its end."""

from __future__ import annotations

import asyncio
import queue
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from osmosis_executors.shards import hub as hubs
from osmosis_executors.shards.hub import Hub, server_context
from osmosis_executors.shards.link import DriverLink, NotInvited
from pytest_osmosis.distributed.shards.fleet import ShardOrder

PATIENCE_S = 60.0
SECRET = "sk-the-value-of-a-secret"
ORDER = ShardOrder(["-q"], {"KEY": SECRET}, ["KEY"], Path("/root"), ".", silence_s=PATIENCE_S)


class Ears:
    """Hears of shards."""

    def __init__(self) -> None:
        self.messages: queue.Queue[tuple[Any, ...]] = queue.Queue()

    def receive(self, shard: int, kind: str, values: Sequence[Any]) -> None:
        self.messages.put((shard, kind, *values))

    def gone(self, shard: int, reason: str, *, suspect: bool) -> None:
        self.messages.put((shard, "gone", reason, suspect))

    def lost(self, reason: str) -> None:
        self.messages.put(("lost", reason))

    def next(self) -> tuple[Any, ...]:
        return self.messages.get(timeout=PATIENCE_S)


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture
def hub(ears: Ears) -> Iterator[Hub]:
    made = Hub("127.0.0.1", ORDER, ears, on_silence=lambda shard: None)
    yield made
    made.close()


def test_a_shard_with_a_ticket_gets_its_order_and_both_sides_are_heard(hub: Hub, ears: Ears):
    link = DriverLink(hub.invite(3))
    assert (link.order["words"], link.order["environment"]) == (["-q"], {"KEY": SECRET})
    heard: queue.Queue[tuple[str, Any]] = queue.Queue()
    hub.send(3, "window", 5)
    link.listen(lambda kind, values: heard.put((kind, values)))
    assert heard.get(timeout=PATIENCE_S) == ("window", [5])
    link.send("finished", "ä", [1, 2])
    assert ears.next() == (3, "finished", "ä", [1, 2])
    hub.ended(3, "done", suspect=False)
    link.close()
    assert ears.next() == (3, "gone", "done", False)


def test_a_ticket_is_good_for_one_process(hub: Hub):
    invitation = hub.invite(0)
    link = DriverLink(invitation)
    with pytest.raises(NotInvited):
        DriverLink(invitation)
    link.close()


def test_an_earlier_ticket_of_the_same_shard_is_void(hub: Hub):
    earlier, later = hub.invite(0), hub.invite(0)
    with pytest.raises(NotInvited):
        DriverLink(earlier)
    DriverLink(later).close()


@pytest.mark.parametrize("ticket", ["", "wrong", "ä" * 50, "x" * 100_000])
def test_a_wrong_ticket_gets_nothing(hub: Hub, ticket: str):
    with pytest.raises(NotInvited):
        DriverLink(replace(hub.invite(0), ticket=ticket))


def test_a_shard_speaks_to_the_owner_of_the_certificate_alone(hub: Hub):
    _, certificate = server_context()
    with pytest.raises(NotInvited, match="certificate"):
        DriverLink(replace(hub.invite(0), certificate=certificate))


def test_what_is_no_tls_or_no_message_is_shut_out_and_others_go_on(hub: Hub, ears: Ears):
    with socket.create_connection(("127.0.0.1", hub.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        stranger.settimeout(PATIENCE_S)
        while stranger.recv(1024):
            pass
    link = DriverLink(hub.invite(1))
    link.send("alive and well")
    assert ears.next() == (1, "alive and well")
    link.close()


def test_a_driver_that_is_gone_cancels_its_shards(hub: Hub):
    link = DriverLink(hub.invite(0))
    heard: queue.Queue[tuple[str, Any]] = queue.Queue()
    link.listen(lambda kind, values: heard.put((kind, values)))
    hub.close()
    assert heard.get(timeout=PATIENCE_S) == ("cancel", [])
    link.send("finished")
    link.close()


def test_what_is_sent_to_a_process_that_has_left_is_dropped(
    hub: Hub, caplog: pytest.LogCaptureFixture
):
    link = DriverLink(hub.invite(0))
    left = asyncio.run_coroutine_threadsafe(hub._connections[0].left.wait(), hub._loop)
    link.close()
    left.result(PATIENCE_S)
    for _ in range(2):
        hub.send(0, "window", 2)
    hub.close()
    assert caplog.records == []


def test_what_a_process_sent_before_it_ended_is_heard_before_its_end(hub: Hub, ears: Ears):
    link = DriverLink(hub.invite(0))
    for number in range(300):
        link.send("finished", number, "x" * 10_000)
    hub.ended(0, "killed", suspect=True)
    link.close()
    found = [ears.next() for _ in range(301)]
    assert [message[2] for message in found[:-1]] == list(range(300))
    assert found[-1] == (0, "gone", "killed", True)


def test_a_process_that_says_nothing_is_noticed(ears: Ears, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hubs, "BEAT_S", 0.02)
    silent: queue.Queue[int] = queue.Queue()
    hub = Hub("127.0.0.1", replace(ORDER, silence_s=0.05), ears, on_silence=silent.put)
    link = DriverLink(hub.invite(7))
    assert silent.get(timeout=PATIENCE_S) == 7
    link.close()
    hub.close()


def test_no_repr_shows_a_ticket_or_a_secret(hub: Hub):
    invitation = hub.invite(0)
    assert invitation.ticket not in repr(invitation)
    assert SECRET not in repr(ORDER)
