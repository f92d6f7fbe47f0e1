"""The endpoint that tests and benchmarks rely on does what it says."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.support.endpoints import Endpoint, EndpointProcess


def post(base_url: str, model: str, text: str) -> tuple[int, Any]:
    host = base_url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=60)
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    reply = connection.getresponse()
    answer = json.loads(reply.read())
    connection.close()
    return reply.status, answer


def content(base_url: str, model: str, text: str) -> str:
    status, answer = post(base_url, model, text)
    assert status == 200
    return str(answer["choices"][0]["message"]["content"])


def test_answers_come_from_a_text_a_table_or_a_function():
    with Endpoint("42") as endpoint:
        assert content(endpoint.base_url, "m", "a") == "42"
        assert content(endpoint.base_url, "echo", "a") == "a"
    with Endpoint({"a": "1"}) as endpoint:
        assert content(endpoint.base_url, "m", "a") == "1"
        assert content(endpoint.base_url, "m", "b") == "b"
    with Endpoint(lambda ask: f"{ask.row} {ask.attempt}") as endpoint:
        assert content(endpoint.base_url, "m", "a") == "a 1"
        assert content(endpoint.base_url, "m", "a") == "a 2"
        assert endpoint.by_row == {"a": 2}
        assert endpoint.seen[0].messages == [{"role": "user", "content": "a"}]


def test_a_fault_counts_by_row():
    with Endpoint("42") as endpoint:
        statuses = [post(endpoint.base_url, "fault-503-once", row)[0] for row in "abab"]
    assert statuses == [503, 503, 200, 200]


def test_a_model_that_is_not_served_is_unknown():
    with Endpoint("42", models=["m"]) as endpoint:
        assert post(endpoint.base_url, "n", "a")[0] == 404
        assert post(endpoint.base_url, "m", "a")[0] == 200


def test_a_request_before_its_retry_after_is_counted():
    with Endpoint(latency_s=0.1) as endpoint:
        post(endpoint.base_url, "fault-429-retry-after-60-once", "a")
        post(endpoint.base_url, "other", "a")
        assert endpoint.early == 0
        post(endpoint.base_url, "fault-429-retry-after-60-once", "a")
        assert endpoint.early == 1


def test_in_a_process_of_its_own_it_tells_its_counts():
    with EndpointProcess(answer="7") as endpoint:
        assert content(endpoint.base_url, "m", "a") == "7"
        assert endpoint.tally()["by_row"] == {"a": 1}
