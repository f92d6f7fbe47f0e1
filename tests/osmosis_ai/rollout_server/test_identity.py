from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from tests.osmosis_ai.rollout_server.agents import Asking
from tests.osmosis_ai.rollout_server.conftest import Clock
from tests.osmosis_ai.rollout_server.trainer import Serve, Trainer, init_body


def test_the_same_init_at_once_and_after_the_end_starts_one_rollout(serve: Serve, trainer: Trainer):
    served = serve(Asking())
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: served.init("same", trainer), range(32)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body for answer in answers}) == 1
    assert answers[0].json()["rollout_id"] == "same"
    assert [tool["function"]["name"] for tool in answers[0].json()["tools"]] == ["add"]
    trainer.result("same")
    body = init_body("same", trainer)
    reordered = json.dumps(dict(reversed(body.items())), indent=1).encode()
    for asked in (body, reordered):  # after its end
        again = served.ask("POST", "/v1/rollout/init", asked)
        assert (again.status, again.body) == (202, answers[0].body)
    assert len(trainer.calls) == len(trainer.results["same"]) == 1


def test_another_body_for_the_same_rollout_is_a_conflict(serve: Serve, trainer: Trainer):
    served = serve(Asking())
    assert served.init("one", trainer).status == 202
    for fields in ({"max_turns": 3}, {"metadata": {"x": 1}}, {"idempotency_key": "k"}):
        assert served.init("one", trainer, **fields).status == 409
    trainer.result("one")
    assert served.init("one", trainer, max_turns=3).status == 409
    assert len(trainer.calls) == 1


def test_the_idempotency_key_is_the_identity(serve: Serve, trainer: Trainer):
    served = serve(Asking())
    first = served.init("a", trainer, idempotency_key="key-1")
    assert served.init("a", trainer, idempotency_key="key-1").body == first.body
    assert served.init("b", trainer, idempotency_key="key-1").status == 409
    assert served.init("key-1", trainer).status == 202  # an id is no key
    trainer.wait_for("a", "key-1")
    assert len(trainer.calls) == 2


def test_a_record_is_forgotten_when_its_time_is_up(serve: Serve, trainer: Trainer, clock: Clock):
    served = serve(Asking(), record_ttl_seconds=0.1)
    served.init("old", trainer)
    trainer.result("old")
    served.wait_for_delivery("old", "delivered")
    assert served.init("old", trainer, max_turns=3).status == 409
    clock.now += 0.2
    served.wait_until_forgotten("old")
    assert served.init("old", trainer, max_turns=3).status == 202
