"""The embedded endpoint, spoken to over real connections on loopback."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from osmosis_ai.embedded import EmbeddedEndpoint, start_embedded
from osmosis_ai.http_server import MAX_BODY

QUESTION = "What is (17 * 23) - (4 + 5)?"
CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "1 + 1"}


def function_tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


NUMBER = {"type": "number"}
OPERATIONS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}
TOOLS = [function_tool(name, a=NUMBER, b=NUMBER) for name in OPERATIONS]


class Client:
    """One keep-alive connection."""

    def __init__(self, endpoint: EmbeddedEndpoint) -> None:
        self.model = endpoint.model
        self.address = httpx.URL(endpoint.base_url)
        self.connection = http.client.HTTPConnection(self.address.host, self.address.port)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = json.dumps(body) if isinstance(body, dict | list) else body
        self.connection.request(method, path, data)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def chat(self, messages: list[dict[str, Any]], *, rollout: str = "", **more: Any) -> Any:
        if rollout:
            more["user"] = rollout
        body = {"model": self.model, "messages": messages, **more}
        status, answer = self.request("POST", CHAT, body)
        assert status == 200, answer
        return answer

    def roll(self, question: str = QUESTION, *, turns: int = 10, **more: Any) -> list[Any]:
        """One rollout with an honest calculator behind the tools; the whole conversation."""
        messages = [{"role": "user", "content": question}]
        more.setdefault("tools", TOOLS)
        for _ in range(turns):
            message = self.chat(messages, **more)["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                break
            messages += [calculated(call) for call in message["tool_calls"]]
        return messages


def calculated(call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.loads(call["function"]["arguments"])
    result = OPERATIONS[call["function"]["name"]](*arguments.values())
    return {"role": "tool", "tool_call_id": call["id"], "content": str(result)}


def answer(messages: list[Any]) -> str:
    return messages[-1]["content"].rpartition("#### ")[2]


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message["tool_calls"]
    ]


@pytest.fixture(scope="module")
def perfect() -> Iterator[EmbeddedEndpoint]:
    with start_embedded("perfect") as endpoint:
        yield endpoint


@pytest.fixture
def client(perfect: EmbeddedEndpoint) -> Iterator[Client]:
    with Client(perfect) as client:
        yield client


# Rollouts


def test_a_perfect_model_calls_tools_in_parallel_unless_asked_otherwise_and_answers(
    client: Client,
):
    _, first, _, _, second, _, last = client.roll()
    assert first["content"] is None
    assert calls_of(first) == [("multiply", {"a": 17, "b": 23}), ("add", {"a": 4, "b": 5})]
    assert calls_of(second) == [("subtract", {"a": 391, "b": 9})]
    assert last == {"role": "assistant", "content": "The result is 382.\n#### 382"}
    messages = client.roll(parallel_tool_calls=False)
    calls = [call for message in messages[1::2][:-1] for call in calls_of(message)]
    assert [name for name, _ in calls] == ["multiply", "add", "subtract"]
    assert answer(messages) == "382"
    assert len(client.roll(tool_choice="none")) == 2


@pytest.mark.parametrize(
    "tools", [None, [], [function_tool("get_weather", city={"type": "string"})]]
)
def test_without_a_tool_that_fits_the_model_works_it_out_itself(client: Client, tools: Any):
    messages = client.roll(tools=tools)
    assert len(messages) == 2
    assert messages[-1]["content"] == (
        "17 * 23 = 391. 4 + 5 = 9. 391 - 9 = 382. The result is 382.\n#### 382"
    )


def test_a_step_without_a_tool_is_worked_between_the_others(client: Client):
    tools = [tool for tool in TOOLS if tool["function"]["name"] != "add"]
    messages = client.roll("What is (4 + 5) * 3?", tools=tools)
    assert calls_of(messages[1]) == [("multiply", {"a": 9, "b": 3})]
    assert answer(messages) == "27"


def test_a_tool_is_recognised_by_a_word_of_its_name_and_its_schema(client: Client):
    tool = function_tool("calc_multiply_numbers", x=NUMBER, y=NUMBER)
    message = client.chat([{"role": "user", "content": "6 times 7"}], tools=[tool])
    calls = calls_of(message["choices"][0]["message"])
    assert calls == [("calc_multiply_numbers", {"x": 6, "y": 7})]


@pytest.mark.parametrize(
    "tool",
    [
        function_tool("multiply", a=NUMBER, b=NUMBER, unit={"type": "string"}),
        function_tool("multiply"),
        {"type": "function", "function": {"name": "multiply"}},
    ],
)
def test_a_tool_that_does_not_fit_is_left_alone(client: Client, tool: Any):
    assert answer(client.roll("What is 1.5 times 3?", tools=[tool])) == "4.5"


def test_what_the_tools_say_counts(client: Client):
    messages = [{"role": "user", "content": "What is 2 + 2?"}]
    messages.append(client.chat(messages, tools=TOOLS)["choices"][0]["message"])
    call_id = messages[-1]["tool_calls"][0]["id"]
    for content, said in (("5", "5"), ("Error: no such tool", "4"), ('{"result": 4.5}', "4.5")):
        result = {"role": "tool", "tool_call_id": call_id, "content": content}
        final = client.chat([*messages, result], tools=TOOLS)["choices"][0]["message"]
        assert answer([final]) == said


def test_what_no_float_is_is_called_undefined(client: Client):
    assert answer(client.roll("What is 10 / 0 + 1?", tools=None)) == "undefined"
    question = "What is 5 / 2? " + "Multiply it by it. " * 20
    for tools in (None, TOOLS):
        assert answer(client.roll(question, tools=tools, turns=25)) == "undefined"


def test_a_question_without_arithmetic_is_declined(client: Client):
    message = client.roll("Who wrote Faust?")[-1]
    assert message["content"].startswith("I can only do arithmetic")


RECORD = {"order": "A1042", "status": "shipped", "arrives": "Monday", "total_in_euro": 30}
LOOKUP = function_tool("get_order", order_id={"type": "string"})


def test_a_record_is_looked_up_and_the_field_that_was_asked_for_is_the_answer(
    client: Client,
):
    messages: list[Any] = [{"role": "user", "content": "What is the total of order A1042 in euro?"}]
    messages.append(client.chat(messages, tools=[*TOOLS, LOOKUP])["choices"][0]["message"])
    assert calls_of(messages[-1]) == [("get_order", {"order_id": "A1042"})]
    found = {"role": "tool", "tool_call_id": messages[-1]["tool_calls"][0]["id"]}
    for content, said in (
        (json.dumps(RECORD), "The total in euro of A1042 is 30."),
        ("There is no such order.", "There is no such order."),
        ("[]", "[]"),
    ):
        last = client.chat([*messages, {**found, "content": content}], tools=[LOOKUP])
        assert last["choices"][0]["message"]["content"] == said
    with start_embedded("broken") as endpoint, Client(endpoint) as wrong:
        result = {**found, "content": json.dumps(RECORD)}
        [choice] = wrong.chat([*messages, result], tools=[LOOKUP])["choices"]
        assert "30" not in choice["message"]["content"]


def test_the_last_user_message_is_the_question(client: Client):
    parts = [{"type": "text", "text": "And what"}, {"type": "text", "text": "is 2 * 8?"}]
    messages = [*client.roll(), {"role": "user", "content": parts}]
    assert answer([client.chat(messages)["choices"][0]["message"]]) == "16"


def test_a_stream_holds_the_same_answer(client: Client):
    body = {"model": "embedded", "messages": [USER], "stream": True}
    client.connection.request("POST", CHAT, json.dumps(body))
    events = client.connection.getresponse().read().decode().split("\n\n")
    [choice] = json.loads(events[0].removeprefix("data: "))["choices"]
    assert choice["delta"]["content"].endswith("#### 2")
    assert events[1:] == ["data: [DONE]", ""]


def test_usage_adds_up_and_repeats(client: Client):
    messages = [{"role": "user", "content": QUESTION}]
    first, second = (client.chat(messages, tools=TOOLS, seed=1) for _ in range(2))
    usage = first["usage"]
    assert usage == second["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert min(usage.values()) > 0


# Being wrong


def answers(client: Client, questions: list[str], **more: Any) -> list[str]:
    return [answer(client.roll(question, **more)) for question in questions]


def test_a_broken_model_is_never_right():
    with start_embedded("broken") as endpoint, Client(endpoint) as client:
        for left in range(40):
            question = f"What is {left} * 2 - {left}?"
            for more in ({"tools": None}, {}):
                assert answer(client.roll(question, rollout=f"r{left}", **more)) != str(left)


def test_the_default_model_is_right_most_of_the_time_and_less_often_when_it_is_hard():
    def share(questions: list[str], solution: str) -> float:
        said = [
            answer(client.roll(question, rollout=f"r{run}", tools=None))
            for question in questions
            for run in range(5)
        ]
        return said.count(solution) / len(said)

    with start_embedded() as endpoint, Client(endpoint) as client:
        easy = share([f"What is {n} + {40 - n}?" for n in range(40)], "40")
        chain = " + ".join(["1"] * 12)
        hard = share([f"What is {n} + {39 - n} + {chain} - 11?" for n in range(40)], "40")
    assert 0.85 < easy < 1.0
    assert 0.3 < hard < easy - 0.2


def test_the_same_rollout_ends_the_same_whatever_came_before():
    questions = [f"What is {n} * 7 + 1?" for n in range(12)]
    with start_embedded("sloppy") as one, Client(one) as client:
        forth = [answers(client, questions, rollout=f"eval-0-run-{run}") for run in range(3)]
    with start_embedded("sloppy") as two, Client(two) as client:
        back = [
            answers(client, questions[::-1], rollout=f"eval-0-run-{run}")[::-1]
            for run in reversed(range(3))
        ]
    assert forth == back[::-1]
    assert forth[0] != forth[1]


def test_a_request_can_say_which_run_it_is_and_its_seed_comes_first():
    questions = [f"What is {n} * 7 + 1?" for n in range(20)]
    with start_embedded("sloppy") as endpoint, Client(endpoint) as client:
        for identity, one, two in (("seed", 1, 2), ("user", "a", "b")):
            first = answers(client, questions, **{identity: one})
            assert first == answers(client, questions, **{identity: one}), identity
            assert first != answers(client, questions, **{identity: two}), identity
        first = answers(client, questions, seed=1, rollout="a")
        assert first == answers(client, questions, seed=1, rollout="b")


def test_runs_that_say_nothing_differ_and_each_makes_up_its_mind_once():
    """The first turn draws a number; the tool calls' ids carry it to the later ones."""
    with start_embedded("sloppy") as endpoint, Client(endpoint) as client:
        runs = [client.roll("What is 8 * 7 + 1?") for _ in range(20)]
        again = [client.chat(run[:-1], tools=TOOLS)["choices"][0]["message"] for run in runs]
    assert len({answer(run) for run in runs}) > 1
    assert again == [run[-1] for run in runs]


def test_another_seed_of_the_endpoint_is_another_model():
    questions = [f"What is {n} * 7 + 1?" for n in range(20)]
    said = []
    for seed in (0, 0, 1):
        with start_embedded("sloppy", seed=seed) as endpoint, Client(endpoint) as client:
            said.append(answers(client, questions, rollout="r"))
    assert said[0] == said[1] != said[2]


# Personas


def test_a_model_name_may_ask_for_another_persona_and_an_unknown_one_is_refused(
    client: Client,
):
    assert client.chat([{"role": "user", "content": "1 + 1"}], rollout="r", seed=None)
    client.model = "embedded/broken"
    assert answer(client.roll("What is 1 + 1?")) != "2"
    client.model = "my-own-7b"
    assert answer(client.roll("What is 1 + 1?")) == "2"
    client.model = "embedded/chatty"
    assert len(client.roll()) == 2  # it uses no tools
    with pytest.raises(ValueError, match=r"known are default, perfect,.*Did you mean 'sloppy'"):
        start_embedded("slopy")


# Requests that are wrong


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[" * 100_000,
        "[]",
        {"model": "embedded"},
        {"model": "embedded", "messages": ["hello"]},
        {"model": "embedded", "messages": [USER], "tools": [{"name": "add"}]},
        {"model": "embedded", "messages": [USER], "n": 2},
    ],
)
def test_a_wrong_request_is_answered_with_openais_error(client: Client, body: Any):
    status, answered = client.request("POST", CHAT, body)
    assert status == 400
    assert answered["error"]["type"] == "invalid_request_error"
    assert answered["error"]["message"]
    assert client.request("GET", "/v1/models")[0] == 404  # the connection goes on


def test_an_unknown_model_path_or_method_is_refused(client: Client):
    body = {"model": "embedded/perfetc", "messages": [USER]}
    status, answered = client.request("POST", CHAT, body)
    assert (status, answered["error"]["code"]) == (404, "model_not_found")
    assert "embedded/perfect" in answered["error"]["message"]
    assert client.request("POST", "/v1/models", "{}")[0] == 404
    assert client.request("GET", CHAT)[0] == 404


def test_a_body_past_the_limit_is_read_to_its_end_and_refused(client: Client):
    status, answered = client.request("POST", CHAT, b" " * (MAX_BODY + 1))
    assert status == 413
    assert "longer than" in answered["error"]["message"]
    assert client.request("GET", "/v1/models")[0] == 404  # on a new connection
