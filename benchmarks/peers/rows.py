"""What the peers' scripts share: the rows, the arguments, and one question to the endpoint.

Imports nothing but the standard library and, where it is asked for, `openai`.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

SYSTEM = "Answer with a number."
EXPECTED = "42"


class Given(NamedTuple):
    """The command line."""

    base_url: str
    n: int
    in_flight: int


def given() -> Given:
    """`BASE_URL N B`."""
    return Given(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))


def prompt(number: int) -> str:
    """A row's question."""
    return f"What is {number} x 7?"


def client(base_url: str) -> Any:
    """The client that the peers' own documentation uses."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=base_url, api_key="not-needed")


async def ask(openai: Any, question: str) -> str:
    """One call."""
    answer = await openai.chat.completions.create(
        model="bench",
        messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}],
    )
    return str(answer.choices[0].message.content)


def end(right: int, n: int) -> None:
    """Exit status 0 when every answer was right."""
    if right != n:
        sys.exit(f"{right} of {n} answers were right")
