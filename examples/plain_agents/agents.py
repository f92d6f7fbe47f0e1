"""Agents as people have them, around one client: nothing here is made for evaluations but `record`.

`OPENAI_API_KEY`, and `OPENAI_BASE_URL` for another endpoint than OpenAI's, are the client's own.
"""

from __future__ import annotations

import functools
import json
import time
from typing import Any

from openai import AsyncOpenAI, OpenAI

from osmosis_ai import record

client = record(OpenAI())
async_client = record(AsyncOpenAI())
MODEL = "gpt-5-mini"


def function(question: str) -> str:
    """Ask once."""
    return ask(client, question)


def ask(of: OpenAI, question: str) -> str:
    """Ask some client."""
    messages: Any = [{"role": "user", "content": question}]
    return (
        of.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content or ""
    )


async def asynchronous(messages: list[dict[str, Any]]) -> str:
    """Ask with the row's messages."""
    given: Any = messages
    answer = await async_client.chat.completions.create(model=MODEL, messages=given)
    return answer.choices[0].message.content or ""


class Chain:
    """An object with `invoke`, as LangChain has them, that is also called; returns a message."""

    def invoke(self, question: str, config: object = None) -> Any:
        """Return the client's own message."""
        messages: Any = [{"role": "user", "content": question}]
        return client.chat.completions.create(model=MODEL, messages=messages).choices[0].message

    __call__ = invoke


class Bot:
    """An object with `__call__`, and a method."""

    def __call__(self, question: str) -> str:
        """Answer."""
        return ask(client, question)

    def reply(self, row: dict[str, Any]) -> str:
        """Answer a row."""
        return self(row["user_prompt"])


def streams(question: str) -> str:
    """Join the parts of an answer as they come."""
    messages: Any = [{"role": "user", "content": question}]
    parts = client.chat.completions.create(model=MODEL, messages=messages, stream=True)
    return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)


def raises(question: str) -> str:
    """Ask, and fail."""
    raise LookupError(f"no answer but {ask(client, question)}")


def blocks(question: str) -> str:
    """Hold its thread."""
    time.sleep(0.05)
    return ask(client, question)


def gives_json(question: str) -> dict[str, Any]:
    """Return an object."""
    return {"answer": ask(client, question), "length": len(json.dumps(question))}


chain = Chain()
bot = Bot()
method = bot.reply
partial = functools.partial(ask, client)
