"""When a request is repeated, and after how long (E5 to E9)."""

from __future__ import annotations

from email.utils import formatdate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.models.retry import RETRY_AFTER_LIMIT_S, RetryPolicy, in_words, parse_retry_after

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("statuses", "are_retried"),
    [
        ([408, 409, 425, 429, 500, 502, 503, 504, 520, 529, 599], True),
        ([200, 301, 400, 401, 403, 404, 422, 501, 505], False),
    ],
)
def test_passing_statuses_are_retried_and_lasting_ones_not(statuses: list[int], are_retried: bool):
    for status in statuses:
        assert RetryPolicy().retries_status(status, {}) is are_retried, status


def test_the_endpoints_advice_wins_over_the_status():
    policy = RetryPolicy()
    assert not policy.retries_status(503, {"x-should-retry": " False "})
    assert policy.retries_status(400, {"x-should-retry": "true"})
    assert policy.retries_status(503, {"x-should-retry": "maybe"})


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "99999"}, 99999.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"retry-after": formatdate(NOW + 86400, usegmt=True)}, RETRY_AFTER_LIMIT_S),
        ({"retry-after": "Friday, 15-Jan-27 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri Jan 15 08:00:30 2027"}, 30.0),
    ],
)
def test_every_form_of_retry_after_is_read(headers: dict[str, str], seconds: float | None):
    assert parse_retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "nan",
        "inf",
        "-5",
        "-0",
        "+5",
        "1e3",
        "0x10",
        "٣",
        "1,5",
        "1.2.3",
        "9" * 400,
        "Fri, 99 Foo 2027",
        "Fri, 15 Jan 99999999999 08:00:00 GMT",
        "1 2 3 4 5 6",
    ],
)
def test_nonsense_says_nothing(text: str):
    assert parse_retry_after({"retry-after": text}, now=NOW) is None
    assert parse_retry_after({"retry-after-ms": text}, now=NOW) is None


@pytest.mark.fault("the clock jumps")
def test_a_date_counts_from_the_replys_own_date_whatever_our_clock_says():
    headers = {
        "retry-after": formatdate(NOW + 300, usegmt=True),
        "date": formatdate(NOW, usegmt=True),
    }
    assert parse_retry_after(headers, now=NOW - 10**8) == 300.0


@given(st.text(max_size=40))
def test_any_text_is_a_wait_or_none(text: str):
    seconds = parse_retry_after({"retry-after": text}, now=NOW)
    assert seconds is None or seconds >= 0.0


@given(tries=st.integers(1, 2000), asked=st.none() | st.floats(0, 120), seed=st.integers())
def test_a_pause_is_bounded_and_never_shorter_than_asked(
    tries: int, asked: float | None, seed: int
):
    policy = RetryPolicy(base_s=0.5, cap_s=8.0)
    pause = policy.pause_s(tries, asked, Random(seed))
    assert pause >= (asked or 0.0)
    assert pause <= (asked or 0.0) + 8.0
    assert pause > 0.0


def test_pauses_grow_and_are_spread():
    policy = RetryPolicy(base_s=1.0, cap_s=8.0)
    random = Random(0)
    longest = [max(policy.pause_s(n, None, random) for _ in range(200)) for n in range(1, 6)]
    shortest = [min(policy.pause_s(n, None, random) for _ in range(200)) for n in range(1, 6)]
    assert [round(pause) for pause in longest] == [1, 2, 4, 8, 8]
    assert all(0.45 < low / high < 0.55 for low, high in zip(shortest, longest, strict=True))


def test_tries_are_counted_in_all_and_by_reason():
    policy = RetryPolicy(max_tries=5)
    assert policy.tries_left("overloaded", 4)
    assert not policy.tries_left("overloaded", 5)
    assert policy.tries_left("timeout", 1)
    assert not policy.tries_left("timeout", 2)
    assert not RetryPolicy(max_tries=1).tries_left("timeout", 1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (45, "45 s"),
        (119, "119 s"),
        (130, "2 min"),
        (5399, "89 min"),
        (99999, "27 h"),
        (10**6, "11 days"),
    ],
)
def test_long_waits_are_said_in_words(seconds: float, words: str):
    assert in_words(seconds) == words
